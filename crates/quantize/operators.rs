//! The quantization treatment of each operator.

use octet_graph::Model;
use octet_graph::operators::{Operator, Property};

pub(super) use octet_graph::operators::Treatment;

/// The output channel axis of a MatMul operand: columns of the right one, rows of the left one.
pub(super) fn operand_channel_axis(slot: usize, rank: usize) -> Option<usize> {
    rank.checked_sub(2).map(|rows| rows + slot.min(1))
}

/// A com.microsoft operator that `quantize_static` quantizes.
pub(super) const EMBEDDING: &str = "com.microsoft::EmbedLayerNormalization";

/// The treatment of an operator; `None` if it always stays float.
pub(super) fn treatment(operator: &str) -> Option<Treatment> {
    Operator::named(operator).treatment
}

/// True for the operators that ONNX Runtime's `quantize_static` quantizes by default.
pub(super) fn is_onnx_runtime_default(operator: &str) -> bool {
    Operator::named(operator).is_onnx_runtime_default
}

/// The reason why an operator stays float; `None` if it can be quantized.
pub fn float_reason(operator: &str) -> Option<&'static str> {
    Operator::named(operator).float_reason()
}

/// True if a model contains quantized operators.
pub fn is_quantized(model: &Model) -> bool {
    model
        .graph
        .nodes()
        .iter()
        .any(|node| is_quantized_operator(node.op_type.as_str()))
}

/// True for operators that occur only in quantized models.
pub(super) fn is_quantized_operator(operator: &str) -> bool {
    Operator::in_any_domain(operator).has(Property::OnlyQuantized)
}
