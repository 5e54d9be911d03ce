//! Forecast of calibration and quantization: time, memory and the size of the result.
//!
//! The forecast makes the plan that the calibration later runs, so no work is lost. The plan and
//! the shapes give the activations that are live at once. Planning itself shows the memory that
//! weights take. A short run of the first sample then gives the time and the size of each tensor's
//! statistics.

mod file_forecast;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::error::Error;
use super::opened::OpenedModel;
use super::prepared::PreparedModel;
use crate::allocator;
use crate::graph::Dim;
use crate::prepare::equalize;
use crate::profile::macs::macs;
use crate::profile::{Clock, RunStep, SystemClock, memory};
use crate::quantize;
use crate::runtime::{self, Probe};
use crate::samples::{self, Encoded};
use crate::stats::{ChannelMeans, ChannelVariance, Method, TensorStatistics};
use crate::tensor::Tensor;
use file_forecast::{FileForecast, bits_of_weights};

/// Maximum time of the probe run in milliseconds.
const PROBE_MS: f64 = 250.0;

/// Bytes of one node of the quantized model at the peak. It exists as graph, as protobuf message
/// and in the file's bytes, with names, small constants and its part of the summary.
const NODE_BYTES: u64 = 6_500;

/// Bytes of weights quantized and written in a millisecond.
const QUANTIZED_PER_MS: f64 = 3e5;

/// Work of GPTQ in a millisecond: elements of Gram matrices that one sample updates, and weights
/// that are rounded.
const GRAM_ELEMENTS_PER_MS: f64 = 2e4;
const GPTQ_WEIGHTS_PER_MS: f64 = 1.6e3;

/// The work to forecast.
#[derive(Clone, Debug)]
pub struct ForecastJob<'a> {
    /// Number of samples.
    pub samples: usize,
    /// Maximum number of samples whose files are in memory at once.
    pub ahead: usize,
    /// Number of samples that run at once.
    pub threads: usize,
    /// Calibration method.
    pub method: Method,
    /// Quantization settings.
    pub settings: &'a quantize::Settings,
}

/// Forecast of a job.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// Number of samples that it assumes.
    pub samples: usize,
    /// Number of samples that run at once.
    pub threads: usize,
    /// Time until the quantized model is ready, in milliseconds.
    pub ms: f64,
    /// Time of one sample on one thread, in milliseconds.
    pub sample_ms: f64,
    /// Peak of live memory.
    pub peak_bytes: u64,
    /// Stage in which the peak occurs, named as in the report.
    #[schemars(with = "String")]
    pub peak_stage: RunStep,
    /// Part of the peak: the file, and the engine's copies of its weights.
    pub weight_bytes: u64,
    /// Part of the peak: activations of the samples that run at once.
    pub live_bytes: u64,
    /// Part of the peak: statistics of all observed tensors.
    pub range_bytes: u64,
    /// Size of the quantized model.
    pub output_bytes: u64,
    /// Multiply-accumulate operations of one run.
    pub macs: u64,
    /// Memory limit of this platform, if known.
    pub limit_bytes: Option<u64>,
    /// Reason why the memory does not suffice, and a way out.
    pub refusal: Option<String>,
}

/// Components of the peaks, in bytes.
struct PeakParts {
    /// Live memory before planning.
    before: u64,
    /// Live memory after planning.
    planned: u64,
    /// Activations of the samples that run at once.
    live: u64,
    /// Statistics of all tensors during calibration.
    ranges: u64,
    /// Part of the statistics that stays after calibration.
    retained: u64,
    /// Gram matrices, a part of the statistics.
    grams: u64,
    /// Second copies of the weights that equalization changes.
    equalized: u64,
    /// Files of the samples that wait to run.
    samples: u64,
}

