//! Fused operators that `prepare` decomposes, in various graphs. Tests against ONNX Runtime compare
//! the outputs (tests/oracle/test_fused.py, test_float_operators.py).
#![allow(clippy::unwrap_used, missing_docs)]

use octet_graph::prepare::prepare;
use octet_graph::{Dim, Model, TensorType};
use octet_onnx::schema::*;
use octet_test_models::operators;

fn value(name: &str, shape: Option<&[usize]>) -> ValueInfoProto {
    let shape = shape.map(|shape| shape.iter().map(|&size| Dim::Known(size)).collect());
    let element = DataType::Float;
    ValueInfoProto::new(name, &TensorType { element, shape })
}

fn product(inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        domain: Some("com.microsoft".to_owned()),
        ..NodeProto::new("FusedMatMul", output, inputs, &[output])
    }
    .with(AttributeProto::int("transB", 1))
}

/// A prepared graph from x to y.
fn prepared(x: Option<&[usize]>, nodes: Vec<NodeProto>, constants: Vec<TensorProto>) -> Model {
    let graph = GraphProto {
        name: Some("g".into()),
        node: nodes,
        initializer: constants,
        input: vec![value("x", x)],
        output: vec![ValueInfoProto {
            name: Some("y".into()),
            ..Default::default()
        }],
        ..GraphProto::default()
    };
    let proto = ModelProto::from_graph(graph, 17);
    prepare(Model::from_proto(proto).unwrap()).unwrap().model
}

#[test]
fn computed_operands_are_transposed_if_their_shape_is_known() {
    let nodes = vec![product(&["x", "x"], "one"), product(&["one", "one"], "y")];
    let model = prepared(Some(&[2, 3, 4]), nodes, Vec::new());
    assert_eq!(
        operators(&model),
        ["Transpose", "MatMul", "Transpose", "MatMul"]
    );
    let order = model.graph.nodes()[0].ints("perm");
    assert_eq!(order, Some(&[0, 2, 1][..]));
}

#[test]
fn operators_on_values_of_unknown_rank_stay() {
    let model = prepared(None, vec![product(&["x", "x"], "y")], Vec::new());
    assert_eq!(operators(&model), ["com.microsoft::FusedMatMul"]);
    let model = prepared(Some(&[3]), vec![product(&["x", "x"], "y")], Vec::new());
    assert_eq!(operators(&model), ["com.microsoft::FusedMatMul"]);
}

#[test]
fn a_constant_is_turned_over_once() {
    let weight = TensorProto::from_f32("w", &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let nodes = vec![product(&["x", "w"], "one"), product(&["one", "w"], "y")];
    let model = prepared(Some(&[1, 2]), nodes, vec![weight]);
    assert_eq!(operators(&model), ["MatMul", "MatMul"]);
    assert_eq!(model.graph.initializers.len(), 1);
    let turned = model.graph.initializers.iter().next().unwrap();
    assert_eq!(turned.to_f32().unwrap(), [1.0, 3.0, 2.0, 4.0]);
}

#[test]
fn nodes_keep_the_name_that_settings_know() {
    let scaled = product(&["x", "x"], "y").with(AttributeProto::float("alpha", 0.5));
    let model = prepared(Some(&[3, 4]), vec![scaled], Vec::new());
    let names: Vec<&str> = model
        .graph
        .nodes()
        .iter()
        .map(|node| node.title())
        .collect();
    assert_eq!(names, ["y.turned", "y", "y.scaled"]);
    assert_eq!(model.graph.nodes()[2].output, ["y"]);
}

#[test]
fn attention_of_heads_in_one_is_products_that_can_be_quantized() {
    let node = NodeProto::new("Attention", "the node", &["x", "x", "x"], &["y"])
        .with(AttributeProto::int("q_num_heads", 2))
        .with(AttributeProto::int("kv_num_heads", 2));
    let model = prepared(Some(&[1, 5, 8]), vec![node.clone()], Vec::new());
    let apart = ["Reshape", "Transpose"];
    let rest = [
        "Transpose",
        "MatMul",
        "Mul",
        "Softmax",
        "MatMul",
        "Transpose",
        "Reshape",
    ];
    let expected = [&apart[..], &apart, &apart, &rest].concat();
    assert_eq!(operators(&model), expected);
    let named = model
        .graph
        .nodes()
        .iter()
        .find(|one| one.title() == "the node");
    assert!(named.is_some_and(|one| one.is("MatMul")));
    // The places behind the valid tokens are hidden.
    let mut counted = node;
    counted.input.extend(["", "", "", "x"].map(String::from));
    let model = prepared(Some(&[1, 5, 8]), vec![counted.clone()], Vec::new());
    let written = operators(&model);
    let hides = [
        "Less", "Where", "Add", "Softmax", "IsNaN", "Where", "MatMul",
    ];
    assert!(
        written.windows(hides.len()).any(|some| some == hides),
        "{written:?}"
    );
    // A window hides more than a count says.
    let windowed = counted.with(AttributeProto::int("left_window_size", 2));
    let model = prepared(Some(&[1, 5, 8]), vec![windowed], Vec::new());
    assert_eq!(operators(&model), ["Attention"]);
}
