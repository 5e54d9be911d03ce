//! Quantization: from a prepared model and its ranges to a file and its summary.

use serde::Serialize;

use super::error::{Error, OrderError};
use super::{Session, ValueRanges, advice};
use crate::graph::Graph;
use crate::onnx;
use crate::onnx::schema::ValueInfoProto;
use crate::profile::RunStep;
use crate::quantize::{self, NodeChoice, QuantizedTensor, Scheme};

/// A quantized model and its summary.
pub struct QuantizationResult {
    /// The file.
    pub model: onnx::Pieces,
    /// Ranges in use, by the name of the observed value.
    pub ranges: ValueRanges,
    /// Summary of the quantization.
    pub summary: QuantizationSummary,
}

/// Summary of a quantization.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuantizationSummary {
    /// The scheme. A `quantized` node holds integers, or half-precision floats with scheme
    /// `float16`.
    pub scheme: Scheme,
    /// Proposed name for the file.
    pub file_name: String,
    /// Size of the float model in bytes, external data included.
    pub bytes_before: usize,
    /// Size of the quantized file in bytes.
    pub bytes_after: usize,
    /// All nodes, each with its choice and, if it stays float, the reason.
    pub nodes: Vec<NodeChoice>,
    /// All quantized tensors with their scales, zero points and ranges.
    pub tensors: Vec<QuantizedTensor>,
    /// Notes for people, a sentence each.
    pub notes: Vec<String>,
    /// Number of leading notes that come from mixed precision.
    pub guarded: usize,
    /// Advice on a result that is larger than necessary, a sentence each.
    pub advice: Vec<String>,
}

impl Session {
    /// Quantizes with the statistics of the last calibration. Other settings and methods need no
    /// new calibration, unless they require an extra pass that it did not make.
    pub fn quantize(&mut self, settings: &quantize::Settings) -> Result<QuantizationResult, Error> {
        if settings.needs_samples() && self.stage.ranges().is_none() {
            return Err(OrderError::NotCalibrated.into());
        }
        self.journal.profiler.resume();
        let (ready, ranges) = self.stage.prepare(&mut self.opened, &mut self.journal)?;
        let profiler = &mut self.journal.profiler;
        profiler.begin(RunStep::Quantization(settings.scheme));
        let quantized = ready.quantize(settings, ranges);
        profiler.end();
        let quantized = quantized?;
        profiler.begin(RunStep::PostProcess);
        let mut model = quantized.model;
        let restored = ready.upcast.restore(&mut model);
        model.graph.value_info = remaining_declarations(&model.graph, &ready.declared);
        let proto = model.to_proto();
        let file = onnx::pieces(&proto);
        profiler.end();
        let rounded = restored.map_err(quantize::QuantizeError::from)?;
        let file = file?;
        profiler.finish();
        let before = advice::ModelSize {
            file: self.opened.summary.bytes_in_all(),
            constants: self.opened.constants,
        };
        let after = advice::ModelSize {
            file: file.bytes(),
            constants: advice::constants(&proto),
        };
        let summary = QuantizationSummary {
            scheme: settings.scheme,
            file_name: settings.file_name(&self.opened.summary.name),
            advice: advice::advice(&proto, before, after, settings),
            bytes_before: before.file,
            bytes_after: after.file,
            nodes: quantized.nodes,
            tensors: quantized.tensors,
            notes: quantized.notes.into_iter().chain(rounded).collect(),
            guarded: quantized.guarded,
        };
        let report = &mut self.journal.report;
        report.quantized(settings, &summary);
        report.compared(self.comparisons.restore(settings));
        report.add_forecast_result(&self.journal.profiler, summary.bytes_after);
        Ok(QuantizationResult {
            model: file,
            ranges: quantized.ranges,
            summary,
        })
    }
}

/// Declared types of the values that the graph still computes. Element types are updated, since a
/// scheme may have changed them.
fn remaining_declarations(graph: &Graph, declared: &[ValueInfoProto]) -> Vec<ValueInfoProto> {
    let (uses, elements) = (graph.uses(), graph.element_types());
    let again = declared.iter().filter_map(|value| {
        let name = value.name.as_deref()?;
        uses.producer(name)?;
        let mut value = value.clone();
        if let Some(&element) = elements.get(name) {
            value.set_element(element);
        }
        Some(value)
    });
    again.collect()
}
