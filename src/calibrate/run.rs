//! The calibration run: samples run in parallel, one per thread, and their statistics are merged.
//!
//! Merging is exact and commutative. The result is therefore identical to the bit for any number of
//! threads and any order of the samples. Samples come in batches ([`CalibrationRun::feed`]) or one by
//! one ([`CalibrationRun::begin`]); with the latter no thread waits for the slowest sample of a batch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rayon::prelude::*;

pub use super::error::FeedError;
pub use super::extra_pass::ExtraPass;
use super::extra_pass::ExtraStatistics;
use super::pass::{Pass, PassState, Task};
pub use super::skipped::ExplainShapes;
use super::skipped::SkippedSamples;
pub use super::watched_value::{ValueCallback, WatchedValue};
use crate::runtime::Engine;
use crate::samples::{self, BadSamples, Encoded, InputSpec, Skipped};
use crate::stats::{
    CalibrationStatistics, ChannelAbsMax, HistogramLayout, Range, TensorStatistics,
};

/// A calibration in progress.
pub struct CalibrationRun {
    pub(super) watched: Vec<String>,
    pub(super) pass: Arc<Pass>,
    /// Number of samples begun in this pass.
    begun: usize,
    /// Number of samples of the first pass, set when another pass begins.
    first: Option<usize>,
    /// Histogram that an extra pass counts or counted.
    layout: Option<HistogramLayout>,
    input_grams: bool,
}

impl CalibrationRun {
    /// Begins a calibration. `engine` runs the model and observes the values of `watched`. `on_value`
    /// is called after each observed value.
    pub fn new(
        engine: Arc<Engine>,
        watched: Vec<WatchedValue>,
        inputs: Vec<InputSpec>,
        settings: samples::SampleSettings,
        on_value: ValueCallback,
    ) -> CalibrationRun {
        let names = watched.iter().map(|one| one.name.clone()).collect();
        let skip_bad = settings.bad_samples == BadSamples::Skip;
        let task = Task {
            inputs,
            settings,
            on_value,
            watched,
            skipped: SkippedSamples::default(),
        };
        let pass = Pass::new(engine, Arc::new(task));
        pass.skip_bad.store(skip_bad, Ordering::Relaxed);
        CalibrationRun {
            watched: names,
            pass: Arc::new(pass),
            begun: 0,
            first: None,
            layout: None,
            input_grams: false,
        }
    }

    /// Sets the function that explains why a sample cannot run.
    pub fn with_explanation(self, explain: ExplainShapes) -> CalibrationRun {
        self.pass.task.skipped.explain(explain);
        self
    }

    /// Number of samples completed in this pass.
    pub fn done(&self) -> usize {
        self.pass.done.load(Ordering::Relaxed)
    }

    /// The skipped samples in the order of feeding, each with its reason.
    pub fn skipped(&self) -> Vec<Skipped> {
        self.pass.task.skipped.list()
    }

    /// The error of the first skipped sample, for a calibration without any completed sample.
    pub fn first_error(&self) -> Option<FeedError> {
        self.pass.task.skipped.take_first()
    }

    /// Minimum and maximum of each watched value over the completed samples.
    pub fn so_far(&self) -> Vec<(&str, Option<Range>)> {
        let state = self.pass.state();
        let range = |stats: &TensorStatistics| Some(Range::new(stats.min()?, stats.max()?));
        let names = self.watched.iter().map(String::as_str);
        names.zip(state.stats.iter().map(range)).collect()
    }

    /// Histogram that a pass counts or counted.
    pub fn layout(&self) -> Option<HistogramLayout> {
        self.layout
    }

    /// Returns true if a pass collects or collected Gram matrices.
    pub fn has_input_grams(&self) -> bool {
        self.input_grams
    }

    /// Begins an extra pass. The same samples must be fed again.
    pub fn begin_pass(&mut self, further: ExtraPass) -> Result<(), FeedError> {
        self.settle()?;
        self.end_pass()?;
        self.first.get_or_insert(self.done());
        let mut state = self.pass.state();
        match further {
            ExtraPass::Histograms(layout) => self.layout = Some(layout),
            ExtraPass::InputGrams(_) => self.input_grams = true,
        }
        state.counted = ExtraStatistics::new(further, &self.watched, &state.stats);
        drop(state);
        self.pass.done.store(0, Ordering::Relaxed);
        self.pass.skip_bad.store(false, Ordering::Relaxed);
        self.begun = 0;
        Ok(())
    }

    /// Greatest magnitudes per channel so far, for the values that request them.
    pub fn channel_abs_max(&self) -> BTreeMap<String, ChannelAbsMax> {
        let state = self.pass.state();
        let abs_max = |(name, stats): (&String, &TensorStatistics)| {
            Some((name.clone(), stats.channel_abs_max()?.clone()))
        };
        self.watched
            .iter()
            .zip(&state.stats)
            .filter_map(abs_max)
            .collect()
    }

    /// Restarts with a model that was changed according to the statistics so far, and drops these.
    /// The same samples must be fed again.
    pub fn restart(&mut self, engine: Arc<Engine>) -> Result<(), FeedError> {
        self.settle()?;
        self.first.get_or_insert(self.done());
        let task = Arc::clone(&self.pass.task);
        self.pass = Arc::new(Pass::new(engine, task));
        (self.begun, self.layout, self.input_grams) = (0, None, false);
        Ok(())
    }

    /// Adds the results of an extra pass to the statistics. Returns an error if its samples differ
    /// from those of the first.
    fn end_pass(&mut self) -> Result<(), FeedError> {
        let (again, incomplete) = (self.done(), self.pass.incomplete.load(Ordering::Relaxed));
        if let Some(first) = self.first.filter(|&first| first != again || incomplete) {
            return Err(FeedError::OtherCount { first, again });
        }
        let mut state = self.pass.state();
        let PassState { stats, counted } = &mut *state;
        std::mem::take(counted).end(&self.watched, stats)
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
        let run = |(at, sample)| self.pass.run_or_skip(begun + at, sample, &finished, &stop);
        let samples = encoded.into_par_iter().enumerate();
        let results: Vec<Result<(), FeedError>> = samples.map(run).collect();
        results.into_iter().collect()
    }

    /// Starts a sample, and returns at once if there are threads for it. [`CalibrationRun::settle`]
    /// returns the results. Once a sample has failed and was not skipped, this starts no other and
    /// returns false.
    ///
    /// `finished` is called as in [`CalibrationRun::feed`]. `ended` is called when the sample no
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
            if let Err(cause) = pass.run_or_skip(place, sample, finished, stop) {
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
    pub fn finish(mut self) -> Result<CalibrationStatistics, FeedError> {
        self.settle()?;
        self.end_pass()?;
        let stats = std::mem::take(&mut self.pass.state().stats);
        Ok(self.watched.into_iter().zip(stats).collect())
    }
}
