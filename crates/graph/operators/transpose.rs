//! Transpose.

use super::Property::{ChangesForm, KeepsIndices, KeepsRange, MovesData, PassesInfinity};
use super::elements::{positions_of, strides};
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::Dim;
use crate::inferred_value::{InferredValue, LARGEST, count, positions};

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("Transpose")
    .infers(permuted)
    .with(&[MovesData, KeepsRange, ChangesForm, KeepsIndices])
    .with(&[PassesInfinity])
    .quantized(Treatment::Share)
    .same_type(1)
    .integers_since(1)];

fn permuted(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let Some(shape) = &input.shape else {
        return Some(InferredValue::new(input.element, None));
    };
    let order: Vec<usize> = match ctx.node.ints("perm") {
        Some(order) => positions(order, shape.len())?,
        None => (0..shape.len()).rev().collect(),
    };
    let dims: Vec<Dim> = order.iter().map(|&a| shape[a].clone()).collect();
    let result = InferredValue::new(input.element, Some(dims));
    let (Some(from), Some(to)) = (input.sizes(), result.sizes()) else {
        return Some(result);
    };
    if count(&to) > LARGEST {
        return Some(result);
    }
    let steps = strides(&from);
    let places = positions_of(&to, |index| {
        order.iter().zip(index).map(|(&a, i)| steps[a] * i).sum()
    });
    Some(result.with_elements_at(input, &places))
}
