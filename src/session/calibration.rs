//! Calibration: the calls between the first sample and the ranges of all values.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::{Error, Event, ProgressMonitor, RangeSource, Session, sample_checks};
use crate::allocator;
use crate::calibrate::run::{CalibrationRun, ExtraPass, WatchedValue};
use crate::prepare::equalize;
use crate::profile::{Record, Stopwatch};
use crate::quantize;
use crate::samples::{self, Encoded, ShapeMismatch, Skipped};
use crate::stats::{Method, Range, SecondPassMissing};

/// Result of a calibration.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CalibrationSummary {
    /// Number of samples that ran.
    pub samples: usize,
    /// Samples that were fed and skipped, each with its reason.
    pub skipped: Vec<Skipped>,
    /// Number of values that have a range.
    pub values: usize,
    /// Changes that preparation made to the model, a sentence each.
    pub prepared: Vec<String>,
}

/// Records that a sample is done. Any thread may call it.
fn sample_done(
    name: &str,
    done: usize,
    stopwatch: &Stopwatch,
    checkpoints: &Mutex<Vec<Record>>,
    monitor: &dyn ProgressMonitor,
) {
    let checkpoint = stopwatch.checkpoint(format!("Calibration sample {name} done"));
    let mut checkpoints = checkpoints.lock().unwrap_or_else(PoisonError::into_inner);
    checkpoints.push(checkpoint);
    drop(checkpoints);
    let name = name.to_string();
    monitor.event(&Event::Sample { done, name });
}

impl Session {
    /// Prepares the model and begins a calibration; drops an unfinished one.
    ///
    /// It observes every value that any settings may need. Settings can therefore change afterwards
    /// without another calibration.
    pub fn begin_calibration(&mut self, samples: samples::SampleSettings) -> Result<(), Error> {
        self.calibration = None;
        self.equalized = None;
        self.comparisons.clear();
        self.profiler.resume();
        let inputs = self.input_specs();
        let planned = self.planned()?;
        let (engine, watched) = (planned.engine.clone(), planned.watched.clone());
        let ready = self.prepared.as_ref().ok_or(Error::NotCalibrating)?;
        self.report.calibrating(&samples, &ready.done);
        let mut layers = Vec::new();
        if self.each_layer {
            let uses = ready.model.graph.uses();
            let layer = |value: &String| match uses.producer(value) {
                Some(node) => ready.model.graph.nodes[node].title().to_string(),
                None => format!("input {value}"),
            };
            layers.extend(watched.iter().map(layer));
        }
        let (stopwatch, checkpoints) =
            (self.profiler.stopwatch().clone(), self.checkpoints.clone());
        let observed = move |name: &str, slot: usize| {
            let layer = layers.get(slot);
            let layer = layer.map(|layer| format!("Calibration sample {name} layer {layer}"));
            let records = [
                stopwatch.growth(),
                layer.map(|step| stopwatch.quick_checkpoint(step)),
            ];
            if records.iter().any(Option::is_some) {
                let mut checkpoints = checkpoints.lock().unwrap_or_else(PoisonError::into_inner);
                checkpoints.extend(records.into_iter().flatten());
            }
        };
        let observed = Box::new(observed);
        let mut means = quantize::channel_axes(&ready.model);
        let mut reach = match self.equalize {
            Some(_) => equalize::channels(&ready.model),
            None => BTreeMap::new(),
        };
        let mut spread = quantize::input_path_axes(&ready.model);
        let observation = |name: String| WatchedValue {
            channel_means: means.remove(&name),
            channel_abs_max: reach.remove(&name),
            channel_variance: spread.remove(&name),
            name,
        };
        let watched = watched.into_iter().map(observation).collect();
        let graph = ready.model.graph.clone();
        let open = sample_checks::any_open(&inputs);
        let explain = move |shapes: &[&[usize]]| match open {
            true => ShapeMismatch::find(&graph, shapes),
            false => None,
        };
        let begun = CalibrationRun::new(engine, watched, inputs, samples, observed);
        self.calibration = Some(begun.with_explanation(Box::new(explain)));
        self.profiler.begin("Calibration");
        Ok(())
    }

    /// Runs some samples. It may be called repeatedly; the result does not depend on how the
    /// samples are divided into calls.
    pub fn feed(
        &mut self,
        samples: Vec<Encoded>,
        monitor: &dyn ProgressMonitor,
    ) -> Result<(), Error> {
        let calibration = self.calibration.as_mut().ok_or(Error::NotCalibrating)?;
        let checkpoints = &self.checkpoints;
        let stopwatch = self.profiler.stopwatch();
        let finished = |name: &str, done| sample_done(name, done, stopwatch, checkpoints, monitor);
        let fed = calibration.feed(samples, finished, || monitor.cancelled());
        self.record_checkpoints();
        Ok(fed?)
    }

