//! OneHot.

use super::Operator;
use super::quantization::SHAPES;
use super::shape_context::ShapeContext;
use crate::Dim;
use crate::inferred_value::{InferredValue, position};

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("OneHot")
    .infers(one_hot)
    .stays_float(SHAPES)
    .shape_from(&[1])];

fn one_hot(ctx: &ShapeContext) -> Option<InferredValue> {
    let (indices, places) = (ctx.input(0)?, ctx.input(1)?.all_integers());
    let places = places.and_then(|places| usize::try_from(*places.first()?).ok());
    let shape = indices.shape.clone().and_then(|mut shape| {
        let axis = position(ctx.node.int("axis").unwrap_or(-1), shape.len() + 1)?;
        shape.insert(axis, places.map_or(Dim::Unknown, Dim::Known));
        Some(shape)
    });
    Some(InferredValue::new(ctx.input(2)?.element, shape))
}
