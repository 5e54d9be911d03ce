//! Row lookups in a large weight, such as the embeddings of a language model. Only the requested
//! rows are read, in place.

use tract_onnx::tract_core::ops::array::Gather;
use tract_onnx::tract_core::{as_op, not_out_of_plan, op_as_typed_op};
use tract_onnx::tract_hir::internal::*;

use super::{FLOAT, FileBytes, SharedWeight, in_file};
use crate::indices;

/// Replaces row lookups in a weight.
pub(super) fn read_in_place(model: &mut TypedModel) -> TractResult<()> {
    for id in 0..model.nodes.len() {
        let node = model.node(id);
        let Some(table) = table(model, node)? else {
            continue;
        };
        let mut patch = TypedModelPatch::default();
        let tap = patch.tap_model(model, node.inputs[1])?;
        let wire = patch.wire_node(&node.name, table, &[tap])?[0];
        patch.shunt_outside(model, id.into(), wire)?;
        patch.apply(model)?;
    }
    model.compact()
}

fn table(model: &TypedModel, node: &TypedNode) -> TractResult<Option<RowLookup>> {
    let Some(gather) = node.op_as::<Gather>() else {
        return Ok(None);
    };
    let (data, output) = (
        model.outlet_fact(node.inputs[0])?,
        &node.outputs[0].fact.datum_type,
    );
    let (Some(shape), Some(bytes)) = (data.shape.as_concrete(), in_file(model, node.inputs[0])?)
    else {
        return Ok(None);
    };
    let plain = gather.axis == 0 && *output == f32::datum_type();
    Ok(plain.then(|| RowLookup {
        bytes: FileBytes(bytes),
        shape: shape.into(),
    }))
}

/// A weight whose rows are looked up by index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RowLookup {
    bytes: FileBytes,
    shape: TVec<usize>,
}

impl RowLookup {
    fn output_shape<D: DimLike>(&self, places: &[D]) -> TVec<D> {
        let row = self.shape[1..].iter().map(|&size| size.into());
        places.iter().cloned().chain(row).collect()
    }
}

impl Op for RowLookup {
    fn name(&self) -> StaticName {
        "RowsOfWeight".into()
    }

    op_as_typed_op!();
}

impl EvalOp for RowLookup {
    not_out_of_plan!();

    fn eval(&self, _context: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let places = &inputs[0];
        indices::inside(places, self.shape[0], true)?;
        let row = self.shape[1..].iter().product::<usize>() * FLOAT;
        let mut bytes = Vec::with_capacity(places.len() * row);
        for &place in places.try_as_plain_ram()?.as_slice::<i64>()? {
            let place = place.rem_euclid(self.shape[0] as i64) as usize;
            bytes.extend_from_slice(&self.bytes.0[place * row..][..row]);
        }
        let made = SharedWeight::new(bytes.into(), &self.output_shape(places.shape()));
        made.context("rows that don't fit their shape")?.value()
    }
}

impl TypedOp for RowLookup {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        Ok(tvec!(f32::fact(self.output_shape(&inputs[0].shape))))
    }

    as_op!();
}
