//! Activations that ONNX Runtime's optimizer fuses.

use super::Operator;
use super::Property::Fused;

const fn fused(name: &'static str) -> Operator {
    Operator::microsoft(name).with(&[Fused])
}

pub(super) static OPERATORS: &[Operator] = &[
    fused("BiasGelu").requires(2),
    fused("FastGelu"),
    fused("Gelu"),
    fused("QuickGelu"),
];
