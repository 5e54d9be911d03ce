//! Bodies in the main graph, and back.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use octet_graph::{FlatModel, Model, Node};
use octet_onnx::schema::{
    AttributeProto, AttributeType, DataType, GraphProto, ModelProto, NodeProto, TensorProto,
    ValueInfoProto,
};
use octet_onnx::{Dim, TensorType};

fn port(name: &str) -> ValueInfoProto {
    let shape = Some(vec![Dim::Known(4)]);
    let element = DataType::Float;
    ValueInfoProto::new(name, &TensorType { element, shape })
}

fn branch(operator: &str) -> AttributeProto {
    let graph = GraphProto {
        name: Some("branch".into()),
        node: vec![
            NodeProto::new("Mul", "scale", &["x", "own"], &["inner"]),
            NodeProto::new(operator, "", &["inner", "shared"], &["out"]),
        ],
        initializer: vec![TensorProto::from_f32("own", &[4], &[1.0, 2.0, 3.0, 4.0])],
        output: vec![port("out")],
        ..GraphProto::default()
    };
    AttributeProto {
        name: Some(
            if operator == "Add" {
                "then_branch"
            } else {
                "else_branch"
            }
            .into(),
        ),
        r#type: Some(AttributeType::Graph as i32),
        g: Some(graph),
        ..AttributeProto::default()
    }
}

fn model() -> Model {
    let nodes = vec![
        NodeProto::new("Neg", "before", &["x"], &["b"]),
        NodeProto::new("If", "", &["yes"], &["y"])
            .with(branch("Add"))
            .with(branch("Sub")),
        NodeProto::new("Add", "after", &["y", "b"], &["z"]),
    ];
    let condition = TensorType {
        element: DataType::Bool,
        shape: Some(Vec::new()),
    };
    let graph = GraphProto {
        name: Some("g".into()),
        node: nodes,
        initializer: vec![TensorProto::from_f32("shared", &[4], &[0.5; 4])],
        input: vec![port("x"), ValueInfoProto::new("yes", &condition)],
        output: vec![port("z")],
        ..GraphProto::default()
    };
    Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
}

fn bodies(node: &Node) -> Vec<Vec<String>> {
    let words = |node: &Node| format!("{} {:?} {:?}", node.op_type, node.input, node.output);
    let bodies = node.subgraphs();
    bodies
        .map(|body| body.nodes.iter().map(words).collect())
        .collect()
}

#[test]
fn an_unchanged_flat_model_is_restored_with_unique_names() {
    let source = model();
    let flat = FlatModel::new(&source, true).unwrap().unwrap();
    assert_eq!(flat.model.graph.nodes().len(), 8);
    let operators: Vec<String> = flat
        .model
        .graph
        .nodes()
        .iter()
        .map(Node::operator)
        .collect();
    assert_eq!(
        operators,
        ["Neg", "If", "Mul", "Add", "Mul", "Sub", "If", "Add"]
    );
    // Values of both branches have types now.
    let elements = flat.model.graph.element_types();
    assert_eq!(elements["inner"], DataType::Float);
    assert_eq!(elements["inner_1"], DataType::Float);
    let mut graph = flat.model.graph.clone();
    flat.restore(&mut graph, &HashSet::new());
    assert_eq!(graph.nodes().len(), 3);
    assert_eq!(
        bodies(&graph.nodes()[1]),
        [
            [
                r#"Mul ["x", "own"] ["inner"]"#,
                r#"Add ["inner", "shared"] ["out"]"#
            ],
            [
                r#"Mul ["x", "own_1"] ["inner_1"]"#,
                r#"Sub ["inner_1", "shared"] ["out_1"]"#
            ]
        ]
    );
    let constants = graph.initializers.iter().map(TensorProto::title);
    assert_eq!(constants.collect::<Vec<_>>(), ["shared"]);
    assert_eq!(graph.outputs(), source.graph.outputs());
}

#[test]
fn new_nodes_go_where_all_their_readers_are() {
    let flat = FlatModel::new(&model(), true).unwrap().unwrap();
    let mut graph = flat.model.graph.clone();
    let mut nodes = graph.take_nodes();
    // One new value for both branches, and one for the second branch alone.
    nodes.insert(2, Node::new("Abs", "both", &["shared"], &["fresh"]));
    let rewritten = |node: &mut Node, old: &str, new: &str| {
        node.input
            .iter_mut()
            .filter(|input| *input == old)
            .for_each(|input| new.clone_into(input));
    };
    for node in &mut nodes {
        if ["Add", "Sub"].contains(&node.op_type.as_str()) {
            rewritten(node, "shared", "fresh");
        }
    }
    let place = nodes.iter().position(|node| node.op_type == "Sub").unwrap();
    rewritten(&mut nodes[place], "inner_1", "alone");
    nodes.insert(place, Node::new("Exp", "alone", &["inner_1"], &["alone"]));
    graph.replace_nodes(nodes);
    let computed = HashSet::from(["own_1".to_owned()]);
    flat.restore(&mut graph, &computed);
    let titles: Vec<&str> = graph.nodes().iter().map(Node::title).collect();
    assert_eq!(titles, ["before", "both", "y", "after"]);
    let [then_branch, else_branch] = bodies(&graph.nodes()[2]).try_into().unwrap();
    assert_eq!(then_branch.len(), 2);
    assert_eq!(else_branch[1], r#"Exp ["inner_1"] ["alone"]"#);
    // A computed constant stays with its only reader, and is found there.
    let constants: Vec<&str> = graph.initializers.iter().map(TensorProto::title).collect();
    assert_eq!(constants, ["shared"]);
    let full = TensorProto::from_f32("own_1", &[4], &[9.0; 4]);
    graph.fill_constants(vec![full.clone()]);
    let body = graph.nodes()[2].subgraphs().nth(1).unwrap();
    assert_eq!(body.initializers, [full]);
}

#[test]
fn a_file_with_the_name_of_a_marker_stays_as_it_is() {
    let mut source = model();
    source
        .graph
        .insert(0, [Node::new("OctetBodyOutputs", "odd", &["x"], &["odd"])]);
    assert!(FlatModel::new(&source, true).unwrap().is_none());
    let plain = GraphProto {
        node: vec![NodeProto::new("Neg", "n", &["x"], &["y"])],
        input: vec![port("x")],
        output: vec![port("y")],
        ..GraphProto::default()
    };
    let plain = Model::from_proto(ModelProto::from_graph(plain, 17)).unwrap();
    assert!(FlatModel::new(&plain, true).unwrap().is_none());
}
