//! The sum of two values of one shape, and the clamp behind it, in one pass and in place.

use octet_kernels::float::add;
use tract_onnx::tract_core::ops::binary::TypedBinOp;
use tract_onnx::tract_core::ops::math::Add;
use tract_onnx::tract_core::{as_op, op_as_typed_op, op_out_of_plan};
use tract_onnx::tract_hir::internal::*;

use super::clamp::Clamp;
use crate::share_rows::share_rows;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FloatSum {
    clamp: Clamp,
}

impl FloatSum {
    /// Replaces an addition of two computed values of one known shape.
    pub(super) fn from_tract(
        model: &TypedModel,
        node: &TypedNode,
    ) -> TractResult<Option<FloatSum>> {
        let Some(operation) = node.op_as::<TypedBinOp>() else {
            return Ok(None);
        };
        if !operation.0.is::<Add>() {
            return Ok(None);
        }
        let [one, other] = [0, 1].map(|slot| model.outlet_fact(node.inputs[slot]));
        let (one, other) = (one?, other?);
        let plain = |fact: &TypedFact| {
            fact.konst.is_none()
                && fact.datum_type == f32::datum_type()
                && fact.shape.as_concrete().is_some()
        };
        let fits = plain(one) && plain(other) && one.shape == other.shape;
        let clamp = Clamp::new(f32::NEG_INFINITY, f32::INFINITY);
        Ok(fits.then_some(FloatSum { clamp }))
    }

    /// Appends a clamp.
    pub(super) fn clamped(&self, clamp: Clamp) -> FloatSum {
        FloatSum {
            clamp: self.clamp.then(clamp),
        }
    }
}

impl Op for FloatSum {
    fn name(&self) -> StaticName {
        "Sum".into()
    }

    op_as_typed_op!();
}

impl EvalOp for FloatSum {
    op_out_of_plan!();

    fn eval(&self, _context: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let (one, other) = args_2!(inputs);
        ensure!(one.shape() == other.shape(), "a sum of unequal shapes");
        let mut sums = one.into_tensor();
        let mut plain = sums.try_as_plain_ram_mut()?;
        let added = other.try_as_plain_ram()?;
        let added = added.as_slice::<f32>()?;
        let sums_of = plain.as_slice_mut::<f32>()?;
        let bounds = (self.clamp.low, self.clamp.high);
        share_rows(sums_of, 1, added.len(), |places, sums| {
            add(sums, &added[places], bounds);
        });
        Ok(tvec!(sums.into_tvalue()))
    }
}

impl TypedOp for FloatSum {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        Ok(tvec!(inputs[0].datum_type.fact(inputs[0].shape.clone())))
    }

    as_op!();
}
