//! Element types that follow from a node's other operands. If the type of a node's output is
//! unknown, a consumer may determine it.

use std::collections::HashMap;

use crate::operators::Operator;
use crate::{Graph, Node};
use octet_onnx::schema::DataType;

/// Propagates known element types forwards and backwards.
pub(super) fn complete<'a>(graph: &'a Graph, known: &mut HashMap<&'a str, DataType>) {
    let mut spread = |node: &'a Node| {
        let names = alike(node);
        if let Some(element) = names.iter().find_map(|name| known.get(name).copied()) {
            for name in names {
                known.entry(name).or_insert(element);
            }
        }
    };
    graph.nodes().iter().for_each(&mut spread);
    graph.nodes().iter().rev().for_each(&mut spread);
    graph.nodes().iter().for_each(&mut spread);
}

/// Inputs and outputs of a node that share one element type.
fn alike(node: &Node) -> Vec<&str> {
    let inputs = Operator::of(node).same_type_inputs;
    let outputs = if inputs > 0 { node.output.len() } else { 0 };
    let names = node.input.iter().take(inputs);
    let names = names.chain(node.output.iter().take(outputs));
    names
        .map(String::as_str)
        .filter(|name| !name.is_empty())
        .collect()
}
