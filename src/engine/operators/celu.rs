//! Celu: x above zero, alpha · (e^(x / alpha) − 1) below. tract leaves out the first alpha.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::tract_core::ops::math;
use tract_onnx::tract_hir::internal::*;

use super::Built;

#[derive(Clone, Copy, Debug)]
struct Celu {
    alpha: f32,
}

pub(super) fn build(_context: &ParsingContext, node: &NodeProto) -> Built {
    let alpha = node.get_attr_opt("alpha")?.unwrap_or(1.0);
    Ok((expand(Celu { alpha }), vec![]))
}

impl PartialEq for Celu {
    fn eq(&self, other: &Celu) -> bool {
        self.alpha.to_bits() == other.alpha.to_bits()
    }
}

impl Eq for Celu {}

impl std::hash::Hash for Celu {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.alpha.to_bits().hash(state);
    }
}

impl Expansion for Celu {
    fn name(&self) -> StaticName {
        "Celu".into()
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
        let alpha = number("alpha", self.alpha)?;
        let mut wire =
            |name: &str, operator: Box<dyn TypedOp>, of: &[OutletId]| -> TractResult<OutletId> {
                Ok(model.wire_node(format!("{prefix}.{name}"), operator, of)?[0])
            };
        // Below zero only: above it the power would be without bounds.
        let below = wire("below", Box::new(math::min()), &[inputs[0], zero])?;
        let part = wire("part", Box::new(math::div()), &[below, alpha])?;
        let power = wire("power", Box::new(math::exp()), &[part])?;
        let less = wire("less", Box::new(math::sub()), &[power, one])?;
        let scaled = wire("scaled", Box::new(math::mul()), &[less, alpha])?;
        let above = wire("above", Box::new(math::max()), &[inputs[0], zero])?;
        model.wire_node(prefix, math::add(), &[above, scaled])
    }
}
