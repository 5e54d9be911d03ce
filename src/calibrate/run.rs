//! The calibration run: samples in parallel, one a thread, their observations merged.
//!
//! Merging is exact and commutative, so the result is the same to the bit for any number of
//! threads, any order and any cut of the samples into calls of [`Calibration::feed`].

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::{Observation, Observations};
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
}

/// A calibration under way.
pub struct Calibration {
    engine: Engine,
    watched: Vec<String>,
    inputs: Vec<InputSpec>,
    settings: samples::Settings,
    seen: Vec<Observation>,
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
            done: 0,
        }
    }

    /// How many samples were run.
    pub fn done(&self) -> usize {
        self.done
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
        let merged = Mutex::new(std::mem::take(&mut self.seen));
        let done = AtomicUsize::new(self.done);
        let run = |sample: &Encoded| -> Result<(), FeedError> {
            if stop() {
                return Err(FeedError::Stopped);
            }
            let seen = self.observe(sample, &stop)?;
            let mut merged = merged.lock().unwrap_or_else(PoisonError::into_inner);
            for (all, one) in merged.iter_mut().zip(&seen) {
                all.merge(one);
            }
            drop(merged);
            finished(&sample.name, done.fetch_add(1, Ordering::Relaxed) + 1);
            Ok(())
        };
        let results: Vec<Result<(), FeedError>> = encoded.par_iter().map(run).collect();
        self.seen = merged.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.done = done.into_inner();
        results.into_iter().collect()
    }

    fn observe(
        &self,
        sample: &Encoded,
        stop: &(impl Fn() -> bool + Sync),
    ) -> Result<Vec<Observation>, FeedError> {
        let tensors = samples::decode(sample, &self.inputs, &self.settings)?;
        let mut seen: Vec<Observation> = self.watched.iter().map(|_| Observation::new()).collect();
        let run = self
            .engine
            .run(&tensors, |slot, values| seen[slot].observe(values), stop);
        match run {
            Ok(_) => Ok(seen),
            Err(EngineError::Stopped) => Err(FeedError::Stopped),
            Err(source) => Err(FeedError::Run {
                sample: sample.name.clone(),
                source,
            }),
        }
    }

    /// What was seen of each watched value.
    pub fn finish(self) -> Observations {
        self.watched.into_iter().zip(self.seen).collect()
    }
}
