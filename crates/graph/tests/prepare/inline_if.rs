//! An If with a known condition is replaced by its branch; one whose condition depends on the run
//! stays.

use octet_graph::Model;
use octet_graph::prepare::{Prepared, prepare};
use octet_onnx::schema::*;

use octet_test_models::operators;

use super::{Sketch, node};

fn branch(nodes: Vec<NodeProto>, constants: Vec<TensorProto>, outputs: &[&str]) -> GraphProto {
    let output = outputs.iter().map(|&name| ValueInfoProto {
        name: Some(name.to_owned()),
        ..ValueInfoProto::default()
    });
    GraphProto {
        name: Some("branch".to_owned()),
        node: nodes,
        initializer: constants,
        output: output.collect(),
        ..GraphProto::default()
    }
}

fn graph(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(AttributeType::Graph as i32),
        g: Some(graph),
        ..AttributeProto::default()
    }
}

/// An If node named after its output.
fn choice(condition: &str, outputs: &[&str], yes: GraphProto, no: GraphProto) -> NodeProto {
    NodeProto::new("If", outputs[0], &[condition], outputs)
        .with(graph("then_branch", yes))
        .with(graph("else_branch", no))
}

fn truth(name: &str, value: bool) -> TensorProto {
    TensorProto::from_raw(name, DataType::Bool, &[], vec![u8::from(value)].into())
}

fn all(nodes: Vec<NodeProto>, constants: Vec<TensorProto>) -> Prepared {
    let sketch = Sketch {
        opset: 17,
        input: vec![1, 4],
        nodes,
        constants,
    };
    prepare(Model::from_proto(sketch.proto()).unwrap()).unwrap()
}

#[test]
fn a_known_condition_takes_its_branch_and_leaves_the_other() {
    for (condition, taken) in [(true, "Neg"), (false, "Abs")] {
        let chosen = choice(
            "c",
            &["r"],
            branch(vec![node("Neg", &["x"], "p")], vec![], &["p"]),
            branch(vec![node("Abs", &["x"], "q")], vec![], &["q"]),
        );
        let nodes = vec![chosen, node("Relu", &["r"], "y")];
        let prepared = all(nodes, vec![truth("c", condition)]);
        assert_eq!(operators(&prepared.model), [taken, "Relu"]);
        // The output of the If keeps its name.
        assert_eq!(prepared.model.graph.nodes()[1].input, ["r"]);
        let said = "1 If with a known condition replaced by its branch";
        assert!(
            prepared.done.contains(&said.to_owned()),
            "{:?}",
            prepared.done
        );
    }
}

#[test]
fn a_condition_on_a_shape_that_is_declared_is_known() {
    // PyTorch's form of a squeeze: an axis of size 1 is dropped, else the value stays as it is.
    let first = TensorProto::from_i64("first", &[], &[0]);
    let one = TensorProto::from_i64("one", &[], &[1]);
    let axes = TensorProto::from_i64("axes", &[1], &[0]);
    let nodes = vec![
        node("Shape", &["x"], "shape"),
        node("Gather", &["shape", "first"], "size"),
        node("Equal", &["size", "one"], "c"),
        choice(
            "c",
            &["r"],
            branch(
                vec![node("Squeeze", &["x", "axes"], "p")],
                vec![axes],
                &["p"],
            ),
            branch(vec![], vec![], &["x"]),
        ),
        node("Relu", &["r"], "y"),
    ];
    let model = all(nodes, vec![first, one]).model;
    assert_eq!(operators(&model), ["Squeeze", "Relu"]);
    let axes = &model.graph.nodes()[0].input[1];
    assert_eq!(axes, "r/axes");
    assert!(model.graph.initializers.contains(axes));
}

#[test]
fn a_choice_within_a_choice_is_known_with_it() {
    let inner = choice(
        "c",
        &["i"],
        branch(vec![node("Neg", &["v"], "p")], vec![], &["p"]),
        branch(vec![node("Abs", &["v"], "p")], vec![], &["p"]),
    );
    let no = NodeProto::new("Constant", "", &[], &["c"])
        .with(AttributeProto::tensor("value", truth("", false)));
    let outer = choice(
        "yes",
        &["r"],
        branch(vec![no, node("Tanh", &["x"], "v"), inner], vec![], &["i"]),
        branch(vec![], vec![], &["x"]),
    );
    let nodes = vec![outer, node("Relu", &["r"], "y")];
    let model = all(nodes, vec![truth("yes", true)]).model;
    assert_eq!(operators(&model), ["Tanh", "Abs", "Relu"]);
    let names: Vec<_> = model
        .graph
        .nodes()
        .iter()
        .map(|node| node.title())
        .collect();
    assert_eq!(names, ["r/v", "r/i", "y"]);
}

