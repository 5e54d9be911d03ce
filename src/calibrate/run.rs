//! The calibration run: samples in parallel, one a thread, their observations merged.
//!
//! Merging is exact and commutative, so the result is the same to the bit for any number of
//! threads, any order and any cut of the samples into calls of [`Calibration::feed`].

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::{Layout, NumpyHistogram, Observation, Observations};
use crate::engine::{Engine, EngineError};
use crate::graph::Model;
use crate::samples::{self, Encoded, InputSpec, SampleError};

/// Why a sample could not be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum FeedError {
    #[error("{0}")]
    Sample(#[from] SampleError),
    #[error("sample `{sample}`: {source}")]
    Run { sample: String, source: EngineError },
    #[error("stopped on request")]
    Stopped,
    #[error(
        "the second pass over the samples saw {again} values of `{tensor}` and the first {first}: give the same \
         samples both times"
    )]
    OtherSamples {
        tensor: String,
        first: u64,
        again: u64,
    },
}

/// A calibration under way.
pub struct Calibration {
    engine: Engine,
    watched: Vec<String>,
    inputs: Vec<InputSpec>,
    settings: samples::Settings,
    seen: Vec<Observation>,
    /// What the second pass counted so far; empty in the first.
    counted: Vec<NumpyHistogram>,
    done: usize,
}

impl Calibration {
    /// Begins: `watched` are the values whose ranges are wanted.
    pub fn new(
        model: Model,
        watched: Vec<String>,
        inputs: Vec<InputSpec>,
        settings: samples::Settings,
    ) -> Calibration {
        let seen = watched.iter().map(|_| Observation::new()).collect();
        let engine = Engine::new(model, watched.clone());
        Calibration {
            engine,
            watched,
            inputs,
            settings,
            seen,
            counted: Vec::new(),
            done: 0,
        }
    }

    /// How many samples were run, in this pass.
    pub fn done(&self) -> usize {
        self.done
    }

    /// What a second pass counts, once it began.
    pub fn second_pass(&self) -> Option<Layout> {
        self.counted.first().map(NumpyHistogram::layout)
    }

    /// Begins the second pass: the same samples are to be fed again, and are counted between the ends that
    /// the first pass found.
    pub fn begin_second_pass(&mut self, layout: Layout) {
        let empty = |seen| NumpyHistogram::new(layout, seen);
        self.counted = self.seen.iter().map(empty).collect();
        self.done = 0;
    }

    /// Decodes and runs some samples. A sample counts whole or not at all: where this fails or is
    /// stopped, what was seen of the samples before stays. Of several bad samples the first is named.
    ///
    /// `finished` is called with each sample's name and how many are done, from any thread.
    pub fn feed(
        &mut self,
        encoded: &[Encoded],
        finished: impl Fn(&str, usize) + Sync,
        stop: impl Fn() -> bool + Sync,
    ) -> Result<(), FeedError> {
        let result = if self.counted.is_empty() {
            let mut seen = std::mem::take(&mut self.seen);
            let none: Vec<_> = seen.iter().map(|_| Observation::new()).collect();
            let look = |one: &mut Observation, values: &[f32]| one.observe(values);
            let merge = |all: &mut Observation, one: &mut Observation| {
                one.end_sample();
                all.merge(one);
            };
            let result = self.run(encoded, &mut seen, &none, look, merge, finished, stop);
            self.seen = seen;
            result
        } else {
            let mut counted = std::mem::take(&mut self.counted);
            let none: Vec<_> = counted.iter().map(NumpyHistogram::emptied).collect();
            let look = |one: &mut NumpyHistogram, values: &[f32]| one.count(values);
            let merge = |all: &mut NumpyHistogram, one: &mut NumpyHistogram| all.merge(one);
            let result = self.run(encoded, &mut counted, &none, look, merge, finished, stop);
            self.counted = counted;
            result
        };
        let (done, result) = result;
        self.done = done;
        result
    }

    /// Runs some samples: each looks at its values in a copy of `none`, which is merged into `all` once it ran
    /// to its end. How many samples are done by then, and the first failure.
    #[allow(clippy::too_many_arguments)]
    fn run<Seen: Clone + Send + Sync>(
        &self,
        encoded: &[Encoded],
        all: &mut Vec<Seen>,
        none: &[Seen],
        look: impl Fn(&mut Seen, &[f32]) + Sync,
        merge: impl Fn(&mut Seen, &mut Seen) + Sync,
        finished: impl Fn(&str, usize) + Sync,
        stop: impl Fn() -> bool + Sync,
    ) -> (usize, Result<(), FeedError>) {
        let merged = Mutex::new(all);
        let done = AtomicUsize::new(self.done);
        let run = |sample: &Encoded| -> Result<(), FeedError> {
            if stop() {
                return Err(FeedError::Stopped);
            }
            let mut seen = none.to_vec();
            self.sample(sample, |slot, values| look(&mut seen[slot], values), &stop)?;
            let mut merged = merged.lock().unwrap_or_else(PoisonError::into_inner);
            for (all, one) in merged.iter_mut().zip(&mut seen) {
                merge(all, one);
            }
            drop(merged);
            finished(&sample.name, done.fetch_add(1, Ordering::Relaxed) + 1);
            Ok(())
        };
        let results: Vec<Result<(), FeedError>> = encoded.par_iter().map(run).collect();
        (done.into_inner(), results.into_iter().collect())
    }

    fn sample(
        &self,
        sample: &Encoded,
        look: impl FnMut(usize, &[f32]),
        stop: &(impl Fn() -> bool + Sync),
    ) -> Result<(), FeedError> {
        let tensors = samples::decode(sample, &self.inputs, &self.settings)?;
        match self.engine.run(&tensors, look, stop) {
            Ok(_) => Ok(()),
            Err(EngineError::Stopped) => Err(FeedError::Stopped),
            Err(source) => Err(FeedError::Run {
                sample: sample.name.clone(),
                source,
            }),
        }
    }

    /// What was seen of each watched value. Fails where a second pass was not over the samples of the first.
    pub fn finish(mut self) -> Result<Observations, FeedError> {
        let counted = self.watched.iter().zip(&mut self.seen).zip(self.counted);
        for ((tensor, seen), counted) in counted {
            let (first, again) = (seen.finite_count(), counted.total());
            if first != again && !counted.edges().is_empty() {
                let tensor = tensor.clone();
                return Err(FeedError::OtherSamples {
                    tensor,
                    first,
                    again,
                });
            }
            seen.set_second_pass(counted);
        }
        Ok(self.watched.into_iter().zip(self.seen).collect())
    }
}
