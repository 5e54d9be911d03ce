//! Stateless helpers of the QDQ writer.

use std::collections::BTreeSet;

use octet_graph::{Graph, Uses};
use octet_onnx::schema::{AttributeProto, NodeProto};

pub(super) fn uses_without(graph: &Graph, removed: &BTreeSet<usize>) -> Uses {
    let mut kept = graph.clone();
    for &index in removed {
        kept.nodes[index].input.clear();
        kept.nodes[index].output.clear();
    }
    kept.uses()
}

pub(super) fn linear(
    operator: &str,
    title: &str,
    inputs: [&String; 3],
    output: &str,
    axis: Option<usize>,
) -> NodeProto {
    let node = NodeProto::new(operator, title, &inputs.map(String::as_str), &[output]);
    match axis {
        Some(axis) => node.with(AttributeProto::int("axis", axis as i64)),
        None => node,
    }
}
