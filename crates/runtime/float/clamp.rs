//! Clamps values between two bounds, in one pass and in place.

use tract_onnx::tract_core::{as_op, op_as_typed_op, op_out_of_plan};
use tract_onnx::tract_hir::internal::*;

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

    /// NaN stays NaN.
    fn apply(self, value: f32) -> f32 {
        let raised = if value < self.low { self.low } else { value };
        if self.high < raised {
            self.high
        } else {
            raised
        }
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
        for value in values.try_as_plain_ram_mut()?.as_slice_mut::<f32>()? {
            *value = self.apply(*value);
        }
        Ok(tvec!(values.into_tvalue()))
    }
}

impl TypedOp for Clamp {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        Ok(tvec!(inputs[0].datum_type.fact(inputs[0].shape.clone())))
    }

    as_op!();
}
