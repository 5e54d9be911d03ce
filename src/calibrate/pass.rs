//! One pass over the samples: the state that its threads share, and the run of one sample.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::aside::Aside;
use super::further::Counted;
use super::run::{FeedError, Looked, Watched};
use super::{NumpyHistogram, Observation};
use crate::engine::{Engine, EngineError};
use crate::samples::{self, Encoded, InputSpec};
use crate::tensor::Tensor;

/// Everything that the passes of a calibration have in common.
pub(super) struct Task {
    pub(super) inputs: Vec<InputSpec>,
    pub(super) settings: samples::Settings,
    pub(super) looked: Looked,
    pub(super) watched: Vec<Watched>,
    /// The samples skipped so far.
    pub(super) aside: Aside,
}

/// State of one pass, shared by the threads that run its samples.
pub(super) struct Pass {
    pub(super) engine: Arc<Engine>,
    pub(super) task: Arc<Task>,
    pub(super) found: Mutex<Found>,
    pub(super) done: AtomicUsize,
    pub(super) under_way: AtomicUsize,
    /// True after a sample failed in the middle of a pass that adds samples while they run.
    pub(super) spoilt: AtomicBool,
    /// True if this pass skips bad samples. An extra pass must run every sample that the first pass
    /// ran.
    pub(super) skips: AtomicBool,
    /// Index and error of the first sample that failed.
    pub(super) failed: Mutex<Option<(usize, FeedError)>>,
}

/// Statistics of all watched values.
pub(super) struct Found {
    pub(super) seen: Vec<Observation>,
    /// Statistics of an extra pass so far.
    pub(super) counted: Counted,
}

impl Pass {
    pub(super) fn new(engine: Arc<Engine>, task: Arc<Task>) -> Pass {
        let found = Found {
            seen: vec![Observation::new(); task.watched.len()],
            counted: Counted::Nothing,
        };
        Pass {
            engine,
            task,
            found: Mutex::new(found),
            done: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            spoilt: AtomicBool::new(false),
            skips: AtomicBool::new(false),
            failed: Mutex::default(),
        }
    }

    pub(super) fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn failed(&self) -> MutexGuard<'_, Option<(usize, FeedError)>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a sample. Skips it if it is bad and the settings allow this.
    pub(super) fn take(
        &self,
        place: usize,
        sample: Encoded,
        finished: impl Fn(&str, usize),
        stop: impl Fn() -> bool,
    ) -> Result<(), FeedError> {
        let aside = &self.task.aside;
        if aside.has(place) {
            return Ok(());
        }
        let name = sample.name.clone();
        let failed = match self.run(sample, finished, stop) {
            Err(cause) if self.skips.load(Ordering::Relaxed) && cause.is_of_sample() => cause,
            other => return other,
        };
        aside.put(place, name, failed);
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
        if let Some(cause) = self.task.aside.known(&sample.name, &shapes) {
            return Err(cause);
        }
        // Frees the file contents, which are not needed during the run.
        let Encoded { name, parts } = sample;
        drop(parts);
        let mut found = self.found();
        match &mut found.counted {
            Counted::Nothing => {
                let mut seen = vec![Observation::new(); found.seen.len()];
                let bins: Vec<_> = found.seen.iter().map(|s| s.histogram().shape()).collect();
                drop(found);
                let look = |slot: usize, values: &[f32], shape: &[usize]| {
                    seen[slot].observe_like(values, bins[slot]);
                    let Watched {
                        means,
                        reach,
                        spread,
                        ..
                    } = self.task.watched[slot];
                    if let Some(axis) = means {
                        seen[slot].observe_channels(values, shape, axis);
                    }
                    if let Some(axis) = reach {
                        seen[slot].observe_reach(values, shape, axis);
                    }
                    if let Some(axis) = spread {
                        seen[slot].observe_spread(values, shape, axis);
                    }
                };
                self.watch(&name, &shapes, tensors, look, &stop)?;
                for (all, one) in self.found().seen.iter_mut().zip(&mut seen) {
                    one.end_sample();
                    all.merge(one);
                }
            }
            Counted::Histograms(counted) => {
                let mut counted: Vec<_> = counted.iter().map(NumpyHistogram::emptied).collect();
                drop(found);
                let look = |slot: usize, values: &[f32], _: &[usize]| counted[slot].count(values);
                self.watch(&name, &shapes, tensors, look, &stop)?;
                if let Counted::Histograms(all) = &mut self.found().counted {
                    for (all, one) in all.iter_mut().zip(&counted) {
                        all.merge(one);
                    }
                }
            }
            Counted::Moments(moments) => {
                let moments = Arc::clone(moments);
                drop(found);
                let look = |slot: usize, values: &[f32], shape: &[usize]| {
                    for moments in &moments[slot] {
                        let mut moments = moments.lock().unwrap_or_else(PoisonError::into_inner);
                        moments.observe(values, shape);
                    }
                };
                let watched = self.watch(&name, &shapes, tensors, look, &stop);
                self.spoilt.fetch_or(watched.is_err(), Ordering::Relaxed);
                watched?;
            }
        }
        finished(&name, self.done.fetch_add(1, Ordering::Relaxed) + 1);
        Ok(())
    }

    fn watch(
        &self,
        sample: &str,
        shapes: &[Vec<usize>],
        tensors: Vec<Tensor>,
        mut look: impl FnMut(usize, &[f32], &[usize]),
        stop: &impl Fn() -> bool,
    ) -> Result<(), FeedError> {
        let look = |slot: usize, values: &[f32], shape: &[usize]| {
            look(slot, values, shape);
            (self.task.looked)(sample, slot);
        };
        match self.engine.run_shaped(tensors, look, stop) {
            Ok(_) => Ok(()),
            Err(EngineError::Stopped) => Err(FeedError::Stopped),
            Err(source) => Err(self.task.aside.refused(sample, shapes, source)),
        }
    }
}
