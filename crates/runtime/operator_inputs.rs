//! Helpers for operators that are registered with tract.

use tract_onnx::tract_hir::internal::*;

use octet_graph::prepare::position;

/// An operator and its symbolic outputs, as tract wants them from a node.
pub(super) type BuildResult = TractResult<(Box<dyn InferenceOp>, Vec<String>)>;

/// The integers of a constant.
pub(super) fn integers(tensor: &Tensor) -> TractResult<Vec<i64>> {
    let cast = tensor.cast_to::<i64>()?;
    Ok(cast.try_as_plain_ram()?.as_slice::<i64>()?.to_vec())
}

/// An axis counted from the front.
pub(super) fn axis_of(axis: i64, rank: usize) -> TractResult<usize> {
    position(axis, rank).with_context(|| format!("axis {axis} is outside a tensor of {rank} axes"))
}
