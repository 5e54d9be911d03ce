//! The calibration run: samples run in parallel, one per thread, and their statistics are merged.
//!
//! Merging is exact and commutative. The result is therefore identical to the bit for any number of
//! threads and any order of the samples. Samples come in batches ([`Calibration::feed`]) or one by
//! one ([`Calibration::begin`]); with the latter no thread waits for the slowest sample of a batch.

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

/// Reason for which a sample could not be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum FeedError {
    #[error("{0}")]
    Sample(#[from] SampleError),
    #[error("sample `{sample}`: {source}")]
    Run { sample: String, source: EngineError },
    #[error("stopped on request")]
    Stopped,
    #[error("{0} samples are still running: wait until they end")]
    UnderWay(usize),
    #[error(
        "the second pass over the samples counted {again} values of `{tensor}` and the first {first}: use the same \
         samples in both passes"
    )]
    OtherSamples {
        tensor: String,
        first: u64,
        again: u64,
    },
    #[error(
        "the second pass completed {again} samples and the first {first}: use the same samples in both passes, or \
         restart the calibration if a sample failed"
    )]
    OtherCount { first: usize, again: usize },
}

impl FeedError {
    /// Returns true if the error concerns this sample alone, so that others may still run.
    pub(super) fn is_of_sample(&self) -> bool {
        matches!(self, FeedError::Sample(_) | FeedError::Run { .. })
    }
}

/// Callback for a sample's name and the index of a watched value, after that value was observed. It
/// is called from any thread.
pub type Looked = Box<dyn Fn(&str, usize) + Send + Sync>;

/// A value whose statistics are collected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Name of the value.
    pub name: String,
    /// Channel axis, if channel means are requested.
    pub means: Option<usize>,
    /// Channel axis, if the greatest magnitude per channel is requested.
    pub reach: Option<usize>,
    /// Channel axis, if the variance per channel is requested.
    pub spread: Option<usize>,
}

/// A calibration in progress.
pub struct Calibration {
    watched: Vec<String>,
    pass: Arc<Pass>,
    /// Number of samples begun in this pass.
    begun: usize,
    /// Number of samples of the first pass, set when another pass begins.
    first: Option<usize>,
    /// Histogram that an extra pass counts or counted.
    layout: Option<Layout>,
    moments: bool,
}

impl Calibration {
    /// Begins a calibration. `engine` runs the model and observes the values of `watched`. `looked`
    /// is called after each observed value.
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

    /// Sets the function that explains why a sample cannot run.
    pub fn explaining(self, explain: Explain) -> Calibration {
        self.pass.task.aside.explain(explain);
        self
    }

    /// Number of samples completed in this pass.
    pub fn done(&self) -> usize {
        self.pass.done.load(Ordering::Relaxed)
    }

    /// The skipped samples in the order of feeding, each with its reason.
    pub fn skipped(&self) -> Vec<Skipped> {
        self.pass.task.aside.list()
    }

    /// The error of the first skipped sample, for a calibration without any completed sample.
    pub fn nothing(&self) -> Option<FeedError> {
        self.pass.task.aside.first()
    }

    /// Minimum and maximum of each watched value over the completed samples.
    pub fn so_far(&self) -> Vec<(&str, Option<Range>)> {
        let found = self.pass.found();
        let range = |seen: &Observation| Some(Range::new(seen.min()?, seen.max()?));
        let names = self.watched.iter().map(String::as_str);
        names.zip(found.seen.iter().map(range)).collect()
    }

    /// Histogram that a pass counts or counted.
    pub fn layout(&self) -> Option<Layout> {
        self.layout
    }

    /// Returns true if a pass collects or collected Gram matrices.
    pub fn has_moments(&self) -> bool {
        self.moments
    }

    /// Begins an extra pass. The same samples must be fed again.
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

    /// Greatest magnitudes per channel so far, for the values that request them.
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

    /// Restarts with a model that was changed according to the statistics so far, and drops these.
    /// The same samples must be fed again.
    pub fn begin_anew(&mut self, engine: Arc<Engine>) -> Result<(), FeedError> {
        self.settle()?;
        self.first.get_or_insert(self.done());
        let task = Arc::clone(&self.pass.task);
        self.pass = Arc::new(Pass::new(engine, task));
        (self.begun, self.layout, self.moments) = (0, None, false);
        Ok(())
    }

    /// Adds the results of an extra pass to the statistics. Returns an error if its samples differ
    /// from those of the first.
    fn end_pass(&mut self) -> Result<(), FeedError> {
        let (again, spoilt) = (self.done(), self.pass.spoilt.load(Ordering::Relaxed));
        if let Some(first) = self.first.filter(|&first| first != again || spoilt) {
            return Err(FeedError::OtherCount { first, again });
        }
        let mut found = self.pass.found();
        let Found { seen, counted } = &mut *found;
        std::mem::take(counted).end(&self.watched, seen)
    }

    /// Decodes and runs a batch of samples, and waits for them. Each file is freed once it is
    /// decoded. A sample counts completely or not at all: after an error or a stop, the statistics
    /// of the completed samples stay. A bad sample is skipped or ends the batch, as the settings
    /// say; the error names the first bad sample.
    ///
    /// `finished` is called with each sample's name and the number of completed samples, from any
    /// thread.
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

    /// Starts a sample, and returns at once if there are threads for it. [`Calibration::settle`]
    /// returns the results. Once a sample has failed and was not skipped, this starts no other and
    /// returns false.
    ///
    /// `finished` is called as in [`Calibration::feed`]. `ended` is called when the sample no
    /// longer runs, after success or failure.
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
        // Without another thread, nothing would run a spawned task.
        match rayon::current_num_threads() {
            1 => run(),
            _ => rayon::spawn(run),
        }
        true
    }

    /// Number of samples started but not ended.
    pub fn under_way(&self) -> usize {
        self.pass.under_way.load(Ordering::Acquire)
    }

    /// Result of the started samples, all of which must have ended. Returns the error of the first
    /// bad sample.
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

    /// Statistics of each watched value. Returns an error if an extra pass ran other samples than
    /// the first.
    pub fn finish(mut self) -> Result<Observations, FeedError> {
        self.settle()?;
        self.end_pass()?;
        let seen = std::mem::take(&mut self.pass.found().seen);
        Ok(self.watched.into_iter().zip(seen).collect())
    }
}
