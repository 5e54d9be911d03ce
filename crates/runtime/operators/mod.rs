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

pub(super) use native::NativeOperator;
pub(super) use recurrent::in_order;

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

#[cfg(test)]
mod test_models;
#[cfg(test)]
mod tests;
