//! The session's sections of the report: settings, environment, calibration, quantization, profiles
//! and comparison.

use serde::Serialize;

use super::forecast::Forecast;
use super::proof::Proof;
use super::quantization::QuantizationSummary;
use super::stored_profile::StoredProfile;
use crate::compare::Comparison;
use crate::profile::{LayerTable, Moment, Profiler, RunStep, Section, environment};
use crate::samples::Skipped;
use crate::stats::{CalibrationStatistics, Method};
use crate::tune::TuningSummary;
use crate::{quantize, samples};

/// Data of a run so far.
#[derive(Default)]
pub(super) struct Report {
    forecast: Option<ForecastEntry>,
    samples: Option<Section>,
    settings: Option<Section>,
    preparation: Option<Section>,
    calibration: Option<Section>,
    quantization: Option<Section>,
    proof: Option<Section>,
    tuning: Option<Section>,
    layers: Option<Section>,
    comparison: Option<Section>,
    /// Samples that were left out before the run.
    left_out: Vec<Skipped>,
    warnings: Vec<String>,
    notes: Vec<String>,
}

/// A forecast, and the measured result once a model has been quantized.
#[derive(Clone, Serialize)]
struct ForecastEntry {
    forecast: Forecast,
    actual: Option<ForecastResult>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct ForecastResult {
    ms: f64,
    peak_bytes: u64,
    output_bytes: u64,
}

#[derive(Serialize)]
struct CalibrationSection {
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
struct QuantizationSection<'a> {
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
struct ProfileSection<'a> {
    profile: &'a str,
    #[serde(flatten)]
    table: &'a LayerTable,
}

impl Report {
    pub(super) fn forecast(&mut self, result: &Forecast) {
        self.forecast = Some(ForecastEntry {
            forecast: result.clone(),
            actual: None,
        });
    }

    /// Adds the measured result to the forecast. Time counts from the begin of calibration; memory
    /// includes planning.
    pub(super) fn add_forecast_result(&mut self, profiler: &Profiler, output_bytes: usize) {
        let Some(entry) = self
            .forecast
            .as_mut()
            .filter(|entry| entry.actual.is_none())
        else {
            return;
        };
        let records = profiler.records();
        let seconds = |moment: Moment| {
            let record = records.iter().rfind(|record| record.moment == moment);
            record.map(|record| record.seconds)
        };
        let forecast = seconds(Moment::ends(RunStep::Forecast));
        let (Some(end), Some(forecast)) = (seconds(Moment::End), forecast) else {
            return;
        };
        let began =
            seconds(Moment::begins(RunStep::Calibration)).filter(|&began| began >= forecast);
        let peak = records.iter().map(|r| r.usage.peak).max();
        entry.actual = Some(ForecastResult {
            ms: (end - began.unwrap_or(forecast)) * 1e3,
            peak_bytes: peak.unwrap_or(0),
            output_bytes: output_bytes as u64,
        });
    }

    pub(super) fn calibrating(&mut self, samples: &samples::SampleSettings, prepared: &[String]) {
        let comment = "Preprocessing of the samples.";
        self.left_out.clone_from(&samples.skipped);
        self.samples = Some(Section::new("samples", comment, samples));
        self.settings = None;
        let comment = "Changes before calibration; the results of the model stay the same.";
        self.preparation = Some(Section::new("preparation", comment, &prepared));
        self.calibration = None;
        self.quantization = None;
        self.proof = None;
        self.tuning = None;
        self.warnings.clear();
        self.notes.clear();
        if samples.demo {
            let warning =
                "The samples are random demo data: ranges and accuracy mean nothing for real use.";
            self.warnings.push(warning.into());
        }
    }

    pub(super) fn calibrated(
        &mut self,
        method: Method,
        samples: usize,
        skipped: &[Skipped],
        seen: &CalibrationStatistics,
    ) {
        let skipped: Vec<Skipped> = self.left_out.iter().chain(skipped).cloned().collect();
        if !skipped.is_empty() {
            let (count, all) = (skipped.len(), skipped.len() + samples);
            self.warnings.push(format!(
                "{count} of {all} samples were left out, so the ranges come from {samples}; calibration.skipped lists them"
            ));
        }
        let calibration = CalibrationSection {
            method,
            note: method.note(),
            samples,
            skipped,
            values: seen.len(),
            elements: seen.values().map(|one| one.count()).sum(),
        };
        let comment = "Source of the ranges.";
        self.calibration = Some(Section::new("calibration", comment, &calibration));
        for (name, one) in seen {
            let odd = one.nan_count() + one.infinite_count();
            if odd > 0 {
                self.warnings.push(format!(
                    "{odd} elements of `{name}` were NaN or infinite and were left out of its range; check the samples"
                ));
            }
        }
    }

