//! The session's sections of the report: settings, environment, calibration, quantization, profiles
//! and comparison.

use serde::Serialize;

use super::running::Kept;
use super::{Forecast, Summary};
use crate::calibrate::{Method, Observations};
use crate::compare::Comparison;
use crate::profile::{LayerTable, Profiler, Section, environment};
use crate::samples::Skipped;
use crate::{quantize, samples};

/// Data of a run so far.
#[derive(Default)]
pub(super) struct Report {
    forecast: Option<Told>,
    samples: Option<Section>,
    settings: Option<Section>,
    preparation: Option<Section>,
    calibration: Option<Section>,
    quantization: Option<Section>,
    layers: Option<Section>,
    comparison: Option<Section>,
    /// Samples that were left out before the run.
    left_out: Vec<Skipped>,
    warnings: Vec<String>,
    notes: Vec<String>,
}

/// A forecast, and the measured result once a model has been quantized.
#[derive(Clone, Serialize)]
struct Told {
    forecast: Forecast,
    actual: Option<Actual>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Actual {
    ms: f64,
    peak_bytes: u64,
    output_bytes: u64,
}

#[derive(Serialize)]
struct Calibration {
    method: Method,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    samples: usize,
    /// Samples that were left out, before the run and during it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<Skipped>,
    values: usize,
    elements: u64,
}

#[derive(Serialize)]
struct Quantization<'a> {
    float_bytes: usize,
    quantized_bytes: usize,
    ratio: f64,
    nodes_quantized: usize,
    /// Present with scheme `float16` only, where no node holds integers.
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes_float16: Option<usize>,
    nodes_float: usize,
    float: Vec<&'a quantize::NodeChoice>,
    tensors: &'a [quantize::QuantizedTensor],
}

#[derive(Serialize)]
struct Profiled<'a> {
    profile: &'a str,
    #[serde(flatten)]
    table: &'a LayerTable,
}

impl Report {
    pub(super) fn forecast(&mut self, found: &Forecast) {
        self.forecast = Some(Told {
            forecast: found.clone(),
            actual: None,
        });
    }

    /// Adds the measured result to the forecast. Time counts from the begin of calibration; memory
    /// includes planning.
    pub(super) fn took(&mut self, profiler: &Profiler, output_bytes: usize) {
        let Some(told) = self.forecast.as_mut().filter(|told| told.actual.is_none()) else {
            return;
        };
        let records = profiler.records();
        let seconds = |step: &str| records.iter().rfind(|r| r.step == step).map(|r| r.seconds);
        let (Some(end), Some(forecast)) = (seconds("End"), seconds("Forecast End")) else {
            return;
        };
        let began = seconds("Calibration Start").filter(|&began| began >= forecast);
        let peak = records.iter().map(|r| r.usage.peak).max();
        told.actual = Some(Actual {
            ms: (end - began.unwrap_or(forecast)) * 1e3,
            peak_bytes: peak.unwrap_or(0),
            output_bytes: output_bytes as u64,
        });
    }

    pub(super) fn calibrating(&mut self, samples: &samples::Settings, prepared: &[String]) {
        let comment = "How samples were made into tensors.";
        self.left_out.clone_from(&samples.skipped);
        self.samples = Some(Section::of("samples", comment, samples));
        self.settings = None;
        let comment =
            "What was changed before calibration, without changing what the model computes.";
        self.preparation = Some(Section::of("preparation", comment, &prepared));
        self.calibration = None;
        self.quantization = None;
        self.warnings.clear();
        self.notes.clear();
        if samples.demo {
            let warning = "The samples were random demo data: the ranges, and so the accuracy, mean nothing for real use.";
            self.warnings.push(warning.into());
        }
    }

