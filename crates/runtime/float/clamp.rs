//! Clamps values between two bounds, in one pass and in place.

use octet_kernels::float::clamp;
use tract_onnx::tract_core::{as_op, op_as_typed_op, op_out_of_plan};
use tract_onnx::tract_hir::internal::*;

use crate::share_rows::share_rows;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Clamp {
    pub(super) low: f32,
    pub(super) high: f32,
}

impl Clamp {
    pub(super) fn new(low: f32, high: f32) -> Clamp {
        Clamp { low, high }
    }

    /// This clamp followed by another.
    pub(super) fn then(self, next: Clamp) -> Clamp {
        let clamp = |value: f32| value.max(next.low).min(next.high);
        Clamp::new(clamp(self.low), clamp(self.high))
    }
}

// The bounds are never NaN.
impl Eq for Clamp {}

impl std::hash::Hash for Clamp {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.low.to_bits(), self.high.to_bits()).hash(state);
    }
}

impl Op for Clamp {
    fn name(&self) -> StaticName {
        "Clamp".into()
    }

    op_as_typed_op!();
}

impl EvalOp for Clamp {
    op_out_of_plan!();

    fn eval(&self, _context: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let mut values = args_1!(inputs).into_tensor();
        let mut plain = values.try_as_plain_ram_mut()?;
        let floats = plain.as_slice_mut::<f32>()?;
        let bounds = (self.low, self.high);
        share_rows(floats, 1, floats.len(), |_, floats| clamp(floats, bounds));
        Ok(tvec!(values.into_tvalue()))
    }
}

impl TypedOp for Clamp {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        Ok(tvec!(inputs[0].datum_type.fact(inputs[0].shape.clone())))
    }

    as_op!();
}
