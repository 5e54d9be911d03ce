//! If, Loop and Scan for type inference: their outputs have the types that the bodies declare. For
//! a run, the model is split at these nodes, and tract doesn't see them.

use tract_onnx::Onnx;
use tract_onnx::model::ParsingContext;
use tract_onnx::pb::type_proto::Value;
use tract_onnx::pb::{GraphProto, NodeProto, ValueInfoProto};
use tract_onnx::tract_hir::infer::{InferenceRulesOp, Solver, TensorProxy};
use tract_onnx::tract_hir::internal::*;

use crate::operator_inputs::BuildResult;
use octet_graph::operators::{Operator, Property};

/// The declared type of each output that has a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct DeclaredTypes {
    operator: String,
    types: Vec<Option<DatumType>>,
}

/// Registers the operators that hold graphs. For type inference, operators with data-dependent
/// sizes infer only the type.
pub(super) fn register(onnx: &mut Onnx, only_types: bool) {
    if only_types {
        onnx.op_register.insert("NonMaxSuppression", data_dependent);
    }
    for operator in Operator::all().filter(|one| one.has(Property::HoldsGraphs)) {
        onnx.op_register.insert(operator.name, build);
    }
}

fn build(_context: &ParsingContext, node: &NodeProto) -> BuildResult {
    let (body, skipped) = match node.op_type.as_str() {
        "If" => ("then_branch", 0),
        "Loop" => ("body", 1),
        _ => ("body", 0),
    };
    let body: Option<&GraphProto> = node.get_attr_opt(body)?;
    let declared = |place: usize| element(body?.output.get(place + skipped)?);
    let named = node
        .output
        .iter()
        .enumerate()
        .filter(|(_, name)| !name.is_empty());
    let control = DeclaredTypes {
        operator: node.op_type.clone(),
        types: named.map(|(place, _)| declared(place)).collect(),
    };
    Ok((Box::new(control), vec![]))
}

/// An operator whose output size depends on the data.
fn data_dependent(_context: &ParsingContext, node: &NodeProto) -> BuildResult {
    let control = DeclaredTypes {
        operator: node.op_type.clone(),
        types: vec![Some(i64::datum_type())],
    };
    Ok((Box::new(control), vec![]))
}

fn element(value: &ValueInfoProto) -> Option<DatumType> {
    let Value::TensorType(tensor) = value.r#type.as_ref()?.value.as_ref()?;
    let element = tract_onnx::pb::tensor_proto::DataType::try_from(tensor.elem_type).ok()?;
    DatumType::try_from(element).ok()
}

impl Op for DeclaredTypes {
    fn name(&self) -> StaticName {
        self.operator.clone().into()
    }

    not_a_typed_op!();
}

impl EvalOp for DeclaredTypes {
    not_out_of_plan!();
}

impl InferenceRulesOp for DeclaredTypes {
    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        _inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        for (output, found) in outputs.iter().zip(&self.types) {
            if let Some(found) = found {
                solver.equals(&output.datum_type, found)?;
            }
        }
        Ok(())
    }

    fn nboutputs(&self) -> TractResult<usize> {
        Ok(self.types.len())
    }

    fn to_typed(
        &self,
        _source: &InferenceModel,
        node: &InferenceNode,
        _target: &mut TypedModel,
        _mapping: &HashMap<OutletId, OutletId>,
    ) -> TractResult<TVec<OutletId>> {
        bail!(
            "{} is a control flow node and can't be part of a plan",
            node.name
        )
    }

    as_op!();
}
