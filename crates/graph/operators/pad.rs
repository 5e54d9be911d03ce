//! Pad.

use super::Property::KeepsRange;
use super::properties::ChannelRole;
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::Dim;
use crate::inferred_value::{InferredValue, positions};

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("Pad")
    .infers(padded)
    .with(&[KeepsRange])
    .quantized(Treatment::Pad)
    .shape_from(&[1, 3])
    .same_type(1)
    .channels(ChannelRole::Commutes)];

fn padded(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let shape = input.shape.as_ref()?;
    let pads = match ctx.node.ints("paddings") {
        Some(pads) => Some(pads.to_vec()),
        None => ctx.list("pads", 1),
    };
    let rank = shape.len();
    // The pads are those of the listed axes, or of all.
    let axes = match ctx.node.input_at(3) {
        Some(_) => ctx.list("axes", 3).and_then(|axes| positions(&axes, rank)),
        None => Some((0..rank).collect()),
    };
    let around = pads.zip(axes).and_then(|(pads, axes)| {
        let mut around = vec![(0, 0); rank];
        for (place, &axis) in axes.iter().enumerate() {
            around[axis] = (*pads.get(place)?, *pads.get(place + axes.len())?);
        }
        Some(around)
    });
    let size = |axis: usize| match (&shape[axis], &around) {
        (Dim::Known(size), Some(around)) => {
            let (before, after) = around[axis];
            let size = *size as i128 + i128::from(before) + i128::from(after);
            usize::try_from(size).map_or(Dim::Unknown, Dim::Known)
        }
        (dim, Some(around)) if around[axis] == (0, 0) => dim.clone(),
        _ => Dim::Unknown,
    };
    Some(InferredValue::new(
        input.element,
        Some((0..rank).map(size).collect()),
    ))
}