    pub(super) fn calibrated(
        &mut self,
        method: Method,
        samples: usize,
        skipped: &[Skipped],
        seen: &Observations,
    ) {
        let skipped: Vec<Skipped> = self.left_out.iter().chain(skipped).cloned().collect();
        if !skipped.is_empty() {
            let (count, all) = (skipped.len(), skipped.len() + samples);
            self.warnings.push(format!(
                "{count} of {all} samples were left out, so the ranges are of {samples}; calibration.skipped names them"
            ));
        }
        let calibration = Calibration {
            method,
            note: method.note(),
            samples,
            skipped,
            values: seen.len(),
            elements: seen.values().map(|one| one.count()).sum(),
        };
        let comment = "What the ranges come from.";
        self.calibration = Some(Section::of("calibration", comment, &calibration));
        for (name, one) in seen {
            let odd = one.nan_count() + one.infinite_count();
            if odd > 0 {
                self.warnings.push(format!(
                    "{odd} elements of `{name}` were NaN or infinite and were left out of its range; check the samples"
                ));
            }
        }
    }

    pub(super) fn quantized(&mut self, settings: &quantize::Settings, summary: &Summary) {
        let float: Vec<_> = summary.nodes.iter().filter(|n| !n.quantized).collect();
        let done = summary.nodes.len() - float.len();
        let halves = summary.scheme == quantize::Scheme::Float16;
        let quantization = Quantization {
            float_bytes: summary.bytes_before,
            quantized_bytes: summary.bytes_after,
            ratio: summary.bytes_after as f64 / summary.bytes_before.max(1) as f64,
            nodes_quantized: if halves { 0 } else { done },
            nodes_float16: halves.then_some(done),
            nodes_float: float.len(),
            float,
            tensors: &summary.tensors,
        };
        let comment = "What was done. Nodes under `float` stay float, each with its reason; min and max are the real\n\
                       numbers a tensor can hold, of several scales that of the largest.";
        self.quantization = Some(Section::of("quantization", comment, &quantization));
        // Warnings of the calibration stay; notes of an earlier result don't.
        self.notes.clone_from(&summary.advice);
        self.notes.extend_from_slice(&summary.notes);
        self.settings = Some(Section::of("settings", "How it was to be done.", settings));
    }

    pub(super) fn profiled(&mut self, profiles: &[Kept]) {
        let comment = "What ran, layer by layer, in the order they ran, for each model. ms: own time in milliseconds; share: of all\n\
                       layers' time; ownBytes: what the layer makes; peakBytes and liveBytes: live while and after it ran,\n\
                       beyond residentBytes, which stay through the run; sumBytes: what all layers make together.";
        let tables: Vec<Profiled<'_>> = profiles
            .iter()
            .map(|kept| Profiled {
                profile: &kept.name,
                table: &kept.table,
            })
            .collect();
        self.layers = Some(Section::of("profiles", comment, &tables));
    }

    /// Sets the comparison of the latest result; `None` if it was not compared.
    pub(super) fn compared(&mut self, found: Option<&Comparison>) {
        let comment = "The quantized model against the float one. accumulated: the error of all layers up to here; added: that of\n\
                       this layer alone, on the float model's values; weightsOnly, activationsOnly: its SQNR with only these as\n\
                       integers; harm: its share of what all layers add. sqnr in decibels, 200 where nothing is apart.";
        self.comparison = found.map(|found| Section::of("comparison", comment, found));
    }

    pub(super) fn sections(&self) -> Vec<Section> {
        let place = environment(rayon::current_num_threads());
        let place = Section::of("environment", "Where it ran.", &place);
        let comment = "What it was thought to take, told before, and what it took. weightBytes, liveBytes and rangeBytes are of the\n\
                       peak: the file and what the engine makes of it, activations, and what is remembered of every tensor.";
        let forecast = (self.forecast.as_ref()).map(|told| Section::of("forecast", comment, told));
        let known = [
            &forecast,
            &self.samples,
            &self.settings,
            &self.preparation,
            &self.calibration,
            &self.quantization,
            &self.layers,
            &self.comparison,
        ];
        let mut sections: Vec<Section> = known.into_iter().flatten().cloned().collect();
        sections.insert(0, place);
        let comment = "What to look at before trusting the result.";
        let warnings: Vec<&String> = self.warnings.iter().chain(&self.notes).collect();
        sections.push(Section::of("warnings", comment, &warnings));
        sections
    }
}
