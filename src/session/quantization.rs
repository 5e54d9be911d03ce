//! Result of a quantization: the file and its summary.

use serde::Serialize;

use super::proof::Proof;
use super::ranges::ValueRanges;
use crate::onnx;
use crate::quantize::{NodeChoice, QuantizedTensor, Scheme};

/// A quantized model and its summary.
pub struct QuantizationResult {
    /// The file.
    pub model: onnx::Pieces,
    /// Ranges in use, by the name of the observed value.
    pub ranges: ValueRanges,
    /// Checksums that tie the file to what it was made from.
    pub proof: Proof,
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
