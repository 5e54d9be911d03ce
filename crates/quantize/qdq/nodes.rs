//! Stateless helpers of the QDQ writer.

use std::collections::BTreeSet;

use octet_graph::{Attribute, Graph, Node};

/// A copy of the graph in which these nodes read and make nothing.
pub(super) fn without(graph: &Graph, removed: &BTreeSet<usize>) -> Graph {
    let mut kept = graph.clone();
    for &index in removed {
        kept.edit(index, |node| {
            node.input.clear();
            node.output.clear();
        });
    }
    kept
}

pub(super) fn linear(
    operator: &str,
    title: &str,
    inputs: [&String; 3],
    output: &str,
    axis: Option<usize>,
) -> Node {
    let node = Node::new(operator, title, &inputs.map(String::as_str), &[output]);
    match axis {
        Some(axis) => node.with(Attribute::int("axis", axis as i64)),
        None => node,
    }
}
