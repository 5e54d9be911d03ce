//! DepthToSpace and SpaceToDepth.

use super::Property::KeepsRange;
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::Dim;
use crate::inferred_value::InferredValue;

const fn blocks(name: &'static str) -> Operator {
    Operator::onnx(name)
        .with(&[KeepsRange])
        .quantized_here(Treatment::Share)
}

pub(super) static OPERATORS: &[Operator] = &[
    blocks("DepthToSpace").infers(|ctx| moved(ctx, true)),
    blocks("SpaceToDepth").infers(|ctx| moved(ctx, false)),
];

/// Blocks of an image that move to channels, or back.
fn moved(ctx: &ShapeContext, to_space: bool) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let shape = input.shape.as_deref()?;
    let block = usize::try_from(ctx.node.int("blocksize")?)
        .ok()
        .filter(|&b| b > 0)?;
    let [batch, channel, height, width] = shape else {
        return None;
    };
    let times = |d: &Dim, by: usize, up: bool| match d {
        Dim::Known(size) => Dim::Known(if up {
            size.saturating_mul(by)
        } else {
            size / by
        }),
        _ => Dim::Unknown,
    };
    let dims = vec![
        batch.clone(),
        times(channel, block.saturating_mul(block), !to_space),
        times(height, block, to_space),
        times(width, block, to_space),
    ];
    Some(InferredValue::new(input.element, Some(dims)))
}
