//! Additions of a large weight, such as the position embedding of a transformer. Each float is used
//! once, so it is read in place.

use tract_onnx::tract_core::ops::binary::TypedBinOp;
use tract_onnx::tract_core::ops::math::Add;
use tract_onnx::tract_core::{as_op, not_out_of_plan, op_as_typed_op};
use tract_onnx::tract_hir::internal::*;

use super::{FileBytes, in_file};

/// Replaces additions of a weight to a whole value, or repeatedly to its contiguous parts.
pub(super) fn read_in_place(model: &mut TypedModel) -> TractResult<()> {
    for id in 0..model.nodes.len() {
        let node = model.node(id);
        let Some((addend, value)) = addend(model, node)? else {
            continue;
        };
        let mut patch = TypedModelPatch::default();
        let tap = patch.tap_model(model, value)?;
        let wire = patch.wire_node(&node.name, addend, &[tap])?[0];
        patch.shunt_outside(model, id.into(), wire)?;
        patch.apply(model)?;
    }
    model.compact()
}

/// The addition that a node computes, and the source of its other operand.
fn addend(model: &TypedModel, node: &TypedNode) -> TractResult<Option<(Addend, OutletId)>> {
    let adds = node
        .op_as::<TypedBinOp>()
        .is_some_and(|sum| sum.0.is::<Add>() && sum.1.is_none());
    if !adds {
        return Ok(None);
    }
    for (slot, other) in [(0, 1), (1, 0)] {
        let Some(bytes) = in_file(model, node.inputs[slot])? else {
            continue;
        };
        let value = model.outlet_fact(node.inputs[other])?;
        let weight = &model.outlet_fact(node.inputs[slot])?.shape;
        let ones = weight.iter().take_while(|size| size.is_one()).count();
        let floats = value.datum_type == f32::datum_type();
        let whole = value.shape == node.outputs[0].fact.shape;
        if floats && whole && weight[ones..] == value.shape[ones..] {
            let bytes = FileBytes(bytes);
            return Ok(Some((Addend { bytes }, node.inputs[other])));
        }
    }
    Ok(None)
}

/// Adds a weight to each part of a value that has its length; in place if the value has no other
/// reader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Addend {
    bytes: FileBytes,
}

impl Op for Addend {
    fn name(&self) -> StaticName {
        "AddWeight".into()
    }

    op_as_typed_op!();
}

impl EvalOp for Addend {
    not_out_of_plan!();

    fn eval(&self, _context: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let mut sum = args_1!(inputs).into_tensor();
        let (weight, _) = self.bytes.0.as_chunks();
        {
            let mut plain = sum.try_as_plain_ram_mut()?;
            for part in plain.as_slice_mut::<f32>()?.chunks_mut(weight.len()) {
                for (sum, &weight) in part.iter_mut().zip(weight) {
                    *sum += f32::from_le_bytes(weight);
                }
            }
        }
        Ok(tvec!(sum.into_tvalue()))
    }
}

impl TypedOp for Addend {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        Ok(tvec!(inputs[0].without_value()))
    }

    as_op!();
}
