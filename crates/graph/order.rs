//! Validation of a graph: each value is produced once, before its uses.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::{Graph, GraphError, Initializers};
use crate::Node;
use octet_onnx::schema::{GraphProto, SparseTensorProto, TensorProto};

/// Constants by name. Duplicate names are an error.
pub(super) fn constants(tensors: Vec<TensorProto>) -> Result<Initializers, GraphError> {
    let mut names = HashSet::new();
    for tensor in &tensors {
        let name = tensor.name.as_deref().unwrap_or_default();
        if name.is_empty() {
            return Err(GraphError::NamelessConstant);
        }
        if !names.insert(name) {
            return Err(GraphError::DuplicateConstant {
                value: name.to_owned(),
            });
        }
    }
    let mut initializers = Initializers::default();
    tensors
        .into_iter()
        .for_each(|tensor| initializers.insert(tensor));
    Ok(initializers)
}

/// Fails at a node without an operator, also in subgraphs.
pub(super) fn check_operators(graph: &GraphProto) -> Result<(), GraphError> {
    for node in &graph.node {
        if node.op_type.as_deref().unwrap_or_default().is_empty() {
            return Err(GraphError::NoOperator {
                node: node.title().to_owned(),
            });
        }
        node.subgraphs().try_for_each(check_operators)?;
    }
    Ok(())
}

/// Checks a graph with these nodes and sorts them topologically. A valid order is kept.
pub(super) fn sorted(nodes: Vec<Node>, graph: &Graph) -> Result<Vec<Node>, GraphError> {
    let inputs = graph.inputs.iter();
    let mut available: HashSet<&str> = inputs.filter_map(|v| v.name.as_deref()).collect();
    let constants = graph.initializers.iter();
    available.extend(constants.filter_map(|t| t.name.as_deref()));
    let sparse = graph.sparse().iter();
    available.extend(sparse.filter_map(sparse_name));

    let mut producers: HashMap<&str, usize> = HashMap::new();
    for (i, node) in nodes.iter().enumerate() {
        for output in node.output.iter().filter(|o| !o.is_empty()) {
            if available.contains(output.as_str()) || producers.insert(output, i).is_some() {
                let (value, node) = (output.clone(), node.title().to_owned());
                return Err(GraphError::ProducedTwice { value, node });
            }
        }
    }
    for output in graph.outputs() {
        let output = output.name.as_deref().unwrap_or("(without a name)");
        if !producers.contains_key(output) && !available.contains(output) {
            return Err(GraphError::NoOutput {
                value: output.to_owned(),
            });
        }
    }

    // Kahn's algorithm; of the nodes that are ready, the first in the file comes next.
    let mut waits = vec![0usize; nodes.len()];
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (i, node) in nodes.iter().enumerate() {
        let captured = node.captured();
        for value in node.input.iter().chain(&captured).filter(|v| !v.is_empty()) {
            if let Some(&producer) = producers.get(value.as_str()) {
                waits[i] += 1;
                users[producer].push(i);
            } else if !available.contains(value.as_str()) {
                let node = format!("{} ({})", node.title(), node.operator());
                return Err(GraphError::Dangling {
                    value: value.clone(),
                    node,
                });
            }
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> = (0..nodes.len())
        .filter(|&i| waits[i] == 0)
        .map(Reverse)
        .collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(i)) = ready.pop() {
        order.push(i);
        for &user in &users[i] {
            waits[user] -= 1;
            if waits[user] == 0 {
                ready.push(Reverse(user));
            }
        }
    }
    if let Some(i) = (0..nodes.len()).find(|&i| waits[i] > 0) {
        return Err(GraphError::Cycle {
            node: nodes[i].title().to_owned(),
        });
    }
    let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|i| nodes[i].take()).collect())
}

fn sparse_name(tensor: &SparseTensorProto) -> Option<&str> {
    tensor.values.as_ref()?.name.as_deref()
}

/// Removes trailing empty input and output names, which mean the same as absent ones. Includes
/// subgraphs.
pub(super) fn cut_absent_ends(node: &mut Node) {
    // The number of outputs of a Split determines its parts. The others must match their
    // subgraphs.
    let counted = ["Split", "If", "Loop", "Scan"];
    if !counted.iter().any(|operator| node.is(operator)) {
        for names in [&mut node.input, &mut node.output] {
            let named = names.iter().rposition(|name| !name.is_empty());
            names.truncate(named.map_or(0, |last| last + 1));
        }
    }
    for inner in node.subgraphs_mut().flat_map(|graph| &mut graph.nodes) {
        cut_absent_ends(inner);
    }
}
