//! Operators on the matrices in the last two axes.

use super::Operator;
use super::shape_context::ShapeContext;
use crate::inferred_value::InferredValue;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Det").infers(determinant),
    Operator::onnx("Trilu").scalars(&[1]).ranks(&[(0, 2)]),
];

/// One number for each matrix.
fn determinant(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let batch = |own: &[_]| Some(own[..own.len().checked_sub(2)?].to_vec());
    let shape = input.shape.as_deref().and_then(batch);
    Some(InferredValue::new(input.element, shape))
}
