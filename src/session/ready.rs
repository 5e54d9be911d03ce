//! The model as the stages behind opening take it: prepared, and every value with its type.

use std::collections::{BTreeMap, HashSet};

use super::Error;
use crate::graph::{Model, TensorType};
use crate::onnx::schema::{ModelProto, ValueInfoProto};
use crate::prepare::{Functions, Half, Prepared, prepare};
use crate::{engine, engine::EngineError, quantize};

/// The prepared model with a type for every value, and the types of those values whose type the file
/// declares: only these go out again.
pub(super) struct Ready {
    pub(super) model: Model,
    pub(super) declared: Vec<ValueInfoProto>,
    pub(super) done: Vec<String>,
    /// What became of the model's functions.
    pub(super) functions: Functions,
    /// What of the file has 16 bits.
    pub(super) half: Half,
    /// Whether the engine knows no types of it, since it can't run it.
    pub(super) unknown: bool,
    /// The most that was allocated while it was prepared.
    pub(super) peak: u64,
}

impl Ready {
    pub(super) fn new(header: &ModelProto) -> Result<Ready, Error> {
        let model = Model::from_proto(header.clone())?;
        // Before the engine sees operators that only quantized models have.
        quantize::refuse_quantized(&model)?;
        let Prepared {
            mut model,
            done,
            functions,
            half,
        } = prepare(model)?;
        // What functions held, too.
        quantize::refuse_quantized(&model)?;
        // tract knows the types of more operators than our own rules, but takes half as long as for a plan.
        let types = match model.graph.is_typed() {
            true => {
                engine::validate_unrun(&model)?;
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
        Ok(Ready {
            model,
            declared,
            done,
            functions,
            half,
            unknown,
            peak: 0,
        })
    }

    /// Fails where the engine can't run it: for the reason of a function's call that is still there, or for its own.
    pub(super) fn runs(&self) -> Result<(), Error> {
        if self.unknown {
            if let Some(reason) = self.functions.left() {
                return Err(Error::Prepare(reason.clone()));
            }
            engine::infer_types(&self.model)?;
        }
        Ok(())
    }
}

/// The engine's types; `None` where there are operators it doesn't know: what needs no samples needs no run, and goes by our own rules and what
/// the file declares.
fn typed_by_engine(model: &Model) -> Result<Option<BTreeMap<String, TensorType>>, Error> {
    match engine::infer_types(model) {
        Ok(types) => Ok(Some(types)),
        Err(EngineError::UnknownOperators { .. } | EngineError::Plan { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// Writes inferred types into the graph, over what it declares for the same values.
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
    for (name, found) in types {
        if !ports.contains(name) && !graph.initializers.contains(name) {
            graph.value_info.push(ValueInfoProto::of(name, found));
        }
    }
}
