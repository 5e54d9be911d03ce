//! The table row of a native operator.

use octet_graph::operators::Operator;
use tract_onnx::tract_hir::internal::*;

use super::NativeCall;

/// The implementation of an operator.
#[derive(Clone, Copy, Debug)]
pub(super) enum NativeFunction {
    /// Computes 32-bit floats; further inputs may be integers.
    Floats(fn(&NativeCall, &mut [f32]) -> TractResult<()>),
    /// Computes elements of any type, given as bytes.
    Bytes(fn(&NativeCall, &mut [u8]) -> TractResult<()>),
    /// Fills the named outputs, in order; the first may be of another type than the first input.
    Several(fn(&NativeCall, &mut [Tensor]) -> TractResult<()>),
}
/// An operator with its implementation.
#[derive(Debug)]
pub(super) struct NativeKernel {
    pub(super) operator: &'static str,
    /// The name by which tract finds it.
    pub(super) known_as: &'static str,
    pub(super) function: NativeFunction,
}

impl NativeKernel {
    pub(super) const fn floats(
        operator: &'static str,
        function: fn(&NativeCall, &mut [f32]) -> TractResult<()>,
    ) -> NativeKernel {
        NativeKernel::new(operator, NativeFunction::Floats(function))
    }

    pub(super) const fn bytes(
        operator: &'static str,
        function: fn(&NativeCall, &mut [u8]) -> TractResult<()>,
    ) -> NativeKernel {
        NativeKernel::new(operator, NativeFunction::Bytes(function))
    }

    pub(super) const fn several(
        operator: &'static str,
        function: fn(&NativeCall, &mut [Tensor]) -> TractResult<()>,
    ) -> NativeKernel {
        NativeKernel::new(operator, NativeFunction::Several(function))
    }

    const fn new(operator: &'static str, function: NativeFunction) -> NativeKernel {
        NativeKernel {
            operator,
            known_as: operator,
            function,
        }
    }

    /// For variants of an operator that tract has.
    pub(super) const fn known_as(self, known_as: &'static str) -> NativeKernel {
        NativeKernel { known_as, ..self }
    }

    /// The input slots whose values determine the output shape.
    pub(super) fn shape_slots(&self) -> &'static [usize] {
        Operator::in_any_domain(self.operator).shape_slots
    }
}
