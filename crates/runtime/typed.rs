//! Translates tract's inference model to its typed model.
//!
//! tract's own translation infers all types twice more, which takes a quarter of the time to build
//! a plan.

use std::collections::HashMap;

use tract_onnx::prelude::*;
use tract_onnx::tract_core::model::translator::Translate;
use tract_onnx::tract_hir::infer::{InferenceFact, InferenceOp};
use tract_onnx::tract_hir::internal::*;

use super::inference;

/// Infers all types of a model whose inputs have types, and translates it.
pub(super) fn typed(mut model: InferenceModel) -> TractResult<TypedModel> {
    inference::infer_all(&mut model)?;
    Typing.translate_model(&model)
}

#[derive(Debug)]
struct Typing;

impl Translate<InferenceFact, Box<dyn InferenceOp>, TypedFact, Box<dyn TypedOp>> for Typing {
    fn translate_node(
        &self,
        source: &InferenceModel,
        node: &InferenceNode,
        target: &mut TypedModel,
        mapping: &HashMap<OutletId, OutletId>,
    ) -> TractResult<TVec<OutletId>> {
        let values = node.outputs.iter().map(|o| o.fact.value.concretize());
        let values: Option<TVec<Arc<Tensor>>> = values.collect();
        // A known value becomes a constant, unless it is an input or the operator has state.
        let computed = !InferenceModel::is_source(&node.op)
            && node.op.state(&EvalContext::out_of_plan())?.is_none();
        let Some(values) = values.filter(|_| computed) else {
            let made = node.op.to_typed(source, node, target, mapping)?;
            inference::ensure_numeric(source, node, target, &made)?;
            return Ok(made);
        };
        let constants = values.into_iter().enumerate().map(|(slot, value)| {
            let name = format!("{}.{slot}", node.name);
            target.add_const(name, value)
        });
        constants.collect()
    }
}
