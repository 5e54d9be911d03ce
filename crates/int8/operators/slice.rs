//! Slice with constant bounds and steps.

use std::sync::Arc;

use octet_graph::prepare::slice_bounds;
use octet_kernels::int8::stepped;

use super::selection::{Selection, whole};
use crate::float_reason::FloatReason;
use crate::operation::Operation;
use crate::pattern::attributes::{axis, bounded};
use crate::pattern::matcher::{MatchPass, NodeMatcher, OneOperand, OperatorMatcher};

pub(super) const SLICE: OperatorMatcher = OperatorMatcher {
    names: &["Slice"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::OneOperand(slice),
};

fn slice(one: &OneOperand) -> Result<Arc<dyn Operation>, FloatReason> {
    let (node, shape) = (one.node, &one.shape);
    let list = |key: &'static str, slot: usize| {
        let values = one.reader.list(node, key, slot);
        if values.is_none() && node.input_at(slot).is_some() {
            return Err(FloatReason::SliceNotConstant(key));
        }
        Ok(values)
    };
    let starts = list("starts", 1)?.ok_or(FloatReason::NoStarts)?;
    let ends = list("ends", 2)?.ok_or(FloatReason::NoEnds)?;
    let axes = list("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = list("steps", 4)?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return Err(FloatReason::SliceLengths);
    }
    bounded(shape)?;
    let mut positions = whole(shape);
    for at in 0..starts.len() {
        let axis = axis(axes[at], shape.len())?;
        let step = steps[at];
        if step == 0 {
            return Err(FloatReason::StepOfZero);
        }
        let (first, count) = slice_bounds(shape[axis] as i64, starts[at], ends[at], step);
        let first = usize::try_from(first).unwrap_or(0);
        let step = isize::try_from(step).map_err(|_| FloatReason::StepTooLarge)?;
        positions[axis] = stepped(first, step, count);
    }
    Selection::of_one(one, positions, 0)
}