impl PreparedModel {
    /// Forecasts a job from its first sample.
    pub(super) fn forecast(
        &mut self,
        opened: &OpenedModel,
        first: Encoded,
        reading: &samples::SampleSettings,
        job: &ForecastJob<'_>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Forecast, Error> {
        let began = SystemClock.now_ms();
        let inputs = opened.decode(&first, reading)?;
        let decoded_ms = SystemClock.now_ms() - began;
        let files: u64 = first.parts.iter().map(|(_, file)| file.len() as u64).sum();
        drop(first);
        let decoded: u64 = inputs.iter().map(bytes_of).sum();
        let before = (allocator::live() as u64).saturating_sub(decoded);
        let planned = self.planned()?;
        let (planned_run, peak) = allocator::peak_of(|| planned.engine.run_plan(&inputs, stop));
        planned.peak = planned.peak.max(peak);
        let planning = planned.peak;
        let run_plan = planned_run?;
        let after = allocator::live() as u64;
        let mut seen: Vec<TensorStatistics> = vec![TensorStatistics::new(); planned.watched.len()];
        let now = || SystemClock.now_ms();
        let (engine, watched) = (Arc::clone(&planned.engine), planned.watched.clone());
        let graph = &self.model.graph;
        let types = runtime::infer_types_of(&self.model, &inputs)?;
        let see = |slot: usize, values: &[f32]| seen[slot].observe(values);
        let probe = engine.probe(&run_plan, inputs, PROBE_MS, now, see, stop)?;
        let shape = |name: &str| -> Option<Vec<u64>> {
            let tensor_type = types
                .get(name)
                .cloned()
                .or_else(|| graph.tensor_type(name))?;
            let size = |dim: &Dim| match dim {
                Dim::Known(size) => Some(*size as u64),
                _ => None,
            };
            tensor_type.shape?.iter().map(size).collect()
        };
        let (means, spreads) = (
            quantize::channel_axes(&self.model),
            quantize::input_path_axes(&self.model),
        );
        let channels = |axes: &BTreeMap<String, usize>, name: &String| {
            let axis = axes.get(name);
            axis.and_then(|&axis| shape(name)?.get(axis).copied())
                .unwrap_or(0)
        };
        let by_channel = |name: &String| {
            channels(&means, name) * ChannelMeans::BYTES_EACH
                + channels(&spreads, name) * ChannelVariance::BYTES_EACH
        };
        let seen = seen.iter().zip(&watched);
        let bytes: Vec<u64> = seen
            .map(|(one, name)| statistics_bytes(one, job.method) + by_channel(name))
            .collect();
        let cost_estimate = run_plan.cost_estimate(|slot| bytes.get(slot).copied().unwrap_or(0));

        let at_once = job.threads.min(job.samples).max(1) as u64;
        let retained: u64 = bytes.iter().sum();
        // One run is assumed at its peak. Runs started together come close to it, so they count as
        // the usual size plus five eighths of the difference. A run that has ended keeps its
        // statistics until they are merged.
        let beyond = cost_estimate.peak.saturating_sub(cost_estimate.usual);
        let other = (cost_estimate.usual + beyond * 5 / 8).max(retained);
        let runs = cost_estimate.peak + (at_once - 1) * other;
        let ranges = cost_estimate.remembered + (at_once - 1) * retained;
        // Samples wait as files and free them when they start. At the start most samples wait, but
        // no statistics have been merged yet.
        let waiting = |begun: usize| {
            let left = job.samples.saturating_sub(begun).min(job.ahead);
            files * (left as u64).saturating_sub(at_once)
        };
        let (at_first, later) = ((waiting(0), 0), (waiting(job.threads), retained));
        let more = job.samples > job.threads && later.0 + later.1 > at_first.0;
        let (samples, put_together) = if more { later } else { at_first };
        let grams = match job.settings.needs_gram_matrices() {
            true => quantize::gram_bytes(&self.model),
            false => 0,
        };
        let equalized = match job.settings.equalizes() {
            Some(_) => equalize::bytes(&self.model),
            None => 0,
        };
        let parts = PeakParts {
            equalized,
            before,
            planned: after.saturating_sub(decoded) + equalized,
            live: runs.saturating_sub(ranges),
            ranges: ranges.min(runs) + put_together + grams,
            retained: retained + grams,
            grams,
            samples,
        };
        let written = FileForecast::new(
            opened.summary.bytes_in_all() as usize,
            &self.model,
            job.settings,
        )?;
        let multiplications = graph.nodes().iter().map(|node| macs(node, shape)).sum();
        Ok(assemble(
            job,
            &parts,
            planning,
            &written,
            (decoded_ms, probe),
            multiplications,
            at_once,
        ))
    }
}

