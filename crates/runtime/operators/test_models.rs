//! Models of one node, for tests of operators.

use octet_graph::{Dim, Model, TensorType};
use octet_onnx::schema::*;

/// An input of the node besides the model input `x`.
pub(super) enum Beside<'a> {
    Floats(&'a [usize], &'a [f32]),
    Integers(&'a [i64]),
    Nothing,
}
use Beside::{Floats, Integers, Nothing};

/// A model of one node whose input `x` has this shape.
pub(super) fn model(node: NodeProto, fed: &[usize], beside: &[Beside]) -> Model {
    let mut node = node;
    let mut constants = Vec::new();
    for (place, input) in beside.iter().enumerate() {
        let name = format!("c{place}");
        let constant = match input {
            Floats(shape, values) => TensorProto::from_f32(&name, shape, values),
            Integers(values) => TensorProto::from_i64(&name, &[values.len()], values),
            Nothing => {
                node.input.push(String::new());
                continue;
            }
        };
        constants.push(constant);
        node.input.push(name);
    }
    let shape = fed.iter().map(|&size| Dim::Known(size)).collect();
    let fed = TensorType {
        element: DataType::Float,
        shape: Some(shape),
    };
    let mut output = ValueInfoProto::new("y", &fed);
    output.r#type = None;
    let graph = GraphProto {
        node: vec![node],
        input: vec![ValueInfoProto::new("x", &fed)],
        output: vec![output],
        initializer: constants,
        ..Default::default()
    };
    Model::from_proto(ModelProto::from_graph(graph, 19)).unwrap()
}

pub(super) fn node(operator: &str) -> NodeProto {
    NodeProto::new(operator, "the node", &["x"], &["y"])
}

pub(super) fn ints(operator: &str, attributes: &[(&str, &[i64])]) -> NodeProto {
    let with = |node: NodeProto, (name, values): &(&str, &[i64])| {
        node.with(AttributeProto::ints(name, values))
    };
    attributes.iter().fold(node(operator), with)
}

pub(super) fn text(operator: &str, name: &str, value: &str) -> NodeProto {
    node(operator).with(AttributeProto::text(name, value))
}
