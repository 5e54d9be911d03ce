//! Why a file of ranges cannot be read or written.

use super::RangeFormat;

/// Why a file of ranges cannot be read or written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RangeFileError {
    /// The content has no known format.
    #[error(
        "this is no file of ranges: give Octet's JSON {{\"tensor\": [min, max]}}, a calibration table of ONNX Runtime \
         (JSON, FlatBuffers or text), a calibration cache of TensorRT, or encodings of AIMET"
    )]
    Unknown,
    /// The file ends early, or points outside itself.
    #[error("the table of ranges is damaged at byte {0}: write it again")]
    Damaged(usize),
    /// The JSON is malformed.
    #[error("the ranges are no valid JSON: {0}; write the file again")]
    Json(String),
    /// A line of a text table is malformed.
    #[error("line {line} of the table of ranges is {text:?}, and not {form}: correct or remove it")]
    Line {
        /// The line, from 1.
        line: usize,
        /// Its beginning.
        text: String,
        /// The expected form.
        form: &'static str,
    },
    /// An entry of a tensor is malformed.
    #[error("the ranges of {tensor:?} are not understood: {why}")]
    Entry {
        /// The tensor.
        tensor: String,
        /// The fault, and the expected form.
        why: String,
    },
    /// A range is not finite, or its ends are swapped.
    #[error(
        "{tensor:?} is from {min} to {max}, which is not a range; give finite numbers, the smaller first"
    )]
    NoRange {
        /// The tensor.
        tensor: String,
        /// The lower end.
        min: f32,
        /// The upper end.
        max: f32,
    },
    /// A version of AIMET's encodings that Octet does not read.
    #[error(
        "the encodings have the version {0}, and Octet reads 0.6.1 and 1.0.0: export them in one of these"
    )]
    Version(String),
    /// Encodings with names of PyTorch modules.
    #[error(
        "the encodings name modules of PyTorch, not tensors of an ONNX model: use the file that AIMET exports beside the ONNX model"
    )]
    ModuleNames,
    /// The file has no range.
    #[error("the file ({}) holds no range: write it again after a calibration", .0.title())]
    Empty(RangeFormat),
    /// A model whose values the ranges belong to cannot be read.
    #[error("the model of these ranges could not be read: {0}")]
    Model(String),
    /// Encodings are asked for, and the model has no scales.
    #[error(
        "encodings hold the scales of a quantized model, and this one has no QuantizeLinear or DequantizeLinear with constant \
         scales: quantize with the scheme static and the format qdq"
    )]
    NoEncodings,
}
