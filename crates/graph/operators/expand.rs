//! Operators that repeat elements: Expand and Tile.

use super::Operator;
use super::Property::{KeepsIndices, MovesData, PassesInfinity};
use super::elements::broadcast_positions;
use super::shape_context::{ShapeContext, broadcast};
use crate::Dim;
use crate::inferred_value::InferredValue;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Expand")
        .infers(expand)
        .with(&[MovesData, KeepsIndices, PassesInfinity])
        .shape_from(&[1]),
    Operator::onnx("Tile").infers(tile).shape_from(&[1]),
];

fn expand(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let shape = match (&input.shape, ctx.shape_from_input(1)) {
        (Some(a), Some(b)) => Some(broadcast(&[a, &b])),
        _ => None,
    };
    let result = InferredValue::new(input.element, shape);
    let places = input
        .sizes()
        .zip(result.sizes())
        .and_then(|(from, to)| broadcast_positions(&from, &to));
    Some(match places {
        Some(places) => result.with_elements_at(input, &places),
        None => result,
    })
}

fn tile(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let shape = input.shape.as_ref()?;
    let repeats = ctx.input(1).and_then(InferredValue::all_integers);
    let dims = match repeats {
        Some(repeats) if repeats.len() == shape.len() => {
            let times = |(d, r): (&Dim, i64)| match (d, r) {
                (d, 1) => d.clone(),
                (Dim::Known(size), r) if r >= 0 => Dim::Known(size.saturating_mul(r as usize)),
                _ => Dim::Unknown,
            };
            shape.iter().zip(repeats).map(times).collect()
        }
        _ => vec![Dim::Unknown; shape.len()],
    };
    Some(InferredValue::new(input.element, Some(dims)))
}
