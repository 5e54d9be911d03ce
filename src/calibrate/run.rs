//! The calibration run: samples in parallel, one a thread, their observations merged.
//!
//! Merging is exact and commutative, so the result is the same to the bit for any number of threads, any order and
//! any way the samples come: some at a time ([`Calibration::feed`]) or each as soon as it is there
//! ([`Calibration::begin`]), so that no thread waits for the slowest of a portion.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rayon::prelude::*;

use super::aside::Aside;
pub use super::aside::Explain;
use super::further::Counted;
pub use super::further::Further;
use super::pass::{Found, Pass, Task};
use super::{Layout, Observation, Observations, Range, Reach};
use crate::engine::{Engine, EngineError};
use crate::samples::{self, BadSamples, Encoded, InputSpec, SampleError, Skipped};

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
    #[error("{0} samples are still being run: wait for them first")]
    UnderWay(usize),
    #[error(
        "the second pass over the samples saw {again} values of `{tensor}` and the first {first}: give the same \
         samples both times"
    )]
    OtherSamples {
        tensor: String,
        first: u64,
        again: u64,
    },
    #[error(
        "the samples are run again, and {again} of {first} were run to their end: give the same samples both times, or \
         calibrate anew where one of them failed"
    )]
    OtherCount { first: usize, again: usize },
}

impl FeedError {
    /// Whether other samples may go well all the same.
    pub(super) fn is_of_sample(&self) -> bool {
        matches!(self, FeedError::Sample(_) | FeedError::Run { .. })
    }
}

/// Hears of a sample's name and the place of a watched value once that was looked at, from any thread.
pub type Looked = Box<dyn Fn(&str, usize) + Send + Sync>;

/// A value that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Its name.
    pub name: String,
    /// The axis of its channels where their means are wanted.
    pub means: Option<usize>,
    /// The same where it is wanted how far they reach.
    pub reach: Option<usize>,
    /// The same where it is wanted how far they vary.
    pub spread: Option<usize>,
}

/// A calibration under way.
pub struct Calibration {
    watched: Vec<String>,
    pass: Arc<Pass>,
    /// How many samples of this pass were begun.
    begun: usize,
    /// How many samples the first pass ran, once another began.
    first: Option<usize>,
    /// What a further pass counted, or counts.
    layout: Option<Layout>,
    moments: bool,
}

impl Calibration {
    /// Begins: `watched` are the values whose ranges are wanted; `engine` runs the model watching them. `looked` hears of each
    /// as soon as it was looked at.
    pub fn new(
        engine: Arc<Engine>,
        watched: Vec<Watched>,
        inputs: Vec<InputSpec>,
        settings: samples::Settings,
        looked: Looked,
    ) -> Calibration {
        let names = watched.iter().map(|one| one.name.clone()).collect();
        let skips = settings.bad_samples == BadSamples::Skip;
        let task = Task {
            inputs,
            settings,
            looked,
            watched,
            aside: Aside::default(),
        };
        let pass = Pass::new(engine, Arc::new(task));
        pass.skips.store(skips, Ordering::Relaxed);
        Calibration {
            watched: names,
            pass: Arc::new(pass),
            begun: 0,
            first: None,
            layout: None,
            moments: false,
        }
    }

    /// The same, and `explain` is asked why a sample can't be run.
    pub fn explaining(self, explain: Explain) -> Calibration {
        self.pass.task.aside.explain(explain);
        self
    }

    /// How many samples were run, in this pass.
    pub fn done(&self) -> usize {
        self.pass.done.load(Ordering::Relaxed)
    }

    /// The samples that were left out, in the order they were fed, each with its reason.
    pub fn skipped(&self) -> Vec<Skipped> {
        self.pass.task.aside.list()
    }

    /// Why there is nothing where no sample was run: what was wrong with the first.
    pub fn nothing(&self) -> Option<FeedError> {
        self.pass.task.aside.first()
    }

    /// The least and the greatest value of each watched value in the samples that have ended, where there was any.
    pub fn so_far(&self) -> Vec<(&str, Option<Range>)> {
        let found = self.pass.found();
        let range = |seen: &Observation| Some(Range::new(seen.min()?, seen.max()?));
        let names = self.watched.iter().map(String::as_str);
        names.zip(found.seen.iter().map(range)).collect()
    }

    /// What a pass counts or counted, once it began.
    pub fn layout(&self) -> Option<Layout> {
        self.layout
    }

    /// Whether a pass looks or looked at what weights are multiplied with.
    pub fn has_moments(&self) -> bool {
        self.moments
    }

