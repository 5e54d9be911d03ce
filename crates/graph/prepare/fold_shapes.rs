//! Constant folding of shape arithmetic: nodes with known results become initializers.

use std::collections::HashSet;

use crate::inferred_value::{InferredValue, Types};
use crate::{Graph, shapes};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::{DataType, TensorProto};

/// Replaces every node whose results are known. Returns the number of nodes.
pub(super) fn fold(graph: &mut Graph) -> usize {
    let folded = known_results(graph, &shapes::infer(graph), |_| false);
    let count = folded.len();
    replace_by_constants(graph, folded);
    count
}

/// Replaces nodes by the constants they compute.
pub fn replace_by_constants(graph: &mut Graph, folded: Vec<(usize, Vec<TensorProto>)>) {
    let gone = folded.iter().map(|(node, _)| *node).collect();
    graph.remove_nodes(&gone);
    for tensor in folded.into_iter().flat_map(|(_, results)| results) {
        graph.initializers.insert(tensor);
    }
}

/// Nodes whose results follow from these types, with the results. Producers of graph outputs, and
/// of values for which `stays` holds, are left out.
pub fn known_results(
    graph: &Graph,
    types: &Types,
    stays: impl Fn(&str) -> bool,
) -> Vec<(usize, Vec<TensorProto>)> {
    let outputs = graph.outputs().iter().filter_map(|v| v.name.as_deref());
    let outputs: HashSet<&str> = outputs.collect();
    let mut folded = Vec::new();
    for (place, node) in graph.nodes().iter().enumerate() {
        // Operators of other domains have no inferred results, so they never fold.
        let results: Option<Vec<TensorProto>> = node
            .output
            .iter()
            .filter(|name| !name.is_empty())
            .map(|name| {
                let named = || !outputs.contains(name.as_str()) && !stays(name);
                let known = types.get(name).filter(|_| named())?;
                Some(TensorProto::from_tensor(name, &tensor(known)?))
            })
            .collect();
        if let Some(results) = results.filter(|r| !r.is_empty()) {
            folded.push((place, results));
        }
    }
    folded
}

fn tensor(known: &InferredValue) -> Option<Tensor> {
    let shape = known.sizes()?;
    if let (Some(floats), DataType::Float) = (&known.floats, known.element) {
        return Tensor::new(shape, Values::F32(floats.clone()));
    }
    let integers = known.all_integers()?;
    let values = match known.element {
        DataType::Int64 => Values::I64(integers),
        DataType::Int32 => Values::I32(integers.into_iter().map(|v| v as i32).collect()),
        DataType::Int16 => Values::I16(integers.into_iter().map(|v| v as i16).collect()),
        DataType::Int8 => Values::I8(integers.into_iter().map(|v| v as i8).collect()),
        DataType::Uint8 => Values::U8(integers.into_iter().map(|v| v as u8).collect()),
        DataType::Bool => Values::Bool(integers.into_iter().map(|v| v != 0).collect()),
        _ => return None,
    };
    Tensor::new(shape, values)
}
