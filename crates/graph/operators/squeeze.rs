//! Squeeze and Unsqueeze: axes of size 1 go or come.

use super::Operator;
use super::reshape::reshaping;
use super::shape_context::ShapeContext;
use crate::Dim;
use crate::inferred_value::{InferredValue, positions};

pub(super) static OPERATORS: &[Operator] = &[
    reshaping("Squeeze").shape_from(&[1]).infers(squeeze),
    reshaping("Unsqueeze").shape_from(&[1]).infers(unsqueeze),
];

fn squeeze(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let unknown = Some(InferredValue::new(input.element, None));
    let Some(shape) = &input.shape else {
        return unknown;
    };
    let axes = match (ctx.list("axes", 1), ctx.is_present("axes", 1)) {
        (Some(axes), _) => positions(&axes, shape.len())?,
        (None, true) => return unknown,
        (None, false) if shape.iter().all(|d| matches!(d, Dim::Known(_))) => (0..shape.len())
            .filter(|&a| shape[a] == Dim::Known(1))
            .collect(),
        (None, false) => return unknown,
    };
    let remaining = shape.iter().enumerate().filter(|(a, _)| !axes.contains(a));
    let dims = remaining.map(|(_, d)| d.clone()).collect();
    Some(InferredValue::new(input.element, Some(dims)).with_elements_of(input))
}

fn unsqueeze(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let (Some(shape), Some(axes)) = (&input.shape, ctx.list("axes", 1)) else {
        return Some(InferredValue::new(input.element, None));
    };
    let rank = shape.len() + axes.len();
    let axes = positions(&axes, rank)?;
    let mut old = shape.iter();
    let dims: Option<Vec<Dim>> = (0..rank)
        .map(|a| {
            if axes.contains(&a) {
                Some(Dim::Known(1))
            } else {
                old.next().cloned()
            }
        })
        .collect();
    Some(InferredValue::new(input.element, dims).with_elements_of(input))
}
