//! Operators that repeat elements: Expand and Tile.

use super::Operator;
use super::Property::{KeepsIndices, MovesData, PassesInfinity, SelectsElements};
use super::elements::broadcast_positions;
use super::node_context::{NodeContext, Validation, broadcasts};
use super::shape_context::{ShapeContext, broadcast};
use crate::Dim;
use crate::inferred_value::InferredValue;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Expand")
        .with(&[SelectsElements])
        .requires(2)
        .integer_list()
        .checks(|ctx| ctx.output_sizes(1))
        .checks_shapes(fits)
        .infers(expand)
        .with(&[MovesData, KeepsIndices, PassesInfinity])
        .shape_from(&[1]),
    Operator::onnx("Tile")
        .with(&[SelectsElements])
        .integer_list()
        .checks(|ctx| ctx.output_sizes(1))
        .infers(tile)
        .shape_from(&[1]),
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

/// Checks that the input broadcasts to the requested shape.
fn fits(ctx: &NodeContext) -> Validation {
    let requested = ctx.input(1).and_then(InferredValue::all_integers);
    let Some((own, requested)) = ctx.shape(0).zip(requested) else {
        return Ok(());
    };
    let requested = requested
        .iter()
        .map(|&size| Dim::Known(size.max(0) as usize));
    broadcasts(
        "the shape of its input and the requested one",
        &[own, &requested.collect::<Vec<_>>()],
    )
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::Integers;
    use super::super::test_models::{PICTURE, node, refused, taken};

    #[test]
    fn the_requested_shape_fits_the_input() {
        refused(node("Expand"), PICTURE, &[Integers(&[2, 3, 6, 6])]);
        taken(node("Expand"), PICTURE, &[Integers(&[2, 4, 1, 6])]);
        for (operator, sizes) in [("Expand", [1, -4, 1, 1]), ("Tile", [1, 1, 1 << 40, 1])] {
            let error = refused(node(operator), PICTURE, &[Integers(&sizes)]);
            assert!(error.contains("its sizes"), "{error}");
        }
    }
}
