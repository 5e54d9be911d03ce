//! From tract's first form of a model, in which types are found, to its second, in which each operator knows its own.
//!
//! tract's own way there finds all types twice more, which is a quarter of the time that a plan takes.

use std::collections::HashMap;

use tract_onnx::prelude::*;
use tract_onnx::tract_core::model::translator::Translate;
use tract_onnx::tract_hir::infer::{InferenceFact, InferenceOp};
use tract_onnx::tract_hir::internal::*;

use super::analysis;

/// A model whose inputs have types, with types everywhere.
pub(super) fn typed(mut model: InferenceModel) -> TractResult<TypedModel> {
    analysis::whole(&mut model)?;
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
        // What is known already is a constant, unless it is fed or has a state.
        let computed = !InferenceModel::is_source(&node.op)
            && node.op.state(&EvalContext::out_of_plan())?.is_none();
        let Some(values) = values.filter(|_| computed) else {
            let made = node.op.to_typed(source, node, target, mapping)?;
            analysis::ensure_numbers(source, node, target, &made)?;
            return Ok(made);
        };
        let constants = values.into_iter().enumerate().map(|(slot, value)| {
            let name = format!("{}.{slot}", node.name);
            target.add_const(name, value)
        });
        constants.collect()
    }
}
