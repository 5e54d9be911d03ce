//! Operators that give the same elements another shape: Reshape and Flatten.

use super::Operator;
use super::Property::{ChangesForm, KeepsIndices, KeepsRange, MovesData, PassesInfinity, Reshapes};
use super::Treatment;
use super::properties::ChannelRole;
use super::shape_context::ShapeContext;
use crate::Dim;
use crate::inferred_value::{InferredValue, count, sizes};

/// An operator that gives the same elements another shape.
pub(super) const fn reshaping(name: &'static str) -> Operator {
    Operator::onnx(name)
        .with(&[MovesData, KeepsRange, Reshapes, ChangesForm, KeepsIndices])
        .with(&[PassesInfinity])
        .quantized(Treatment::Share)
        .same_type(1)
        .integers_since(1)
        .channels(ChannelRole::Reshapes)
}

pub(super) static OPERATORS: &[Operator] = &[
    reshaping("Flatten").infers(flatten),
    reshaping("Reshape").shape_from(&[1]).infers(reshape),
];

fn flatten(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let result = |dims| Some(InferredValue::new(input.element, Some(dims)).with_elements_of(input));
    let Some(shape) = &input.shape else {
        return result(vec![Dim::Unknown; 2]);
    };
    let axis = ctx.node.int("axis").unwrap_or(1);
    let axis = if axis < 0 {
        axis + shape.len() as i64
    } else {
        axis
    };
    let (left, right) = shape.split_at_checked(usize::try_from(axis).ok()?)?;
    result(vec![product(left), product(right)])
}

fn product(dims: &[Dim]) -> Dim {
    match dims {
        [one] => one.clone(),
        _ => sizes(dims).map_or(Dim::Unknown, |s| Dim::Known(count(&s))),
    }
}

fn reshape(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let Some(target) = (match ctx.node.ints("shape") {
        Some(shape) => Some(shape.iter().map(|&v| Some(v)).collect::<Vec<_>>()),
        None => ctx.input(1)?.integers.clone(),
    }) else {
        return Some(InferredValue::new(input.element, ctx.shape_from_input(1)));
    };
    let keeps = ctx.node.int("allowzero").unwrap_or(0) == 0;
    let from = input.shape.as_deref();
    // Sizes that are copied cancel out of the inferred one, known or not.
    let mut rest: Option<Vec<Dim>> = from.map(<[Dim]>::to_vec);
    let mut taken = Some(1usize);
    let mut dims = Vec::new();
    let mut open = None;
    for (axis, &size) in target.iter().enumerate() {
        dims.push(match size {
            Some(0) if keeps => {
                let size = from
                    .and_then(|f| f.get(axis))
                    .cloned()
                    .unwrap_or(Dim::Unknown);
                if let Some(rest) = rest.as_mut().and_then(|r| r.get_mut(axis)) {
                    *rest = Dim::Known(1);
                }
                size
            }
            Some(-1) => {
                open = Some(axis);
                Dim::Unknown
            }
            Some(size) if size >= 0 => {
                taken = taken.and_then(|t| t.checked_mul(size as usize));
                Dim::Known(size as usize)
            }
            _ => {
                taken = None;
                Dim::Unknown
            }
        });
    }
    if let (Some(axis), Some(taken), Some(rest)) = (open, taken, rest.as_deref().and_then(sizes)) {
        let count = count(&rest);
        if taken > 0 && count.is_multiple_of(taken) {
            dims[axis] = Dim::Known(count / taken);
        }
    }
    Some(InferredValue::new(input.element, Some(dims)).with_elements_of(input))
}