    pub(super) fn quantized(
        &mut self,
        settings: &quantize::Settings,
        summary: &QuantizationSummary,
        proof: &Proof,
    ) {
        let float: Vec<_> = summary.nodes.iter().filter(|n| !n.quantized).collect();
        let done = summary.nodes.len() - float.len();
        let halves = summary.scheme == quantize::Scheme::Float16;
        let quantization = QuantizationSection {
            float_bytes: summary.bytes_before,
            quantized_bytes: summary.bytes_after,
            ratio: summary.bytes_after as f64 / summary.bytes_before.max(1) as f64,
            nodes_quantized: if halves { 0 } else { done },
            nodes_float16: halves.then_some(done),
            nodes_float: float.len(),
            float,
            tensors: &summary.tensors,
        };
        let comment = "Result of the quantization. Nodes under `float` stay float, each with its reason. min and max\n\
                       are the range that a tensor can represent, of several scales that of the largest.";
        self.quantization = Some(Section::new("quantization", comment, &quantization));
        let comment = "SHA-256 of settings, ranges and result; that of the float model is above. `octet verify` reads them.";
        self.proof = Some(Section::new("proof", comment, proof));
        // Warnings of the calibration stay; notes of an earlier result don't.
        self.notes.clone_from(&summary.advice);
        self.notes.extend_from_slice(&summary.notes);
        self.settings = Some(Section::new(
            "settings",
            "Settings of the quantization.",
            settings,
        ));
    }

    pub(super) fn tuned(&mut self, summary: &TuningSummary) {
        let comment = "Learned rounding. before and after: mean squared error of a layer at positions that did not teach;\n\
                       curve: error along the steps; judgement: SQNR of the outputs on samples that did not teach, in dB;\n\
                       frontierBytes: values between two layers; forecast: the layer with the most data, and its bytes.";
        self.tuning = Some(Section::new("tuning", comment, summary));
    }

    pub(super) fn profiled(&mut self, profiles: &[StoredProfile]) {
        let comment = "Layers of each model in execution order. ms: own time in milliseconds; share: part of the time of\n\
                       all layers; ownBytes: outputs of the layer; peakBytes and liveBytes: live memory while and after it\n\
                       ran, beyond residentBytes, which stay through the run; sumBytes: outputs of all layers.";
        let tables: Vec<ProfileSection<'_>> = profiles
            .iter()
            .map(|stored| ProfileSection {
                profile: &stored.name,
                table: &stored.table,
            })
            .collect();
        self.layers = Some(Section::new("profiles", comment, &tables));
    }

    /// Sets the comparison of the latest result; `None` if it was not compared.
    pub(super) fn compared(&mut self, result: Option<&Comparison>) {
        let comment = "The quantized model against the float model. accumulated: error reached after all layers so far;\n\
                       added: own error of this layer, on the float model's values; weightsOnly, activationsOnly: SQNR\n\
                       with only these quantized; harm: share of the own errors of all layers. sqnr: in dB, 200 for equal.";
        self.comparison = result.map(|result| Section::new("comparison", comment, result));
    }

    pub(super) fn sections(&self) -> Vec<Section> {
        let place = environment(rayon::current_num_threads());
        let place = Section::new("environment", "Build and machine of the run.", &place);
        let comment = "Forecast of time and memory, and the measured result. The peak consists of weightBytes (the file\n\
                       and the engine's copies of weights), liveBytes (activations) and rangeBytes (tensor statistics).";
        let forecast =
            (self.forecast.as_ref()).map(|entry| Section::new("forecast", comment, entry));
        let known = [
            &forecast,
            &self.samples,
            &self.settings,
            &self.preparation,
            &self.calibration,
            &self.quantization,
            &self.proof,
            &self.tuning,
            &self.layers,
            &self.comparison,
        ];
        let mut sections: Vec<Section> = known.into_iter().flatten().cloned().collect();
        sections.insert(0, place);
        let comment = "Warnings and notes to read before the result is used.";
        let warnings: Vec<&String> = self.warnings.iter().chain(&self.notes).collect();
        sections.push(Section::new("warnings", comment, &warnings));
        sections
    }
}
