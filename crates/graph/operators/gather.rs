//! Gather and its relatives: elements by index.

use super::Property::{CarriesIntegers, MovesData, SelectsElements};
use super::node_context::{NodeContext, Validation, ensure};
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::Dim;
use crate::inferred_value::{InferredValue, LARGEST, count, position};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Gather")
        .with(&[SelectsElements, CarriesIntegers])
        .requires(2)
        .at_most(2)
        .ranks(&[(0, 1)])
        .checks(indices)
        .infers(gather)
        .with(&[MovesData])
        .quantized(Treatment::Gather)
        .weights(&[0])
        .same_type(1)
        .integers_since(1),
    Operator::onnx("GatherElements")
        .with(&[SelectsElements, CarriesIntegers])
        .requires(2)
        .ranks(&[(0, 1)])
        .checks(indices_by_element)
        .infers(|ctx| {
            let shape = ctx.input(1)?.shape.clone();
            Some(InferredValue::new(ctx.input(0)?.element, shape))
        })
        .quantized(Treatment::Gather)
        .integers_since(1),
    Operator::onnx("GatherND")
        .requires(2)
        .ranks(&[(0, 1), (1, 1)])
        .checks(indices_of_rows)
        .infers(gather_nd),
];

fn gather(ctx: &ShapeContext) -> Option<InferredValue> {
    let (input, indices) = (ctx.input(0)?, ctx.input(1)?);
    let (Some(shape), Some(index_shape)) = (&input.shape, &indices.shape) else {
        return Some(InferredValue::new(input.element, None));
    };
    let axis = position(ctx.node.int("axis").unwrap_or(0), shape.len())?;
    let dims = [&shape[..axis], index_shape, &shape[axis + 1..]].concat();
    let result = InferredValue::new(input.element, Some(dims));
    let (Some(old), Some(new), Some(at)) = (input.sizes(), result.sizes(), indices.all_integers())
    else {
        return Some(result);
    };
    if count(&new) > LARGEST || count(&old) > LARGEST {
        return Some(result);
    }
    let size = old[axis] as i64;
    let at: Option<Vec<usize>> = at
        .iter()
        .map(|&i| {
            usize::try_from(if i < 0 { i + size } else { i })
                .ok()
                .filter(|&i| i < old[axis])
        })
        .collect();
    let Some(at) = at else { return Some(result) };
    let after = count(&old[axis + 1..]);
    let places: Vec<usize> = (0..count(&new))
        .map(|i| {
            let (rest, inner) = (i / after.max(1), i % after.max(1));
            let (outer, which) = (rest / at.len(), rest % at.len());
            (outer * old[axis] + at[which]) * after + inner
        })
        .collect();
    Some(result.with_elements_at(input, &places))
}

fn gather_nd(ctx: &ShapeContext) -> Option<InferredValue> {
    let (input, indices) = (ctx.input(0)?, ctx.input(1)?);
    let unknown = Some(InferredValue::new(input.element, None));
    let (Some(shape), Some([places @ .., Dim::Known(depth)])) =
        (input.shape.as_deref(), indices.shape.as_deref())
    else {
        return unknown;
    };
    let batch = usize::try_from(ctx.node.int("batch_dims").unwrap_or(0)).ok()?;
    match shape.get(batch.saturating_add(*depth)..) {
        Some(rest) => {
            let dims = [places, rest].concat();
            Some(InferredValue::new(input.element, Some(dims)))
        }
        None => unknown,
    }
}

/// Checks constant indices along the axis.
fn indices(ctx: &NodeContext) -> Validation {
    if let (Some(shape), Some(indices)) = (ctx.shape(0), ctx.input(1))
        && let Some(axis) = position(ctx.node.int("axis").unwrap_or(0), shape.len())
    {
        let all = indices.all_integers().unwrap_or_default();
        all.iter().try_for_each(|&i| ctx.inside(i, axis, true))?;
    }
    ctx.axis_in_range()
}

/// Checks constant indices along the axis, and that they fit into the data along other axes.
pub(super) fn indices_by_element(ctx: &NodeContext) -> Validation {
    if let (Some(shape), Some(indices)) = (ctx.shape(0), ctx.input(1))
        && let Some(axis) = position(ctx.node.int("axis").unwrap_or(0), shape.len())
    {
        let sizes = indices.sizes();
        for (other, &size) in sizes.iter().flatten().enumerate() {
            let most = ctx.size(0, other).filter(|_| other != axis);
            let most = most.unwrap_or(i64::MAX);
            let expected = format!("no more than {most} along axis {other}");
            let fits = size as i64 <= most;
            ensure(fits, "the shape of its indices", &sizes, expected)?;
        }
        let all = indices.all_integers().unwrap_or_default();
        all.iter().try_for_each(|&i| ctx.inside(i, axis, true))?;
    }
    ctx.axis_in_range()
}

/// Checks the number of axes that each row of indices names, and constant indices.
fn indices_of_rows(ctx: &NodeContext) -> Validation {
    let (Some(rank), Some(indices)) = (ctx.shape(0).map(<[Dim]>::len), ctx.input(1)) else {
        return Ok(());
    };
    let sizes = indices.sizes();
    let all = indices.all_integers().unwrap_or_default();
    let batch = ctx.node.int("batch_dims").unwrap_or(0);
    let expected = format!("from 0 to {}", rank - 1);
    let inside = (0..rank as i64).contains(&batch);
    ensure(inside, "batch_dims", batch, expected)?;
    let axes = rank - batch as usize;
    let depth = sizes.and_then(|sizes| sizes.last().copied());
    let depth = depth.unwrap_or(axes);
    let expected = format!("from 1 to {axes}");
    let what = "the last axis of its indices";
    ensure((1..=axes).contains(&depth), what, depth, expected)?;
    let place = |(at, &index): (usize, &i64)| ctx.inside(index, batch as usize + at % depth, false);
    all.iter().enumerate().try_for_each(place)
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::Integers;
    use super::super::test_models::{PICTURE, int, node, refused, taken};

    #[test]
    fn constants_look_up_what_is_there() {
        for (node, places) in [
            (int("Gather", "axis", 1), &[0, 4][..]),
            (int("Gather", "axis", 1), &[-5]),
            (int("Gather", "axis", 7), &[0]),
            (int("GatherND", "batch_dims", 4), &[0]),
            (node("GatherND"), &[1]),
            (node("GatherND"), &[0, 4]),
            (node("GatherND"), &[0, 0, 0, 0, 0]),
            (node("GatherND"), &[]),
        ] {
            refused(node, PICTURE, &[Integers(places)]);
        }
        refused(node("GatherElements"), &[3], &[Integers(&[3])]);
        refused(node("ScatterElements"), &[3], &[Integers(&[-4])]);
        taken(int("Gather", "axis", 1), PICTURE, &[Integers(&[3, -4])]);
        taken(node("GatherND"), PICTURE, &[Integers(&[0, 3, 5])]);
        taken(node("GatherElements"), &[3], &[Integers(&[2, 0, -3, 1])]);
    }
}
