//! The model as the stages behind opening take it: prepared, and every value with its type.

use std::collections::{BTreeMap, HashSet};

use super::Error;
use crate::graph::{Model, TensorType};
use crate::onnx::schema::{ModelProto, ValueInfoProto};
use crate::prepare::{Prepared, prepare};
use crate::{engine, engine::EngineError, quantize};

/// The prepared model with a type for every value, and the types of those values whose type the file
/// declares: only these go out again.
pub(super) struct Ready {
    pub(super) model: Model,
    pub(super) declared: Vec<ValueInfoProto>,
    pub(super) done: Vec<String>,
    /// The most that was allocated while it was prepared.
    pub(super) peak: u64,
}

impl Ready {
    pub(super) fn new(header: &ModelProto) -> Result<Ready, Error> {
        let model = Model::from_proto(header.clone())?;
        // Before the engine sees operators that only quantized models have.
        quantize::refuse_quantized(&model)?;
        let Prepared { mut model, done } = prepare(model)?;
        // tract knows the types of more operators than our own rules, but takes half as long as for a plan.
        let types = match model.graph.is_typed() {
            true => BTreeMap::new(),
            false => engine::infer_types(&model).or_else(unknown_to_engine)?,
        };
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
        declare(&mut model, &types);
        Ok(Ready {
            model,
            declared,
            done,
            peak: 0,
        })
    }
}

/// Without the engine's types where there are operators it doesn't know: what needs no samples needs no run, and goes by our own rules and what
/// the file declares. What does need one is refused as it begins.
fn unknown_to_engine(error: EngineError) -> Result<BTreeMap<String, TensorType>, Error> {
    match error {
        EngineError::UnknownOperators { .. } | EngineError::Plan { .. } => Ok(BTreeMap::new()),
        other => Err(other.into()),
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
