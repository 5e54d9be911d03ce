//! Models of one node, for tests of validation.

use crate::prepare::infer_from;
use crate::validate::validate;
use crate::{Attribute, Dim, Model, Node, TensorType};
use octet_onnx::schema::*;

/// An input of the node besides the model input `x`.
pub(super) enum ExtraInput<'a> {
    Floats(&'a [usize], &'a [f32]),
    Integers(&'a [i64]),
    Nothing,
}
use ExtraInput::{Floats, Integers, Nothing};

/// The shape of a small image with four channels.
pub(super) const PICTURE: &[usize] = &[1, 4, 6, 6];

/// A model of one node whose input `x` has this shape.
pub(super) fn model(node: Node, fed: &[usize], extra: &[ExtraInput]) -> Model {
    let mut node = node;
    let mut constants = Vec::new();
    for (place, input) in extra.iter().enumerate() {
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
        node: vec![node.to_proto()],
        input: vec![ValueInfoProto::new("x", &fed)],
        output: vec![output],
        initializer: constants,
        ..Default::default()
    };
    Model::from_proto(ModelProto::from_graph(graph, 19)).unwrap()
}

pub(super) fn node(operator: &str) -> Node {
    Node::new(operator, "the node", &["x"], &["y"])
}

pub(super) fn ints(operator: &str, attributes: &[(&str, &[i64])]) -> Node {
    let with =
        |node: Node, (name, values): &(&str, &[i64])| node.with(Attribute::ints(name, values));
    attributes.iter().fold(node(operator), with)
}

pub(super) fn int(operator: &str, name: &str, value: i64) -> Node {
    node(operator).with(Attribute::int(name, value))
}

pub(super) fn text(operator: &str, name: &str, value: &str) -> Node {
    node(operator).with(Attribute::text(name, value))
}

/// Validates a model for an input of this shape, or for its declared input.
pub(super) fn checked(model: &Model, fed: Option<&[usize]>) -> Result<(), String> {
    let types = infer_from(&model.graph, fed.as_slice());
    validate(model, &types, true).map_err(|error| error.to_string())
}

/// The error of an invalid node.
pub(super) fn refused(node: Node, fed: &[usize], extra: &[ExtraInput]) -> String {
    let operator = node.operator();
    let error = checked(&model(node, fed, extra), None).expect_err(&operator);
    assert!(
        error.starts_with(&operator) && error.contains("(node `the node`)"),
        "{error}"
    );
    error
}

/// Fails unless the node is valid.
pub(super) fn taken(node: Node, fed: &[usize], extra: &[ExtraInput]) {
    let text = format!("{node:?}");
    if let Err(error) = checked(&model(node, fed, extra), None) {
        panic!("{error}: {text}");
    }
}
