//! Inputs and outputs of a layer, and the reason for a conversion.

use super::model_values::{LayerPort, ModelValues};
use crate::graph::Node;

/// Values that a group of nodes reads from other nodes, and values that it computes for others.
pub(super) fn layer_ports(
    members: &[&Node],
    values: &impl ModelValues,
) -> (Vec<LayerPort>, Vec<LayerPort>) {
    let outputs_of_members: Vec<&String> = members.iter().flat_map(|n| &n.output).collect();
    let mut inputs: Vec<LayerPort> = Vec::new();
    for name in members.iter().flat_map(|n| &n.input) {
        let known = outputs_of_members.contains(&name) || inputs.iter().any(|p| p.name == *name);
        if !known && let Some(port) = values.port(name) {
            inputs.push(port);
        }
    }
    let titles: Vec<&str> = members.iter().map(|n| n.title()).collect();
    let leaves = |name: &&&String| {
        let readers = values.readers(name);
        readers.is_empty() || readers.iter().any(|n| !titles.contains(&n.title()))
    };
    let outputs = outputs_of_members.iter().filter(leaves);
    let outputs = outputs.filter_map(|name| values.port(name)).collect();
    (inputs, outputs)
}

/// Reason for a node that only converts between number formats.
pub(super) fn conversion(node: &Node, values: &impl ModelValues) -> Option<String> {
    let named = |nodes: Vec<&Node>| {
        let mut texts: Vec<String> = nodes
            .iter()
            .map(|n| format!("{} ({})", n.title(), n.operator()))
            .collect();
        let more = texts.len().saturating_sub(3);
        texts.truncate(3);
        if more > 0 {
            texts.push(format!("{more} more"));
        }
        texts.join(", ")
    };
    let readers = || {
        node.output
            .first()
            .map(|o| named(values.readers(o)))
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| "the model's output".into())
    };
    match node.op_type.as_str() {
        "DequantizeLinear" => Some(format!("{} runs in float", readers())),
        "QuantizeLinear" | "DynamicQuantizeLinear" => {
            let maker = node
                .input_at(0)
                .and_then(|value| values.maker(value))
                .map_or("the model's input".into(), |n| named(vec![n]));
            Some(format!("{maker} outputs floats"))
        }
        "Cast" => Some(format!("{} needs another type", readers())),
        _ => None,
    }
}
