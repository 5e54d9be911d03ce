//! Shapes that a model rejects. Inferred shapes are checked against each other wherever values
//! combine. Our own shape rules suffice; nothing is planned or run.

use std::fmt;

use octet_graph::operators::{Operator, ShapeProblem};
use octet_graph::prepare::{Types, infer_from};
use octet_graph::{Graph, Node};

/// A node that can't take inputs of some shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeMismatch {
    /// Operator.
    pub operator: String,
    /// Name that is shown to people.
    pub node: String,
    /// Shapes of its inputs.
    pub shapes: Vec<Vec<usize>>,
    /// The reason.
    pub problem: ShapeProblem,
}

impl fmt::Display for ShapeMismatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shapes: Vec<String> = self.shapes.iter().map(|s| format!("{s:?}")).collect();
        write!(
            out,
            "{} (node `{}`) would get the shapes {}, {}",
            self.operator,
            self.node,
            shapes.join(" and "),
            match self.problem {
                ShapeProblem::Apart => "which don't match",
                ShapeProblem::SmallerThanKernel => "too small for its kernel",
            }
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
    let problem = Operator::of(node).shape_problem(node, types)?;
    let names = node.input.iter().filter(|name| !name.is_empty());
    let shapes: Option<_> = names.map(|name| types.get(name)?.sizes()).collect();
    Some(ShapeMismatch {
        operator: node.operator(),
        node: node.title().to_string(),
        shapes: shapes?,
        problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use octet_graph::Model;
    use octet_onnx::schema::{
        AttributeProto, DataType, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto,
    };

    #[test]
    fn a_picture_that_is_smaller_than_a_kernel_is_named() {
        let port = |name: &str| ValueInfoProto {
            name: Some(name.into()),
            ..ValueInfoProto::default()
        };
        let input = octet_graph::TensorType {
            element: DataType::Float,
            shape: Some(vec![octet_graph::Dim::Unknown; 4]),
        };
        let graph = GraphProto {
            node: vec![
                NodeProto::new("Conv", "first", &["x", "w"], &["y"]),
                NodeProto::new("MaxPool", "second", &["y"], &["z"])
                    .with(AttributeProto::ints("kernel_shape", &[4, 4])),
            ],
            input: vec![ValueInfoProto::new("x", &input)],
            output: vec![port("z")],
            initializer: vec![TensorProto::from_f32("w", &[2, 1, 3, 3], &[0.0; 18])],
            ..GraphProto::default()
        };
        let graph = Model::from_proto(ModelProto::from_graph(graph, 13)).unwrap();
        let said = |side: usize| {
            let found = ShapeMismatch::find(&graph.graph, &[&[1, 1, side, side]]);
            found.map(|found| found.to_string())
        };
        let of_conv = "Conv (node `first`) would get the shapes [1, 1, 2, 2] and [2, 1, 3, 3], too small for its kernel";
        assert_eq!(said(2).as_deref(), Some(of_conv));
        let of_pool =
            "MaxPool (node `second`) would get the shapes [1, 2, 2, 2], too small for its kernel";
        assert_eq!(said(4).as_deref(), Some(of_pool));
        assert_eq!(said(6), None);
    }
}
