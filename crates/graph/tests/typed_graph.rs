//! Nodes and attributes keep what the file has, and edits keep the use lists.

#![allow(clippy::unwrap_used)]

use octet_graph::{Attribute, AttributeValue, Graph, Model, Node, Slot, Use};
use octet_onnx::schema::{
    AttributeProto, AttributeType, GraphProto, ModelProto, NodeProto, StringStringEntryProto,
    TensorProto, ValueInfoProto,
};
use octet_test_models::RandomChoice;

fn value(name: &str) -> ValueInfoProto {
    ValueInfoProto {
        name: Some(name.into()),
        ..ValueInfoProto::default()
    }
}

fn model(nodes: Vec<NodeProto>, outputs: &[&str]) -> Model {
    let graph = GraphProto {
        node: nodes,
        input: vec![value("x"), value("c")],
        output: outputs.iter().map(|name| value(name)).collect(),
        ..GraphProto::default()
    };
    Model::from_proto(ModelProto::from_graph(graph, 21)).unwrap()
}

/// An attribute named `a` without a type.
fn untyped() -> AttributeProto {
    AttributeProto {
        name: Some("a".into()),
        ..AttributeProto::default()
    }
}

/// A branch that makes `made` from a value of the outer graph.
fn branch(outer: &str, made: &str) -> GraphProto {
    GraphProto {
        node: vec![NodeProto::new("Neg", "", &[outer], &[made])],
        output: vec![value(made)],
        doc_string: Some("kept".into()),
        ..GraphProto::default()
    }
}

fn graph_attribute(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        g: Some(graph),
        r#type: Some(AttributeType::Graph as i32),
        ..AttributeProto::default()
    }
}

#[test]
fn an_attribute_is_written_as_it_was_read() {
    let of = |kind: AttributeType| AttributeProto {
        r#type: Some(kind as i32),
        ..untyped()
    };
    let documented = AttributeProto {
        doc_string: Some("words".into()),
        ..AttributeProto::int("a", 3)
    };
    let reference = AttributeProto {
        ref_attr_name: Some("of the function".into()),
        ..of(AttributeType::Ints)
    };
    let untyped_float = AttributeProto {
        f: Some(0.5),
        ..untyped()
    };
    let nameless = AttributeProto {
        name: None,
        ..AttributeProto::float("a", 1.0)
    };
    let wrong_type = AttributeProto {
        i: Some(7),
        ..of(AttributeType::Float)
    };
    let two_values = AttributeProto {
        f: Some(7.0),
        ..AttributeProto::int("a", 2)
    };
    let messages = [
        AttributeProto::int("a", 3),
        AttributeProto::ints("a", &[]),
        AttributeProto::ints("a", &[1, 2]),
        AttributeProto::text("a", "text"),
        AttributeProto::tensor("a", TensorProto::from_f32("t", &[], &[1.0])),
        graph_attribute("a", branch("x", "m")),
        of(AttributeType::Int),
        of(AttributeType::Undefined),
        untyped(),
        documented,
        reference,
        untyped_float,
        nameless,
        wrong_type,
        two_values,
    ];
    for message in messages {
        let node = NodeProto {
            attribute: vec![message],
            doc_string: Some("of the node".into()),
            overload: Some(String::new()),
            metadata_props: vec![StringStringEntryProto::default()],
            ..NodeProto::new("Identity", "", &["x"], &["y"])
        };
        let read = model(vec![node.clone()], &["y"]);
        assert_eq!(read.to_proto().graph.unwrap().node, [node]);
    }
}

#[test]
fn an_attribute_of_an_old_file_has_the_type_of_its_only_value() {
    let node = NodeProto::new("Identity", "n", &["x"], &["y"]).with(AttributeProto {
        ints: vec![1, 2],
        ..untyped()
    });
    let model = model(vec![node], &["y"]);
    let attribute = &model.graph.nodes()[0].attributes[0];
    assert_eq!(attribute.value, AttributeValue::Ints(vec![1, 2]));
    assert_eq!(attribute.as_int(), None);
}

#[test]
fn a_use_within_a_subgraph_has_no_input_slot() {
    let choice = NodeProto::new("If", "if", &["c"], &["y"])
        .with(graph_attribute("then_branch", branch("a", "yes")))
        .with(graph_attribute("else_branch", branch("x", "no")));
    let nodes = vec![NodeProto::new("Abs", "abs", &["x"], &["a"]), choice];
    let graph = model(nodes, &["y"]).graph;
    let captured = Use {
        node: 1,
        slot: Slot::Captured,
    };
    assert_eq!(graph.consumers("a"), [captured]);
    assert_eq!(captured.input(), None);
    assert!(graph.is_captured("x") && !graph.is_captured("c"));
    assert_eq!(graph.only_consumer("x"), None);
    assert_eq!(graph.consumers("yes"), []);
}

/// A chain of nodes with a second input each, some of which read through a branch.
fn chain(random: &mut RandomChoice, count: usize) -> Vec<NodeProto> {
    let mut values: Vec<String> = vec!["x".to_owned(), "c".to_owned()];
    let mut nodes = Vec::new();
    for place in 0..count {
        let mut input = || values[random.below(values.len())].clone();
        let (one, two, output): (String, String, _) = (input(), input(), format!("v{place}"));
        let node = match place % 4 {
            3 => NodeProto::new("If", "", &[&one], &[&output])
                .with(graph_attribute("then_branch", branch(&two, "yes")))
                .with(graph_attribute("else_branch", branch(&one, "no"))),
            _ => NodeProto::new("Add", &output, &[&one, &two], &[&output]),
        };
        nodes.push(node);
        values.push(output);
    }
    nodes
}

/// Changes a graph by one of its edits. The order of nodes need not stay topological.
fn edited(graph: &mut Graph, random: &mut RandomChoice, step: usize) {
    let place = random.below(graph.nodes().len());
    let name = |random: &mut RandomChoice| format!("v{}", random.below(12));
    match random.below(8) {
        0 => graph.push(Node::new(
            "Relu",
            "",
            &[&name(random)],
            &[&format!("n{step}")],
        )),
        1 => {
            let node = Node::new("Relu", "", &[&name(random)], &[&format!("n{step}")]);
            graph.insert(place, [node]);
        }
        2 => {
            let input = name(random);
            graph.edit(place, |node| node.set_input(2, input));
        }
        3 => graph.edit(place, |node| node.set(Attribute::int("axis", 1))),
        4 => graph.remove_nodes(&[place].into()),
        5 => graph.replace_uses(&name(random), &format!("n{step}")),
        6 => graph.edit_all(|_, node| node.input.reverse()),
        _ => {
            let nodes = graph.take_nodes();
            assert!(graph.is_unused("x") && graph.producer("v0").is_none());
            graph.replace_nodes(nodes);
        }
    }
}

#[test]
fn edits_keep_producers_and_consumers() {
    for seed in 0..200 {
        let mut random = RandomChoice(seed);
        let mut graph = model(chain(&mut random, 12), &["v11"]).graph;
        for step in 0..30 {
            if graph.nodes().len() < 3 {
                break;
            }
            edited(&mut graph, &mut random, step);
            let mut again = graph.clone();
            again.replace_nodes(graph.nodes().to_vec());
            assert_eq!(graph, again, "seed {seed}, step {step}");
        }
    }
}
