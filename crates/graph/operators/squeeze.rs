//! Squeeze and Unsqueeze: axes of size 1 go or come.

use super::Operator;
use super::node_context::{NodeContext, Validation, ensure};
use super::opset_context::as_input;
use super::reshape::reshaping;
use super::shape_context::ShapeContext;
use crate::Dim;
use crate::inferred_value::{InferredValue, positions};

pub(super) static OPERATORS: &[Operator] = &[
    reshaping("Squeeze")
        .integer_list()
        .moved(&[("axes", 13)])
        .changed(&[(13, |to, node| as_input(to, node, "axes"))])
        .checks(squeezable)
        .infers(squeeze)
        .shape_from(&[1]),
    reshaping("Unsqueeze")
        .integer_list()
        .moved(&[("axes", 13)])
        .changed(&[(13, |to, node| as_input(to, node, "axes"))])
        .checks(unsqueezable)
        .infers(unsqueeze)
        .shape_from(&[1]),
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

/// Checks that the axes have size 1.
fn squeezable(ctx: &NodeContext) -> Validation {
    let Some(rank) = ctx.shape(0).map(<[Dim]>::len) else {
        return Ok(());
    };
    ctx.axes_among(rank, false)?;
    let axes = ctx.list("axes", 1).unwrap_or_default();
    for &axis in &axes {
        let along = if axis < 0 { axis + rank as i64 } else { axis };
        if let Some(size) = ctx.size(0, along as usize) {
            let expected = format!("axes of size 1, but axis {axis} has size {size}");
            ensure(size == 1, "axes", &axes, expected)?;
        }
    }
    Ok(())
}

/// Checks that the axes differ. Reductions and Squeeze take a set of axes.
fn unsqueezable(ctx: &NodeContext) -> Validation {
    let (Some(shape), Some(axes)) = (ctx.shape(0), ctx.list("axes", 1)) else {
        return Ok(());
    };
    let rank = shape.len() + axes.len();
    ctx.axes_among(rank, true)?;
    let from_front = |&axis: &i64| if axis < 0 { axis + rank as i64 } else { axis };
    let mut places: Vec<i64> = axes.iter().map(from_front).collect();
    places.sort_unstable();
    let twice = places.windows(2).any(|pair| pair[0] == pair[1]);
    ensure(!twice, "axes", &axes, "each another")
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::Integers;
    use super::super::test_models::{PICTURE, node, refused, taken};

    #[test]
    fn axes_are_those_of_the_shape_and_have_size_one() {
        refused(node("Squeeze"), PICTURE, &[Integers(&[9])]);
        refused(node("Squeeze"), PICTURE, &[Integers(&[1])]);
        taken(node("Squeeze"), PICTURE, &[Integers(&[0])]);
        refused(node("Unsqueeze"), PICTURE, &[Integers(&[19])]);
        refused(node("Unsqueeze"), PICTURE, &[Integers(&[0, -6])]);
        taken(node("Unsqueeze"), PICTURE, &[Integers(&[0, 5])]);
    }
}
