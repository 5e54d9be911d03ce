//! One pass over the samples: the state that its threads share, and the run of one sample.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::FeedError;
use super::extra_pass::ExtraStatistics;
use super::skipped::SkippedSamples;
use super::watched_value::{ValueCallback, WatchedValue};
use crate::runtime::{Engine, EngineError};
use crate::samples::{self, Encoded, InputSpec};
use crate::stats::{NumpyHistogram, TensorStatistics};
use crate::tensor::Tensor;

/// Everything that the passes of a calibration have in common.
pub(super) struct Task {
    pub(super) inputs: Vec<InputSpec>,
    pub(super) settings: samples::SampleSettings,
    pub(super) on_value: ValueCallback,
    pub(super) watched: Vec<WatchedValue>,
    /// The samples skipped so far.
    pub(super) skipped: SkippedSamples,
}

/// State of one pass, shared by the threads that run its samples.
pub(super) struct Pass {
    pub(super) engine: Arc<Engine>,
    pub(super) task: Arc<Task>,
    pub(super) state: Mutex<PassState>,
    pub(super) done: AtomicUsize,
    pub(super) under_way: AtomicUsize,
    /// True after a sample failed in the middle of a pass that adds samples while they run.
    pub(super) incomplete: AtomicBool,
    /// True if this pass skips bad samples. An extra pass must run every sample that the first pass
    /// ran.
    pub(super) skip_bad: AtomicBool,
    /// Index and error of the first sample that failed.
    pub(super) failed: Mutex<Option<(usize, FeedError)>>,
}

/// Statistics of all watched values.
pub(super) struct PassState {
    pub(super) stats: Vec<TensorStatistics>,
    /// Statistics of an extra pass so far.
    pub(super) counted: ExtraStatistics,
}

impl Pass {
    pub(super) fn new(engine: Arc<Engine>, task: Arc<Task>) -> Pass {
        let state = PassState {
            stats: vec![TensorStatistics::new(); task.watched.len()],
            counted: ExtraStatistics::Nothing,
        };
        Pass {
            engine,
            task,
            state: Mutex::new(state),
            done: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            incomplete: AtomicBool::new(false),
            skip_bad: AtomicBool::new(false),
            failed: Mutex::default(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, PassState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn failed(&self) -> MutexGuard<'_, Option<(usize, FeedError)>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a sample. Skips it if it is bad and the settings allow this.
    pub(super) fn run_or_skip(
        &self,
        place: usize,
        sample: Encoded,
        finished: impl Fn(&str, usize),
        stop: impl Fn() -> bool,
    ) -> Result<(), FeedError> {
        let skipped = &self.task.skipped;
        if skipped.contains(place) {
            return Ok(());
        }
        let name = sample.name.clone();
        let failed = match self.run(sample, finished, stop) {
            Err(cause) if self.skip_bad.load(Ordering::Relaxed) && cause.is_of_sample() => cause,
            other => return other,
        };
        skipped.add(place, name, failed);
        Ok(())
    }

    /// Runs one sample, and merges its statistics after a complete run.
    fn run(
        &self,
        sample: Encoded,
        finished: impl Fn(&str, usize),
        stop: impl Fn() -> bool,
    ) -> Result<(), FeedError> {
        if stop() {
            return Err(FeedError::Stopped);
        }
        let tensors = samples::decode(&sample, &self.task.inputs, &self.task.settings)?;
        let shapes: Vec<Vec<usize>> = tensors.iter().map(|t| t.shape().to_vec()).collect();
        if let Some(cause) = self.task.skipped.known_error(&sample.name, &shapes) {
            return Err(cause);
        }
        // Frees the file contents, which are not needed during the run.
        let Encoded { name, parts } = sample;
        drop(parts);
        let mut state = self.state();
        match &mut state.counted {
            ExtraStatistics::Nothing => {
                let mut stats = vec![TensorStatistics::new(); state.stats.len()];
                let bins: Vec<_> = state.stats.iter().map(|s| s.histogram().layout()).collect();
                drop(state);
                let observe = |slot: usize, values: &[f32], shape: &[usize]| {
                    stats[slot].observe_with_bins(values, bins[slot]);
                    let WatchedValue {
                        channel_means,
                        channel_abs_max,
                        channel_variance,
                        ..
                    } = self.task.watched[slot];
                    if let Some(axis) = channel_means {
                        stats[slot].observe_channel_means(values, shape, axis);
                    }
                    if let Some(axis) = channel_abs_max {
                        stats[slot].observe_abs_max(values, shape, axis);
                    }
                    if let Some(axis) = channel_variance {
                        stats[slot].observe_variance(values, shape, axis);
                    }
                };
                self.run_model(&name, &shapes, tensors, observe, &stop)?;
                for (all, one) in self.state().stats.iter_mut().zip(&mut stats) {
                    one.end_sample();
                    all.merge(one);
                }
            }
            ExtraStatistics::Histograms(counted) => {
                let mut counted: Vec<_> = counted.iter().map(NumpyHistogram::emptied).collect();
                drop(state);
                let observe =
                    |slot: usize, values: &[f32], _: &[usize]| counted[slot].count(values);
                self.run_model(&name, &shapes, tensors, observe, &stop)?;
                if let ExtraStatistics::Histograms(all) = &mut self.state().counted {
                    for (all, one) in all.iter_mut().zip(&counted) {
                        all.merge(one);
                    }
                }
            }
            ExtraStatistics::InputGrams(grams) => {
                let grams = Arc::clone(grams);
                drop(state);
                let observe = |slot: usize, values: &[f32], shape: &[usize]| {
                    for grams in &grams[slot] {
                        let mut grams = grams.lock().unwrap_or_else(PoisonError::into_inner);
                        grams.observe(values, shape);
                    }
                };
                let watched = self.run_model(&name, &shapes, tensors, observe, &stop);
                self.incomplete
                    .fetch_or(watched.is_err(), Ordering::Relaxed);
                watched?;
            }
        }
        finished(&name, self.done.fetch_add(1, Ordering::Relaxed) + 1);
        Ok(())
    }

    fn run_model(
        &self,
        sample: &str,
        shapes: &[Vec<usize>],
        tensors: Vec<Tensor>,
        mut observe: impl FnMut(usize, &[f32], &[usize]),
        stop: &impl Fn() -> bool,
    ) -> Result<(), FeedError> {
        let observe = |slot: usize, values: &[f32], shape: &[usize]| {
            observe(slot, values, shape);
            (self.task.on_value)(sample, slot);
        };
        match self.engine.run_shaped(tensors, observe, stop) {
            Ok(_) => Ok(()),
            Err(EngineError::Stopped) => Err(FeedError::Stopped),
            Err(source) => Err(self.task.skipped.run_error(sample, shapes, source)),
        }
    }
}
