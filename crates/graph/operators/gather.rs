//! Gather and its relatives: elements by index.

use super::Property::MovesData;
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::Dim;
use crate::inferred_value::{InferredValue, LARGEST, count, position};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Gather")
        .infers(gather)
        .with(&[MovesData])
        .quantized(Treatment::Gather)
        .weights(&[0])
        .same_type(1)
        .integers_since(1),
    Operator::onnx("GatherElements")
        .infers(|ctx| {
            let shape = ctx.input(1)?.shape.clone();
            Some(InferredValue::new(ctx.input(0)?.element, shape))
        })
        .quantized(Treatment::Gather)
        .integers_since(1),
    Operator::onnx("GatherND").infers(gather_nd),
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