fn assemble(
    job: &ForecastJob<'_>,
    parts: &PeakParts,
    planning: u64,
    written: &FileForecast,
    (decoded_ms, probe): (f64, Probe),
    macs: u64,
    at_once: u64,
) -> Forecast {
    let calibrating = parts.planned + parts.live + parts.ranges + parts.samples;
    // The file shares memory with the tensors.
    let quantizing = parts.before
        + parts.equalized
        + parts.retained
        + written.integers
        + written.nodes * NODE_BYTES;
    let stages = [
        (calibrating, RunStep::Calibration),
        (quantizing, RunStep::Quantization(job.settings.scheme)),
    ];
    let mut greatest = (planning, RunStep::Preparation);
    // Of equal peaks the last counts.
    for stage in stages {
        if stage.0 >= greatest.0 {
            greatest = stage;
        }
    }
    let (peak_bytes, peak_stage) = greatest;
    let in_calibration = peak_stage == RunStep::Calibration;
    let further = [
        job.method.second_pass().is_some(),
        parts.grams > 0,
        parts.equalized > 0,
    ];
    let passes = 1.0 + further.into_iter().filter(|&pass| pass).count() as f64;
    let sample_ms = decoded_ms + probe.ms / probe.share.max(1e-6);
    let rounds = (job.samples as u64).div_ceil(at_once) as f64;
    let grams_ms = (parts.grams / 8) as f64 / GRAM_ELEMENTS_PER_MS * rounds;
    let gptq_ms = match parts.grams {
        0 => 0.0,
        _ => {
            (written.integers * 8 / bits_of_weights(job.settings)) as f64
                / GPTQ_WEIGHTS_PER_MS
                / job.threads.max(1) as f64
        }
    };
    let limit_bytes = memory::limit();
    let refusal = limit_bytes
        .filter(|&limit| peak_bytes > limit)
        .map(|limit| refusal(peak_bytes, limit, calibrating, parts, at_once));
    Forecast {
        samples: job.samples,
        threads: job.threads,
        ms: sample_ms * rounds * passes
            + grams_ms
            + written.integers as f64 * 4.0 / QUANTIZED_PER_MS
            + gptq_ms,
        sample_ms,
        peak_bytes,
        peak_stage,
        weight_bytes: if in_calibration {
            parts.planned
        } else {
            peak_bytes - parts.retained.min(peak_bytes)
        },
        live_bytes: if in_calibration { parts.live } else { 0 },
        range_bytes: if in_calibration { parts.ranges } else { 0 },
        output_bytes: written.file,
        macs,
        limit_bytes,
        refusal,
    }
}

fn refusal(peak: u64, limit: u64, calibrating: u64, parts: &PeakParts, at_once: u64) -> String {
    let mb = |bytes: u64| bytes.div_ceil(1_000_000);
    let each = (parts.live + parts.ranges) / (at_once + 1);
    let fewer = at_once > 1 && calibrating - each * (at_once - 1) < limit;
    let way = match (fewer, cfg!(target_family = "wasm")) {
        (true, _) => format!(
            "use fewer threads, each of which takes about {} MB",
            mb(each)
        ),
        (false, true) => "use the command line, which has the memory of the machine".to_string(),
        (false, false) => "use smaller samples or a machine with more memory".to_string(),
    };
    format!(
        "calibration and quantization take about {} MB at the peak, and {} MB are available: {way}",
        mb(peak),
        mb(limit)
    )
}

/// Bytes of a tensor's statistics after all samples. A tensor that the probe did not reach counts
/// like any other.
fn statistics_bytes(seen: &TensorStatistics, method: Method) -> u64 {
    let second = method.second_pass().map_or(0, |layout| {
        (layout.bins * (size_of::<u64>() + size_of::<f32>())) as u64
    });
    seen.expected_bytes() + second
}

fn bytes_of(tensor: &Tensor) -> u64 {
    tensor.values().len() as u64 * tensor.element_type().bits().unwrap_or(32) as u64 / 8
}
