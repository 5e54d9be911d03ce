//! The third stage: a calibration that has begun.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::calibrated::{Calibrated, Resting};
use super::equalization::{Equalization, EqualizedModel};
use super::error::{Error, OrderError};
use super::journal::{Checkpoints, Journal};
use super::opened::{OpenedModel, has_free_axis};
use super::prepared::PreparedModel;
use super::progress::{Event, ProgressMonitor};
use super::ranges::ModelRanges;
use crate::allocator;
use crate::calibrate::run::{CalibrationRun, ExtraPass, ValueCallback, WatchedValue};
use crate::graph::Model;
use crate::prepare::equalize;
use crate::profile::{RunStep, Stopwatch};
use crate::quantize;
use crate::runtime::Engine;
use crate::samples::{Encoded, SampleSettings, ShapeMismatch, Skipped};
use crate::stats::{Method, PassStatistics, Range, SecondPassMissing};

/// Choices for calibrations that begin later.
#[derive(Clone, Copy, Default)]
pub(super) struct CalibrationChoices {
    /// Strength of equalization; `None` turns it off.
    pub(super) equalize: Option<f32>,
    /// True to record each layer of each sample.
    pub(super) each_layer: bool,
}

/// A calibration that has begun.
pub(super) struct Calibrating {
    pub(super) prepared: PreparedModel,
    /// Ranges before this calibration. They stay in use until it ends.
    pub(super) earlier: Option<ModelRanges>,
    run: CalibrationRun,
    equalization: Equalization,
}

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
    checkpoints: &Checkpoints,
    monitor: &dyn ProgressMonitor,
) {
    let checkpoint = stopwatch.checkpoint(format!("Calibration sample {name} done"));
    checkpoints.add([checkpoint]);
    let name = name.to_string();
    monitor.event(&Event::Sample { done, name });
}

impl Calibrating {
    /// Begins a calibration of a prepared model.
    ///
    /// It observes every value that any settings may need. Settings can therefore change afterwards
    /// without another calibration.
    pub(super) fn begin(
        resting: Resting,
        opened: &OpenedModel,
        samples: SampleSettings,
        choices: CalibrationChoices,
        journal: &mut Journal,
    ) -> Result<Calibrating, (Resting, Error)> {
        let mut resting = resting;
        let (engine, watched) = match resting.prepared.planned() {
            Ok(planned) => (Arc::clone(&planned.engine), planned.watched.clone()),
            Err(error) => return Err((resting, error)),
        };
        let Resting { prepared, ranges } = resting;
        journal.report.calibrating(&samples, &prepared.done);
        let layers = match choices.each_layer {
            true => layer_titles(&prepared.model, &watched),
            false => Vec::new(),
        };
        let inputs = opened.input_specs();
        let open = has_free_axis(&inputs);
        let graph = prepared.model.graph.clone();
        let explain = move |shapes: &[&[usize]]| match open {
            true => ShapeMismatch::find(&graph, shapes),
            false => None,
        };
        let watched = watched_values(&prepared.model, watched, choices.equalize.is_some());
        let observed = record_values(journal, layers);
        let run = CalibrationRun::new(engine, watched, inputs, samples, observed);
        journal.profiler.begin(RunStep::Calibration);
        Ok(Calibrating {
            prepared,
            earlier: ranges,
            run: run.with_explanation(Box::new(explain)),
            equalization: choices
                .equalize
                .map_or(Equalization::Off, Equalization::Pending),
        })
    }

    /// Drops the calibration. Its engine stays, for the next one.
    pub(super) fn stop(self) -> (PreparedModel, Option<ModelRanges>) {
        (self.prepared, self.earlier)
    }

    /// Runs some samples and waits for them.
    pub(super) fn feed(
        &mut self,
        samples: Vec<Encoded>,
        journal: &Journal,
        monitor: &dyn ProgressMonitor,
    ) -> Result<(), Error> {
        let (stopwatch, checkpoints) = (journal.profiler.stopwatch(), &journal.checkpoints);
        let finished = |name: &str, done| sample_done(name, done, stopwatch, checkpoints, monitor);
        Ok(self.run.feed(samples, finished, || monitor.cancelled())?)
    }

    /// Starts a sample. Returns false, and starts nothing, once another sample has failed.
    pub(super) fn begin_sample(
        &mut self,
        sample: Encoded,
        journal: &Journal,
        monitor: &'static dyn ProgressMonitor,
    ) -> bool {
        let checkpoints = journal.checkpoints.clone();
        let stopwatch = journal.profiler.stopwatch().clone();
        let finished =
            move |name: &str, done| sample_done(name, done, &stopwatch, &checkpoints, monitor);
        let (stop, ended) = (|| monitor.cancelled(), || monitor.ended());
        self.run.begin(sample, finished, stop, ended)
    }

    /// Number of samples that were started and have not ended.
    pub(super) fn under_way(&self) -> usize {
        self.run.under_way()
    }

    /// Ranges of the observed values, from the samples that have ended.
    pub(super) fn ranges_so_far(&self) -> Vec<(&str, Option<Range>)> {
        self.run.so_far()
    }

