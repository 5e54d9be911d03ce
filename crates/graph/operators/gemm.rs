//! Products of two matrices with a bias.

use super::Property::{EndsClassifier, Fused, MatrixProduct, OnlyQuantized, SaturatesPairs};
use super::descriptor::ALL_INPUTS;
use super::properties::{ChannelPosition, ChannelRole, MacRule};
use super::shape_context::ShapeContext;
use super::{Operator, Treatment, WeightAxis};
use crate::Dim;
use crate::inferred_value::InferredValue;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Gemm")
        .infers(product)
        .with(&[MatrixProduct, SaturatesPairs, EndsClassifier])
        .quantized(Treatment::Weighted(WeightAxis::OfGemm))
        .weights(&[1])
        .same_type(ALL_INPUTS)
        .macs(MacRule::Gemm)
        .channels(ChannelRole::Layer(ChannelPosition::Second)),
    Operator::microsoft("FusedGemm").with(&[Fused, EndsClassifier]),
    Operator::microsoft("QGemm")
        .with(&[MatrixProduct, SaturatesPairs, OnlyQuantized])
        .weights(&[3]),
];

fn product(ctx: &ShapeContext) -> Option<InferredValue> {
    let side = |slot: usize, key: &str, axis: usize| {
        let axis = if ctx.node.int(key).unwrap_or(0) != 0 {
            1 - axis
        } else {
            axis
        };
        ctx.input(slot)
            .and_then(|k| k.shape.as_ref()?.get(axis).cloned())
            .unwrap_or(Dim::Unknown)
    };
    let element = ctx.input(0).or(ctx.input(1))?.element;
    Some(InferredValue::new(
        element,
        Some(vec![side(0, "transA", 0), side(1, "transB", 1)]),
    ))
}
