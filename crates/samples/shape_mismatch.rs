//! Shapes that a model rejects. Inferred shapes are checked against each other wherever values
//! combine. Our own shape rules suffice; nothing is planned or run.

use std::fmt;

use octet_graph::operators::Operator;
use octet_graph::prepare::{Types, infer_from};
use octet_graph::{Graph, Node};

/// A node whose input shapes don't fit each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeMismatch {
    /// Operator.
    pub operator: String,
    /// Name that is shown to people.
    pub node: String,
    /// Shapes of its inputs.
    pub shapes: Vec<Vec<usize>>,
}

impl fmt::Display for ShapeMismatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shapes: Vec<String> = self.shapes.iter().map(|s| format!("{s:?}")).collect();
        write!(
            out,
            "{} (node `{}`) would get the shapes {}, which don't match",
            self.operator,
            self.node,
            shapes.join(" and ")
        )
    }
}

impl ShapeMismatch {
    /// The first node that rejects what follows from inputs of these shapes.
    pub fn find(graph: &Graph, inputs: &[&[usize]]) -> Option<ShapeMismatch> {
        let types = infer_from(graph, inputs);
        graph.nodes().iter().find_map(|node| refusal(node, &types))
    }
}

fn refusal(node: &Node, types: &Types) -> Option<ShapeMismatch> {
    if Operator::of(node).shapes_fit(node, types) {
        return None;
    }
    let names = node.input.iter().filter(|name| !name.is_empty());
    let shapes: Option<_> = names.map(|name| types.get(name)?.sizes()).collect();
    Some(ShapeMismatch {
        operator: node.operator(),
        node: node.title().to_string(),
        shapes: shapes?,
    })
}
