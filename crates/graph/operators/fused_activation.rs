//! Activations that ONNX Runtime's optimizer fuses.

use super::Operator;
use super::Property::{Activation, Fused, WideActivation};

const fn fused(name: &'static str) -> Operator {
    Operator::microsoft(name).with(&[Fused])
}

pub(super) static OPERATORS: &[Operator] = &[
    fused("BiasGelu").with(&[WideActivation]).requires(2),
    Operator::microsoft("BiasSplitGelu").with(&[WideActivation]),
    fused("FastGelu").with(&[Activation]),
    fused("Gelu").with(&[Activation]),
    fused("QuickGelu").with(&[Activation]),
];
