//! The prepared model, with the type of every value.

use std::collections::{BTreeMap, HashSet};

use super::Error;
use crate::graph::{Model, TensorType};
use crate::onnx::schema::{ModelProto, ValueInfoProto};
use crate::prepare::{Functions, Prepared, Upcast, prepare};
use crate::{quantize, runtime, runtime::EngineError};

/// Prepared model with a type for each value. `declared` keeps the types that the file declares:
/// only these are written out again.
pub(super) struct PreparedModel {
    pub(super) model: Model,
    pub(super) declared: Vec<ValueInfoProto>,
    pub(super) done: Vec<String>,
    /// Result of inlining the model's functions.
    pub(super) functions: Functions,
    /// Half-precision tensors of the file.
    pub(super) upcast: Upcast,
    /// True if the engine cannot run the model and therefore infers no types.
    pub(super) unknown: bool,
    /// Peak of live memory during preparation.
    pub(super) peak: u64,
}

impl PreparedModel {
    pub(super) fn new(header: &ModelProto) -> Result<PreparedModel, Error> {
        let model = Model::from_proto(header.clone())?;
        // This comes before the engine sees operators that only quantized models have.
        quantize::refuse_quantized(&model)?;
        let Prepared {
            mut model,
            done,
            functions,
            upcast,
        } = prepare(model)?;
        // Repeated for nodes that were inside functions.
        quantize::refuse_quantized(&model)?;
        // tract infers types of more operators than our own rules. It takes half the time of a
        // plan, so it runs only if types are missing.
        let types = match model.graph.is_typed() {
            true => {
                runtime::validate_unrun(&model)?;
                Some(BTreeMap::new())
            }
            false => typed_by_engine(&model)?,
        };
        let unknown = types.is_none();
        let file = header.graph.iter().flat_map(|graph| &graph.value_info);
        let named: HashSet<_> = file.map(|value| value.name.as_deref()).collect();
        let in_file = |value: &&ValueInfoProto| named.contains(&value.name.as_deref());
        let declared = model
            .graph
            .value_info
            .iter()
            .filter(in_file)
            .cloned()
            .collect();
        declare(&mut model, &types.unwrap_or_default());
        Ok(PreparedModel {
            model,
            declared,
            done,
            functions,
            upcast,
            unknown,
            peak: 0,
        })
    }

    /// Fails if the engine cannot run the model. The reason is a function that could not be
    /// inlined, or the engine's own.
    pub(super) fn runs(&self) -> Result<(), Error> {
        if self.unknown {
            if let Some(reason) = self.functions.remaining_call() {
                return Err(Error::Prepare(reason.clone()));
            }
            runtime::infer_types(&self.model)?;
        }
        Ok(())
    }
}

/// Types inferred by the engine; `None` if it doesn't know all operators. Schemes that need no
/// samples never run the model; our own rules and the declared types suffice for them.
fn typed_by_engine(model: &Model) -> Result<Option<BTreeMap<String, TensorType>>, Error> {
    match runtime::infer_types(model) {
        Ok(types) => Ok(Some(types)),
        Err(EngineError::UnknownOperators { .. } | EngineError::Plan { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// Adds inferred types to the graph, in place of declared types of the same values.
fn declare(model: &mut Model, types: &BTreeMap<String, TensorType>) {
    let graph = &mut model.graph;
    let ports: HashSet<String> = graph
        .inputs
        .iter()
        .chain(&graph.outputs)
        .filter_map(|v| v.name.clone())
        .collect();
    graph
        .value_info
        .retain(|v| v.name.as_ref().is_some_and(|n| !types.contains_key(n)));
    for (name, inferred) in types {
        if !ports.contains(name) && !graph.initializers.contains(name) {
            graph.value_info.push(ValueInfoProto::new(name, inferred));
        }
    }
}
