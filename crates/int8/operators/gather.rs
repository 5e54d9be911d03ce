//! Gather with constant indices of any shape, selected in a row.

use std::sync::Arc;

use octet_graph::prepare::position;

use super::selection::{Selection, whole};
use crate::float_reason::FloatReason;
use crate::operation::Operation;
use crate::pattern::attributes::{axis, bounded, slot};
use crate::pattern::matcher::{MatchPass, NodeMatcher, OneOperand, OperatorMatcher};

pub(super) const GATHER: OperatorMatcher = OperatorMatcher {
    names: &["Gather"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::OneOperand(gather),
};

fn gather(one: &OneOperand) -> Result<Arc<dyn Operation>, FloatReason> {
    let (node, shape) = (one.node, &one.shape);
    let axis = axis(node.int("axis").unwrap_or(0), shape.len())?;
    let name = slot(node, 1)?;
    let places = one.reader.constant(name);
    let places = places.ok_or_else(|| FloatReason::IndicesNotConstant(name.to_owned()))?;
    let result = [&shape[..axis], &places.shape()?, &shape[axis + 1..]].concat();
    if result != one.output {
        return Err(FloatReason::DeclaredShape(result, one.output.clone()));
    }
    bounded(shape)?;
    let size = shape[axis];
    let place = |at: i64| position(at, size).ok_or(FloatReason::IndexOutOfRange(at, size));
    let mut positions = whole(shape);
    let picked = places.to_i64()?.into_iter().map(place);
    positions[axis] = picked
        .map(|place| place.map(Some))
        .collect::<Result<_, _>>()?;
    bounded(&[positions[axis].len()])?;
    Ok(Arc::new(Selection { positions, fill: 0 }))
}