#[test]
fn what_a_branch_hands_on_comes_out_under_each_of_its_names() {
    let bias = TensorProto::from_f32("bias", &[1], &[2.0]);
    let yes = branch(
        vec![node("Add", &["x", "bias"], "s")],
        vec![bias],
        &["s", "s", "x", "bias"],
    );
    let no = branch(vec![], vec![], &["x", "x", "x", "x"]);
    let nodes = vec![
        choice("c", &["a", "b", "d", "e"], yes, no),
        NodeProto::new("Sum", "y", &["a", "b", "d", "e"], &["y"]),
    ];
    let model = all(nodes, vec![truth("c", true)]).model;
    assert_eq!(operators(&model), ["Add", "Sum"]);
    let [add, sum] = model.graph.nodes() else {
        unreachable!()
    };
    let [first, second, fed, bias] = &sum.input[..] else {
        unreachable!()
    };
    assert_eq!([first, second, fed], [&add.output[0], &add.output[0], "x"]);
    let bias = model.graph.initializers.get(bias).unwrap();
    assert_eq!(bias.to_f32().unwrap(), [2.0]);
}

#[test]
fn an_output_of_the_model_keeps_its_name() {
    for (yes, expected) in [
        (
            branch(vec![node("Neg", &["x"], "p")], vec![], &["p"]),
            "Neg",
        ),
        (branch(vec![], vec![], &["x"]), "Identity"),
    ] {
        let no = branch(vec![], vec![], &["x"]);
        let model = all(vec![choice("c", &["y"], yes, no)], vec![truth("c", true)]).model;
        assert_eq!(operators(&model), [expected]);
        assert_eq!(model.graph.nodes()[0].output, ["y"]);
    }
}

#[test]
fn names_that_two_branches_share_are_told_apart() {
    let doubled = || {
        branch(
            vec![node("Neg", &["x"], "p"), node("Abs", &["p"], "q")],
            vec![],
            &["q"],
        )
    };
    let nodes = vec![
        choice("c", &["a"], doubled(), doubled()),
        choice("c", &["b"], doubled(), doubled()),
        node("Add", &["a", "b"], "y"),
    ];
    let model = all(nodes, vec![truth("c", true)]).model;
    assert_eq!(operators(&model), ["Neg", "Abs", "Neg", "Abs", "Add"]);
    let made: Vec<_> = model
        .graph
        .nodes()
        .iter()
        .map(|n| n.output[0].as_str())
        .collect();
    assert_eq!(made, ["a/p", "a", "b/p", "b", "y"]);
}

#[test]
fn what_only_a_run_decides_stays() {
    let sum = |name: &str| node("ReduceSum", &["x"], name);
    let cast = NodeProto::cast("cast", "sum", "c", DataType::Bool);
    let chosen = choice(
        "c",
        &["y"],
        branch(vec![node("Neg", &["x"], "p")], vec![], &["p"]),
        branch(vec![node("Abs", &["x"], "q")], vec![], &["q"]),
    );
    let model = all(vec![sum("sum"), cast, chosen], vec![]).model;
    assert_eq!(operators(&model), ["ReduceSum", "Cast", "If"]);
}

#[test]
fn a_branch_that_makes_fewer_values_than_its_node_stays_for_who_refuses_it() {
    let few = || branch(vec![node("Neg", &["x"], "p")], vec![], &["p"]);
    let nodes = vec![
        choice("c", &["a", "b"], few(), few()),
        node("Add", &["a", "b"], "y"),
    ];
    let model = all(nodes, vec![truth("c", true)]).model;
    assert_eq!(operators(&model), ["If", "Add"]);
}

#[test]
fn a_branch_that_reads_what_nothing_makes_is_an_error_by_name() {
    let bad = || branch(vec![node("Neg", &["nobody"], "p")], vec![], &["p"]);
    let sketch = Sketch {
        opset: 17,
        input: vec![1, 4],
        nodes: vec![choice("c", &["y"], bad(), bad())],
        constants: vec![truth("c", true)],
    };
    let model = Model::from_proto(sketch.proto());
    let refused = match model {
        Ok(model) => prepare(model).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    assert!(refused.contains("nobody"), "{refused}");
}
