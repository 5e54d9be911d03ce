//! The errors of preparation, and the opset that it raises models to.

use crate::GraphError;
use octet_onnx::tensor::TensorError;

/// The opset that per-channel quantization needs; every prepared model has at least this one.
pub const OPSET: i64 = 13;

/// Reasons why a model can't be prepared.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum PrepareError {
    #[error(
        "node {node} ({operator}) can't be raised from opset {from} to {to}: {reason}; export the \
         model with opset {to} or newer"
    )]
    Opset {
        node: String,
        operator: String,
        from: i64,
        to: i64,
        reason: String,
    },
    #[error(
        "node {node} reads the bits of 16-bit floats, which preparation turns into float32; export \
         the model in float32"
    )]
    HalfBits { node: String },
    #[error(
        "the model's input or output {value} is a sequence, optional value or map of 16-bit \
         floats, which can't be converted to float32; export the model in float32"
    )]
    HalfPort { value: String },
    #[error(
        "node {node} calls the model's function {function}, which {reason}; export the model again"
    )]
    Function {
        node: String,
        function: String,
        reason: String,
    },
    #[error(
        "node {node} remains a call of the model's function {function}: {reason}; inline the \
         functions with onnx.inliner (convert_version=True), or export the model with one opset"
    )]
    FunctionNotInlined {
        node: String,
        function: String,
        reason: String,
    },
    #[error("two functions of the model are both named {function}: export the model again")]
    DuplicateFunction { function: String },
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
