//! Forms of operators on integers, as ONNX Runtime's quantizers write them.

use crate::MICROSOFT;

/// The operator on integers that replaces an operator between its Q/DQ pairs (the QOperator
/// format).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QLinearForm {
    /// Name of the operator on integers.
    pub operator: &'static str,
    /// Its domain; `None` for ONNX's own.
    pub domain: Option<&'static str>,
    /// Order of its inputs.
    pub inputs: QLinearInputs,
}

/// The order in which an operator on integers takes integers, scales and zero points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QLinearInputs {
    /// Input, weight, parameters of the output, int32 bias.
    Convolution,
    /// Both operands, parameters of the output.
    Product,
    /// Both operands, int32 bias, parameters of the output.
    Gemm,
    /// The first input, parameters of the output.
    Unary,
    /// The first two inputs, parameters of the output.
    Binary,
    /// Parameters of the output, all inputs.
    Concat,
    /// The condition, both branches, parameters of the output.
    Where,
    /// The integers of all tables, their scales, their zero points.
    Embedding,
}

impl QLinearForm {
    /// An operator of ONNX.
    pub(super) const fn onnx(operator: &'static str, inputs: QLinearInputs) -> QLinearForm {
        QLinearForm {
            operator,
            domain: None,
            inputs,
        }
    }

    /// An operator of ONNX Runtime.
    pub(super) const fn microsoft(operator: &'static str, inputs: QLinearInputs) -> QLinearForm {
        QLinearForm {
            operator,
            domain: Some(MICROSOFT),
            inputs,
        }
    }
}

/// The form of an operator whose activations are quantized at each inference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DynamicForm {
    /// A ConvInteger.
    Convolution,
    /// A MatMulInteger.
    MatMul,
    /// A MatMulInteger and an Add.
    Gemm,
    /// A DynamicQuantizeLSTM.
    Lstm,
    /// No runtime has a dynamic form, so only the weights are integers.
    WeightsOnly,
}