    /// Starts a sample and, where threads are available, returns before it ends, so that the next
    /// one can be read meanwhile.
    ///
    /// Returns false, and starts nothing, once another sample has failed. [`Session::settle`]
    /// returns the errors of the samples started so far.
    pub fn begin_sample(
        &mut self,
        sample: Encoded,
        monitor: &'static dyn ProgressMonitor,
    ) -> Result<bool, Error> {
        let calibration = self.calibration.as_mut().ok_or(Error::NotCalibrating)?;
        let checkpoints = Arc::clone(&self.checkpoints);
        let stopwatch = self.profiler.stopwatch().clone();
        let finished =
            move |name: &str, done| sample_done(name, done, &stopwatch, &checkpoints, monitor);
        let (stop, ended) = (|| monitor.cancelled(), || monitor.ended());
        Ok(calibration.begin(sample, finished, stop, ended))
    }

    /// Number of samples that were started and have not ended.
    pub fn samples_under_way(&self) -> usize {
        self.calibration
            .as_ref()
            .map_or(0, CalibrationRun::under_way)
    }

    /// Ranges of the observed values, from the samples that have ended.
    pub fn ranges_so_far(&self) -> Vec<(&str, Option<Range>)> {
        self.calibration
            .as_ref()
            .map_or_else(Vec::new, CalibrationRun::so_far)
    }

    /// Returns the first error of the samples started by [`Session::begin_sample`]. All of them
    /// must have ended.
    pub fn settle(&mut self) -> Result<(), Error> {
        let calibration = self.calibration.as_mut().ok_or(Error::NotCalibrating)?;
        let settled = calibration.settle();
        self.record_checkpoints();
        Ok(settled?)
    }

    fn record_checkpoints(&mut self) {
        let mut checkpoints = self
            .checkpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.profiler.record_all(std::mem::take(&mut *checkpoints));
    }

    /// Makes later calibrations record every layer of every sample in the report. For large models
    /// this adds many records.
    pub fn checkpoint_layers(&mut self, each: bool) {
        self.each_layer = each;
    }

    /// Begins an extra pass over the samples if one is needed, and returns whether it did.
    ///
    /// Three things need one: a method of two passes, Gram matrices for GPTQ (`moments`), and
    /// equalization. After a true result, feed the same samples again before the calibration is
    /// finished.
    pub fn begin_extra_pass(&mut self, method: Method, moments: bool) -> Result<bool, Error> {
        if self.awaits_equalization() && self.apply_equalization()? {
            return Ok(true);
        }
        let calibration = self.calibration.as_mut().ok_or(Error::NotCalibrating)?;
        let ready = self.prepared.as_ref().ok_or(Error::NotCalibrating)?;
        let layout = method.second_pass();
        let further = match layout {
            Some(layout) if calibration.layout() != Some(layout) => ExtraPass::Histograms(layout),
            _ if moments && !calibration.has_input_grams() => {
                let gram_views = quantize::gram_views(&ready.model);
                if gram_views.is_empty() {
                    return Ok(false);
                }
                ExtraPass::InputGrams(gram_views)
            }
            _ => return Ok(false),
        };
        calibration.begin_pass(further)?;
        Ok(true)
    }

    /// Ends the calibration. From here on the model can be quantized.
    pub fn finish_calibration(&mut self, method: Method) -> Result<CalibrationSummary, Error> {
        if self.calibration.is_some() && self.awaits_equalization() {
            return Err(Error::EqualizationPending);
        }
        let calibration = self.calibration.take().ok_or(Error::NotCalibrating)?;
        let samples = calibration.done();
        if samples == 0 {
            let why = calibration
                .first_error()
                .map_or(Error::NoSamples, Error::from);
            self.calibration = Some(calibration);
            return Err(why);
        }
        if let Some(layout) = method.second_pass()
            && calibration.layout() != Some(layout)
        {
            // Keep the first pass: the caller can begin the second, or choose another method.
            self.calibration = Some(calibration);
            return Err(Error::SecondPass(SecondPassMissing(method)));
        }
        let skipped = calibration.skipped();
        let observations = calibration.finish()?;
        self.planned = None;
        allocator::give_back();
        self.profiler.end();
        let values = observations.len();
        self.report
            .calibrated(method, samples, &skipped, &observations);
        self.range_source = Some(RangeSource::Statistics(
            observations,
            method,
            self.equalized.take(),
        ));
        let prepared = self
            .prepared
            .as_ref()
            .map(|r| r.done.clone())
            .unwrap_or_default();
        Ok(CalibrationSummary {
            samples,
            skipped,
            values,
            prepared,
        })
    }
}
