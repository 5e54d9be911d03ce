//! Half precision around weights in blocks: activations, scales and all other constants. The integers
//! stay those of the source.

use std::collections::{HashMap, HashSet};

use super::{Float16Settings, convert, float_reasons};
use crate::QuantizeError;
use crate::planned_model::{PlannedModel, RefusedConstants};
use crate::recipe::RecipeKind;
use crate::rewrite::Rewriter;
use crate::stays_float::StaysFloat;
use octet_graph::{Graph, TensorType};
use octet_onnx::schema::{DataType, ValueInfoProto};

/// Converts a planned model with weights in blocks.
pub(crate) fn plan_around_blocks(
    (blocks, mut recipes): PlannedModel,
    settings: &Float16Settings,
    refused: &RefusedConstants,
) -> Result<PlannedModel, QuantizeError> {
    let mut typed = blocks.model.clone();
    declare_products(&mut typed.graph);
    let graph = Rewriter::over(&typed, refused);
    let mut reasons = float_reasons(&graph, settings);
    let mut recipe_of: HashMap<&str, usize> = HashMap::new();
    for (index, planned) in recipes.iter().enumerate() {
        let floats = planned.outputs.iter().filter(|name| graph.is_float(name));
        recipe_of.extend(floats.map(|name| (name.as_str(), index)));
    }
    keep_together(&graph, &recipe_of, &mut reasons);
    let computed: HashSet<String> = recipe_of.keys().map(|&name| name.to_owned()).collect();
    let (mut halved, mut halves) = convert(graph, reasons, &settings.keep_io, computed)?;
    let constants = &halved.model.graph.initializers;
    for planned in &mut recipes {
        let mut names = planned.outputs.iter();
        let half = names.any(|name| {
            constants
                .get(name)
                .is_some_and(|constant| constant.element() == Ok(DataType::Float16))
        });
        if let (RecipeKind::Blocks(_, _, scales), true) = (&mut planned.kind, half) {
            *scales = DataType::Float16;
        }
    }
    recipes.append(&mut halves);
    halved.notes.splice(0..0, blocks.notes);
    halved.nodes = blocks.nodes;
    halved.tensors.splice(0..0, blocks.tensors);
    Ok((halved, recipes))
}

/// Declares the outputs of nodes that the blocks brought: they have the type of the activation or of
/// the scales.
fn declare_products(graph: &mut Graph) {
    let mut known: HashMap<String, DataType> = graph
        .element_types()
        .into_iter()
        .map(|(name, element)| (name.to_owned(), element))
        .collect();
    let mut declared = Vec::new();
    for node in graph.nodes() {
        let alike = match node.op_type.as_str() {
            "MatMulNBits" | "Add" => node.input_at(0),
            "GatherBlockQuantized" => node.input_at(2),
            _ => None,
        };
        let element = alike.and_then(|name| known.get(name).copied());
        for output in node.output.iter().filter(|name| !name.is_empty()) {
            if let (Some(element), false) = (element, known.contains_key(output)) {
                known.insert(output.clone(), element);
                let shape = None;
                declared.push(ValueInfoProto::new(output, &TensorType { element, shape }));
            }
        }
    }
    graph.value_info.extend(declared);
}

/// Nodes that share the scales of a recipe have one precision.
fn keep_together(
    graph: &Rewriter,
    recipe_of: &HashMap<&str, usize>,
    reasons: &mut [Option<StaysFloat>],
) {
    let mut of_recipe: HashMap<usize, StaysFloat> = HashMap::new();
    let nodes = graph.model.graph.nodes();
    let recipe = |name: &String| recipe_of.get(name.as_str()).copied();
    for (node, reason) in nodes.iter().zip(reasons.iter()) {
        for index in node.input.iter().filter_map(recipe) {
            of_recipe.extend(reason.map(|reason| (index, reason)));
        }
    }
    for (node, reason) in nodes.iter().zip(reasons) {
        let shared = node.input.iter().filter_map(recipe);
        let mut shared = shared.filter_map(|index| of_recipe.get(&index).copied());
        *reason = reason.or_else(|| shared.next());
    }
}