    /// Begins a further pass: the same samples are to be fed again.
    pub fn begin_pass(&mut self, further: Further) -> Result<(), FeedError> {
        self.settle()?;
        self.end_pass()?;
        self.first.get_or_insert(self.done());
        let mut found = self.pass.found();
        match further {
            Further::Histograms(layout) => self.layout = Some(layout),
            Further::Moments(_) => self.moments = true,
        }
        found.counted = Counted::nothing(further, &self.watched, &found.seen);
        drop(found);
        self.pass.done.store(0, Ordering::Relaxed);
        self.pass.skips.store(false, Ordering::Relaxed);
        self.begun = 0;
        Ok(())
    }

    /// How far the channels of values reached so far, where that is wanted.
    pub fn reaches(&self) -> BTreeMap<String, Reach> {
        let found = self.pass.found();
        let reach = |(name, seen): (&String, &Observation)| {
            Some((name.clone(), seen.reach_by_channel()?.clone()))
        };
        self.watched
            .iter()
            .zip(&found.seen)
            .filter_map(reach)
            .collect()
    }

    /// Begins from the beginning with a model that was changed by what was seen, which is forgotten: the same samples are to be fed
    /// again.
    pub fn begin_anew(&mut self, engine: Arc<Engine>) -> Result<(), FeedError> {
        self.settle()?;
        self.first.get_or_insert(self.done());
        let task = Arc::clone(&self.pass.task);
        self.pass = Arc::new(Pass::new(engine, task));
        (self.begun, self.layout, self.moments) = (0, None, false);
        Ok(())
    }

    /// Puts what a further pass counted to what was seen. Fails where it was not over the samples of the first.
    fn end_pass(&mut self) -> Result<(), FeedError> {
        let (again, spoilt) = (self.done(), self.pass.spoilt.load(Ordering::Relaxed));
        if let Some(first) = self.first.filter(|&first| first != again || spoilt) {
            return Err(FeedError::OtherCount { first, again });
        }
        let mut found = self.pass.found();
        let Found { seen, counted } = &mut *found;
        std::mem::take(counted).end(&self.watched, seen)
    }

    /// Decodes and runs some samples, each of which is given up once it is decoded, and waits for them. A sample counts whole or not at all: where this fails or
    /// is stopped, what was seen of the samples before stays. A bad sample is left out, or ends this where the settings say so; of
    /// several the first is named.
    ///
    /// `finished` is called with each sample's name and how many are done, from any thread.
    pub fn feed(
        &mut self,
        encoded: Vec<Encoded>,
        finished: impl Fn(&str, usize) + Sync,
        stop: impl Fn() -> bool + Sync,
    ) -> Result<(), FeedError> {
        let begun = self.begun;
        self.begun += encoded.len();
        let run = |(at, sample)| self.pass.take(begun + at, sample, &finished, &stop);
        let samples = encoded.into_par_iter().enumerate();
        let results: Vec<Result<(), FeedError>> = samples.map(run).collect();
        results.into_iter().collect()
    }

    /// Begins to run a sample, and comes back at once if there are threads for it. [`Calibration::settle`] tells how
    /// it went. Once a sample has failed and was not left out no other begins, and the answer is no.
    ///
    /// `finished` is called as in [`Calibration::feed`], and `ended` when the sample is under way no longer, well
    /// or not.
    pub fn begin(
        &mut self,
        sample: Encoded,
        finished: impl Fn(&str, usize) + Send + 'static,
        stop: impl Fn() -> bool + Send + 'static,
        ended: impl FnOnce() + Send + 'static,
    ) -> bool {
        if self.pass.failed().is_some() {
            return false;
        }
        let place = self.begun;
        self.begun += 1;
        let pass = Arc::clone(&self.pass);
        pass.under_way.fetch_add(1, Ordering::AcqRel);
        let run = move || {
            if let Err(cause) = pass.take(place, sample, finished, stop) {
                let mut failed = pass.failed();
                if failed.as_ref().is_none_or(|&(first, _)| place < first) {
                    *failed = Some((place, cause));
                }
            }
            pass.under_way.fetch_sub(1, Ordering::AcqRel);
            ended();
        };
        // Where there is no other thread, none would come to run it.
        match rayon::current_num_threads() {
            1 => run(),
            _ => rayon::spawn(run),
        }
        true
    }

    /// How many of the samples begun have not ended.
    pub fn under_way(&self) -> usize {
        self.pass.under_way.load(Ordering::Acquire)
    }

    /// How the samples went that were begun, all of which have ended: of several bad ones the first is named.
    pub fn settle(&mut self) -> Result<(), FeedError> {
        match self.under_way() {
            0 => self
                .pass
                .failed()
                .take()
                .map_or(Ok(()), |(_, cause)| Err(cause)),
            some => Err(FeedError::UnderWay(some)),
        }
    }

    /// What was seen of each watched value. Fails where a further pass was not over the samples of the first.
    pub fn finish(mut self) -> Result<Observations, FeedError> {
        self.settle()?;
        self.end_pass()?;
        let seen = std::mem::take(&mut self.pass.found().seen);
        Ok(self.watched.into_iter().zip(seen).collect())
    }
}
