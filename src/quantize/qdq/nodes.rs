//! Small pieces of the rewriting that need no state.

use std::collections::{BTreeSet, HashMap};

use crate::graph::{Graph, Uses};
use crate::onnx::schema::{AttributeProto, NodeProto};
use crate::quantize::plan::Folded;

/// Where a chain of folded nodes ends: the name the first of them makes now.
pub(super) fn last_name<'a>(
    renamed: &'a HashMap<String, Folded>,
    name: &str,
) -> Option<&'a String> {
    let mut found = &renamed.get(name)?.output;
    for _ in 0..renamed.len() {
        match renamed.get(found) {
            Some(next) => found = &next.output,
            None => break,
        }
    }
    Some(found)
}

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
