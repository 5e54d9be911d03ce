//! Split.

use super::Property::{KeepsRange, MovesData};
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::Dim;
use crate::inferred_value::{InferredValue, LARGEST, position};

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("Split")
    .infers_all(parts)
    .with(&[MovesData, KeepsRange])
    .quantized(Treatment::Split)
    .shape_from(&[1])
    .same_type(1)
    .integers_since(1)];

fn parts(ctx: &ShapeContext) -> Vec<Option<InferredValue>> {
    let count = ctx.node.output.len();
    let Some(input) = ctx.input(0) else {
        return vec![None; count];
    };
    let unknown = vec![Some(InferredValue::new(input.element, None)); count];
    let Some(shape) = &input.shape else {
        return unknown;
    };
    let Some(axis) = position(ctx.node.int("axis").unwrap_or(0), shape.len()) else {
        return unknown;
    };
    let parts: Option<Vec<usize>> = match (ctx.list("split", 1), &shape[axis]) {
        (Some(parts), _) => parts.iter().map(|&p| usize::try_from(p).ok()).collect(),
        (None, Dim::Known(size)) if !ctx.is_present("split", 1) && count > 0 => {
            // Equal parts, the last one smaller.
            let part = size.div_ceil(count);
            Some(
                (0..count)
                    .map(|i| part.min(size.saturating_sub(i * part)))
                    .collect(),
            )
        }
        _ => None,
    };
    let parts = parts.filter(|p| p.len() == count);
    let all = parts.iter().flatten();
    let few = all.fold(0, |all: usize, &part| all.saturating_add(part)) <= LARGEST;
    let mut start = 0;
    (0..count)
        .map(|i| {
            let mut dims = shape.clone();
            dims[axis] = parts.as_ref().map_or(Dim::Unknown, |p| Dim::Known(p[i]));
            let result = InferredValue::new(input.element, Some(dims));
            let (Some(parts), 1, true) = (&parts, shape.len(), few) else {
                return Some(result);
            };
            let places: Vec<usize> = (start..start + parts[i]).collect();
            start += parts[i];
            Some(result.with_elements_at(input, &places))
        })
        .collect()
}
