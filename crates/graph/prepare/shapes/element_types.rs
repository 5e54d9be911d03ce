//! Element types that follow from a node's other operands. If the type of a node's output is
//! unknown, a consumer may determine it.

use std::collections::HashMap;

use crate::Graph;
use octet_onnx::schema::{DataType, NodeProto};

/// Propagates known element types forwards and backwards.
pub(super) fn complete<'a>(graph: &'a Graph, known: &mut HashMap<&'a str, DataType>) {
    let mut spread = |node: &'a NodeProto| {
        let names = alike(node);
        if let Some(element) = names.iter().find_map(|name| known.get(name).copied()) {
            for name in names {
                known.entry(name).or_insert(element);
            }
        }
    };
    graph.nodes.iter().for_each(&mut spread);
    graph.nodes.iter().rev().for_each(&mut spread);
    graph.nodes.iter().for_each(&mut spread);
}

/// Inputs and outputs of a node that share one element type.
fn alike(node: &NodeProto) -> Vec<&str> {
    let own = matches!(node.domain.as_deref(), None | Some("" | "ai.onnx"));
    let operator = node.op_type.as_deref().filter(|_| own);
    let inputs = match operator.unwrap_or_default() {
        "Conv"
        | "ConvTranspose"
        | "Gemm"
        | "MatMul"
        | "Add"
        | "Sub"
        | "Mul"
        | "Div"
        | "Concat"
        | "PRelu"
        | "InstanceNormalization" => node.input.len(),
        // The next input holds the lengths of sequences.
        "LSTM" | "GRU" | "RNN" => 4,
        "Relu" | "LeakyRelu" | "Sigmoid" | "Tanh" | "Softmax" | "Erf" | "Gelu" | "HardSwish"
        | "Identity" | "Reshape" | "Transpose" | "Squeeze" | "Unsqueeze" | "Flatten" | "Slice"
        | "Split" | "Gather" | "Pad" | "AveragePool" | "GlobalAveragePool" => 1,
        _ => 0,
    };
    let outputs = if inputs > 0 { node.output.len() } else { 0 };
    let names = node.input.iter().take(inputs);
    let names = names.chain(node.output.iter().take(outputs));
    names
        .map(String::as_str)
        .filter(|name| !name.is_empty())
        .collect()
}
