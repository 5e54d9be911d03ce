//! Softplus and Celu, which tract computes differently: its Softplus overflows from 89 on, and its
//! Celu omits the outer alpha.

use tract_onnx::Onnx;
use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::tract_core::ops::math;
use tract_onnx::tract_hir::internal::*;

use crate::operator_inputs::BuildResult;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Activation {
    /// ln(1 + e^x), computed as max(x, 0) + ln(1 + e^-|x|).
    Softplus,
    /// x above zero, alpha · (e^(x / alpha) − 1) below. Holds the bits of alpha.
    Celu(u32),
}

pub(super) fn register(onnx: &mut Onnx) {
    onnx.op_register.insert("Softplus", softplus);
    onnx.op_register.insert("Celu", celu);
}

fn softplus(_context: &ParsingContext, _node: &NodeProto) -> BuildResult {
    Ok((expand(Activation::Softplus), vec![]))
}

fn celu(_context: &ParsingContext, node: &NodeProto) -> BuildResult {
    let alpha: f32 = node.get_attr_opt("alpha")?.unwrap_or(1.0);
    Ok((expand(Activation::Celu(alpha.to_bits())), vec![]))
}

impl Expansion for Activation {
    fn name(&self) -> StaticName {
        match self {
            Activation::Softplus => "Softplus",
            Activation::Celu(_) => "Celu",
        }
        .into()
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
        let alpha = match self {
            Activation::Celu(alpha) => Some(number("alpha", f32::from_bits(*alpha))?),
            Activation::Softplus => None,
        };
        let mut wire =
            |name: &str, operator: Box<dyn TypedOp>, of: &[OutletId]| -> TractResult<OutletId> {
                Ok(model.wire_node(format!("{prefix}.{name}"), operator, of)?[0])
            };
        let bend = match alpha {
            None => {
                let size = wire("size", Box::new(math::abs()), &[inputs[0]])?;
                let below = wire("below", Box::new(math::neg()), &[size])?;
                let power = wire("power", Box::new(math::exp()), &[below])?;
                let more = wire("more", Box::new(math::add()), &[power, one])?;
                wire("bend", Box::new(math::ln()), &[more])?
            }
            Some(alpha) => {
                // Below zero only: above it the exponential would overflow.
                let below = wire("below", Box::new(math::min()), &[inputs[0], zero])?;
                let part = wire("part", Box::new(math::div()), &[below, alpha])?;
                let power = wire("power", Box::new(math::exp()), &[part])?;
                let less = wire("less", Box::new(math::sub()), &[power, one])?;
                wire("scaled", Box::new(math::mul()), &[less, alpha])?
            }
        };
        let above = wire("above", Box::new(math::max()), &[inputs[0], zero])?;
        model.wire_node(prefix, math::add(), &[above, bend])
    }
}
