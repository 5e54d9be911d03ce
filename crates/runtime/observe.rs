//! The observer: an operator that returns its input unchanged and marks where a run reports a
//! value.

use tract_onnx::pb::NodeProto;
use tract_onnx::tract_core::{as_op, not_out_of_plan, op_as_typed_op};
use tract_onnx::tract_hir::infer::{
    InferenceOp, InferenceResult, InferenceRulesOp, Solver, TensorProxy,
};
use tract_onnx::tract_hir::internal::*;
use tract_onnx::tract_hir::to_typed;

/// The name of the operator in the graph for tract; no written model contains it.
pub(super) const OPERATOR: &str = "OctetObserve";

/// Passes a value on; `slot` is its index among the watched values. Values beside it are further
/// inputs and are not passed on.
///
/// The operator can't be evaluated outside a run, so that tract doesn't fold it into a constant.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(super) struct Observe {
    pub(super) slot: usize,
}

impl Op for Observe {
    fn name(&self) -> StaticName {
        OPERATOR.into()
    }

    op_as_typed_op!();
}

impl EvalOp for Observe {
    not_out_of_plan!();

    fn eval(&self, _context: &EvalContext, mut inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        inputs.truncate(1);
        Ok(inputs)
    }

    fn forwards_input(&self) -> Option<usize> {
        Some(0)
    }
}

impl TypedOp for Observe {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        Ok(tvec!(inputs[0].datum_type.fact(inputs[0].shape.clone())))
    }

    as_op!();
}

impl InferenceRulesOp for Observe {
    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        solver.equals(&inputs[0].datum_type, &outputs[0].datum_type)?;
        solver.equals(&inputs[0].shape, &outputs[0].shape)
    }

    as_op!();
    to_typed!();
}

/// Builds the operator from its node; registered with tract under [`OPERATOR`].
pub(super) fn build(
    _context: &tract_onnx::model::ParsingContext,
    node: &NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    let slot: usize = node.get_attr("slot")?;
    Ok((Box::new(Observe { slot }), vec![]))
}
