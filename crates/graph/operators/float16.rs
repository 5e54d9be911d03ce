//! Treatments of operators in a float16 model.

use super::Operator;
use super::properties::Float16;
use crate::{MICROSOFT, Node};

/// Reason of operators without float16 in some opset.
pub(super) const NOT_IN_EVERY_OPSET: Float16 = Float16::Stays("not every opset has float16 for it");

/// Reason of operators on coordinates and ranks: these need more than float16's 11 bits.
pub(super) const POSITIONS: Float16 =
    Float16::Stays("positions need more precision than float16 has");

/// Reason of operators without a kernel. ONNX Runtime inserts Casts around nodes without a float16
/// kernel. It does not where an attribute names the type, nor inside a function (1.31.1).
pub(super) const NO_KERNEL: Float16 =
    Float16::Stays("ONNX Runtime has no float16 kernel for it on the CPU");

/// Reason of operators that are not converted.
pub(super) const NOT_CONVERTED: Float16 = Float16::Stays("Octet does not convert it to float16");

/// Operators of ONNX Runtime that take halves: with a kernel, or with the Casts that it inserts.
const HALVES_OF_RUNTIME: [&str; 8] = [
    "GatherBlockQuantized",
    "GroupQueryAttention",
    "MatMulNBits",
    "MultiHeadAttention",
    "RotaryEmbedding",
    "SimplifiedLayerNormalization",
    "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
];

/// The treatment of a node in a float16 model.
pub fn float16_treatment(node: &Node) -> Float16 {
    let name = node.op_type.as_str();
    let of_runtime = node.domain.as_deref() == Some(MICROSOFT);
    match of_runtime && HALVES_OF_RUNTIME.contains(&name) {
        true => Float16::Converts,
        false => Operator::of(node).float16,
    }
}
