//! Pooling: largest or mean value of a window or of the whole image.

use super::Property::{EndsClassifier, KeepsRange, MovesData};
use super::properties::ChannelRole;
use super::shape_context::ShapeContext;
use super::window::{self, WindowKind};
use super::{Operator, Treatment};
use crate::Dim;
use crate::inferred_value::InferredValue;

const fn pooling(name: &'static str) -> Operator {
    Operator::onnx(name).infers(|ctx| window::infer(ctx, WindowKind::Pooling))
}

pub(super) static OPERATORS: &[Operator] = &[
    pooling("AveragePool")
        .quantized(Treatment::Share)
        .same_type(1)
        .channels(ChannelRole::Commutes),
    Operator::onnx("GlobalAveragePool")
        .infers(whole_image)
        .with(&[EndsClassifier])
        .quantized(Treatment::Elementwise)
        .same_type(1)
        .channels(ChannelRole::Commutes),
    Operator::onnx("GlobalLpPool"),
    Operator::onnx("GlobalMaxPool")
        .infers(whole_image)
        .with(&[MovesData, KeepsRange])
        .quantized_here(Treatment::Share)
        .channels(ChannelRole::Commutes),
    pooling("LpPool"),
    pooling("MaxPool")
        .with(&[MovesData, KeepsRange])
        .quantized(Treatment::Share)
        .integers_since(12)
        .channels(ChannelRole::Commutes),
    Operator::onnx("MaxUnpool").infers(unpool).shape_from(&[2]),
    Operator::microsoft("NhwcMaxPool"),
];

/// The pooling of a whole image.
fn whole_image(ctx: &ShapeContext) -> Option<InferredValue> {
    let mut result = ctx.same(0)?;
    if let Some(shape) = &mut result.shape {
        shape.iter_mut().skip(2).for_each(|d| *d = Dim::Known(1));
    }
    Some(result)
}

fn unpool(ctx: &ShapeContext) -> Option<InferredValue> {
    let shape = match ctx.node.input_at(2) {
        Some(_) => ctx.shape_from_input(2),
        None => window::shape(ctx, WindowKind::Unpooling),
    };
    Some(InferredValue::new(ctx.input(0)?.element, shape))
}
