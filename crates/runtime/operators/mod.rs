//! Operators that tract lacks or computes differently from ONNX Runtime. They are added to tract's
//! or replace them.

mod activations;
mod constant_of_shape;
mod conv_transpose;
mod declared_types;
mod matmul_integer;
mod native;
mod pad;
mod recurrent;
mod resize;
mod slice;

use tract_onnx::Onnx;
use tract_onnx::tract_hir::internal::*;

pub(super) use native::NativeOperator;
use octet_graph::prepare::position;
pub(super) use recurrent::in_order;

type BuildResult = TractResult<(Box<dyn InferenceOp>, Vec<String>)>;

/// Registers our operators. For type inference, operators with data-dependent sizes infer only the
/// type.
pub(super) fn register(onnx: &mut Onnx, only_types: bool) {
    activations::register(onnx);
    constant_of_shape::register(onnx);
    conv_transpose::register(onnx);
    declared_types::register(onnx, only_types);
    matmul_integer::register(onnx);
    native::register(onnx);
    pad::register(onnx);
    resize::register(onnx);
    slice::register(onnx);
}

/// The integers of a constant.
fn integers(tensor: &Tensor) -> TractResult<Vec<i64>> {
    let cast = tensor.cast_to::<i64>()?;
    Ok(cast.try_as_plain_ram()?.as_slice::<i64>()?.to_vec())
}

/// An axis counted from the front.
fn axis_of(axis: i64, rank: usize) -> TractResult<usize> {
    position(axis, rank).with_context(|| format!("axis {axis} is outside a tensor of {rank} axes"))
}

#[cfg(test)]
mod test_models;
#[cfg(test)]
mod tests;
