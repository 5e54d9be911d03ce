//! Softplus: ln(1 + e^x), taken as max(x, 0) + ln(1 + e^-|x|). tract takes the power of x itself, which is infinite from 89 on.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::tract_core::ops::math;
use tract_onnx::tract_hir::internal::*;

use super::Built;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Softplus;

pub(super) fn build(_context: &ParsingContext, _node: &NodeProto) -> Built {
    Ok((expand(Softplus), vec![]))
}

impl Expansion for Softplus {
    fn name(&self) -> StaticName {
        "Softplus".into()
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        check_input_arity(inputs, 1)?;
        check_output_arity(outputs, 1)?;
        solver.equals(&inputs[0].datum_type, &outputs[0].datum_type)?;
        solver.equals(&inputs[0].shape, &outputs[0].shape)
    }

    fn wire(
        &self,
        prefix: &str,
        model: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let fact = model.outlet_fact(inputs[0])?;
        let (element, rank) = (fact.datum_type, fact.rank());
        let mut number = |name: &str, value: f32| -> TractResult<OutletId> {
            let value = tensor0(value).cast_to_dt(element)?.into_owned();
            model.add_const(format!("{prefix}.{name}"), value.broadcast_into_rank(rank)?)
        };
        let zero = number("zero", 0.0)?;
        let one = number("one", 1.0)?;
        let mut wire =
            |name: &str, operator: Box<dyn TypedOp>, of: &[OutletId]| -> TractResult<OutletId> {
                Ok(model.wire_node(format!("{prefix}.{name}"), operator, of)?[0])
            };
        let size = wire("size", Box::new(math::abs()), &[inputs[0]])?;
        let below = wire("below", Box::new(math::neg()), &[size])?;
        let power = wire("power", Box::new(math::exp()), &[below])?;
        let more = wire("more", Box::new(math::add()), &[power, one])?;
        let bend = wire("bend", Box::new(math::ln()), &[more])?;
        let above = wire("above", Box::new(math::max()), &[inputs[0], zero])?;
        model.wire_node(prefix, math::add(), &[above, bend])
    }
}