    /// Returns the first error of the started samples, all of which must have ended.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        Ok(self.run.settle()?)
    }

    /// Number of samples that the current pass has completed.
    pub(super) fn samples_done(&self) -> usize {
        self.run.done()
    }

    /// The skipped samples, each with its reason.
    pub(super) fn samples_skipped(&self) -> Vec<Skipped> {
        self.run.skipped()
    }

    /// Statistics of the current pass, from the samples that have ended.
    pub(super) fn collected(&mut self) -> Result<PassStatistics, Error> {
        Ok(self.run.collected()?)
    }

    /// Completes the current pass with what other runs collected.
    pub(super) fn complete_pass(
        &mut self,
        collected: &PassStatistics,
        samples: usize,
    ) -> Result<(), Error> {
        Ok(self.run.complete_pass(collected, samples)?)
    }

    /// Begins an extra pass over the samples if one is needed, and returns whether it did.
    pub(super) fn begin_extra_pass(
        &mut self,
        method: Method,
        moments: bool,
    ) -> Result<bool, Error> {
        if let Equalization::Pending(strength) = self.equalization
            && self.apply_equalization(strength)?
        {
            return Ok(true);
        }
        let further = match method.second_pass() {
            Some(layout) if self.run.layout() != Some(layout) => ExtraPass::Histograms(layout),
            _ if moments && !self.run.has_input_grams() => {
                let gram_views = quantize::gram_views(&self.prepared.model);
                if gram_views.is_empty() {
                    return Ok(false);
                }
                ExtraPass::InputGrams(gram_views)
            }
            _ => return Ok(false),
        };
        self.run.begin_pass(further)?;
        Ok(true)
    }

    /// Equalizes the model with the statistics so far. Returns true if any channel changed; the
    /// calibration has then been restarted on the new model.
    fn apply_equalization(&mut self, strength: f32) -> Result<bool, Error> {
        self.run.settle()?;
        self.require_samples()?;
        let abs_max = self.run.channel_abs_max();
        let greatest = |value: &str| abs_max.get(value).map(|channels| channels.greatest());
        let equalized = EqualizedModel::new(&self.prepared.model, greatest, strength)?;
        let any = equalized.changes_any();
        if any {
            // The planned engine runs the model before equalization.
            self.prepared.drop_engine();
            let watched = self.prepared.observed_values()?;
            let engine = Engine::new(equalized.model.clone(), watched);
            self.run.restart(Arc::new(engine))?;
        }
        self.equalization = Equalization::Applied(equalized);
        Ok(any)
    }

    /// Fails if no sample has run.
    fn require_samples(&self) -> Result<(), Error> {
        match self.run.done() {
            0 => Err(self.run.first_error().map_or(Error::NoSamples, Error::from)),
            _ => Ok(()),
        }
    }

    /// Fails if the calibration can't end yet. The caller can begin the missing pass, or choose
    /// another method.
    pub(super) fn require_passes(&self, method: Method) -> Result<(), Error> {
        if let Equalization::Pending(_) = self.equalization {
            return Err(OrderError::EqualizationPending.into());
        }
        self.require_samples()?;
        match method.second_pass() {
            Some(layout) if self.run.layout() != Some(layout) => {
                Err(OrderError::SecondPass(SecondPassMissing(method)).into())
            }
            _ => Ok(()),
        }
    }

    /// Ends the calibration with the ranges of a method, and frees its engine. If the passes ran
    /// different samples, the calibration is dropped.
    pub(super) fn finish(
        self,
        method: Method,
        journal: &mut Journal,
    ) -> Result<(Calibrated, CalibrationSummary), (Resting, Error)> {
        let Calibrating {
            mut prepared,
            earlier: ranges,
            run,
            equalization,
        } = self;
        let (samples, skipped) = (run.done(), run.skipped());
        let statistics = match run.finish() {
            Ok(statistics) => statistics,
            Err(error) => return Err((Resting { prepared, ranges }, error.into())),
        };
        prepared.drop_engine();
        allocator::give_back();
        journal.profiler.end();
        journal
            .report
            .calibrated(method, samples, &skipped, &statistics);
        let summary = CalibrationSummary {
            samples,
            skipped,
            values: statistics.len(),
            prepared: prepared.done.clone(),
        };
        let ranges = ModelRanges::Statistics {
            statistics,
            method,
            equalized: match equalization {
                Equalization::Applied(equalized) => Some(equalized),
                Equalization::Off | Equalization::Pending(_) => None,
            },
        };
        Ok((Calibrated { prepared, ranges }, summary))
    }
}

/// Title of the layer that computes each value.
fn layer_titles(model: &Model, values: &[String]) -> Vec<String> {
    let layer = |value: &String| match model.graph.producer(value) {
        Some(node) => model.graph.nodes()[node].title().to_string(),
        None => format!("input {value}"),
    };
    values.iter().map(layer).collect()
}

/// The observed values with the statistics that each needs.
fn watched_values(model: &Model, names: Vec<String>, equalizes: bool) -> Vec<WatchedValue> {
    let mut means = quantize::channel_axes(model);
    let mut magnitudes = match equalizes {
        true => equalize::channels(model),
        false => BTreeMap::new(),
    };
    let mut variances = quantize::input_path_axes(model);
    let watched = |name: String| WatchedValue {
        channel_means: means.remove(&name),
        channel_abs_max: magnitudes.remove(&name),
        channel_variance: variances.remove(&name),
        name,
    };
    names.into_iter().map(watched).collect()
}

/// Callback that records growth of the wasm memory, and each value if its layer has a title.
fn record_values(journal: &Journal, layers: Vec<String>) -> ValueCallback {
    let stopwatch = journal.profiler.stopwatch().clone();
    let checkpoints = journal.checkpoints.clone();
    Box::new(move |name: &str, slot: usize| {
        let layer = layers.get(slot);
        let layer = layer.map(|layer| format!("Calibration sample {name} layer {layer}"));
        let records = [
            stopwatch.growth(),
            layer.map(|text| stopwatch.quick_checkpoint(text)),
        ];
        if records.iter().any(Option::is_some) {
            checkpoints.add(records.into_iter().flatten());
        }
    })
}
