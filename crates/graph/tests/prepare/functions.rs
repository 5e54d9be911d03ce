//! Inlining of the functions in a model.

use octet_graph::Model;
use octet_graph::prepare::{Functions, PrepareError, prepare};
use octet_onnx::schema::*;

use octet_test_models::operators;

use crate::{Sketch, node};

fn set(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto {
        domain: Some(domain.into()),
        version: Some(version),
    }
}

fn call(function: &str, name: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        domain: Some("lib".into()),
        ..NodeProto::new(function, name, inputs, outputs)
    }
}

fn function(name: &str, inputs: &[&str], outputs: &[&str], node: Vec<NodeProto>) -> FunctionProto {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    FunctionProto {
        domain: Some("lib".into()),
        name: Some(name.into()),
        input: names(inputs),
        output: names(outputs),
        node,
        opset_import: vec![set("", 18)],
        ..FunctionProto::default()
    }
}

/// An attribute that refers to the function's attribute `of`.
fn referring(name: &str, of: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        ref_attr_name: Some(of.into()),
        r#type: Some(kind as i32),
        ..AttributeProto::default()
    }
}

fn model(nodes: Vec<NodeProto>, functions: Vec<FunctionProto>) -> Model {
    let sketch = Sketch {
        opset: 18,
        input: vec![2, 3],
        nodes,
        constants: vec![],
    };
    let proto = ModelProto {
        functions,
        ..sketch.proto()
    };
    Model::from_proto(proto).unwrap()
}

fn written(mut model: Model) -> Model {
    Functions::inline(&mut model).unwrap();
    model
}

fn refused(nodes: Vec<NodeProto>, functions: Vec<FunctionProto>) -> String {
    let mut model = model(nodes, functions);
    let before = model.clone();
    let error = Functions::inline(&mut model).unwrap_err();
    assert_eq!(model, before, "what is refused stays as it was");
    error.to_string()
}

#[test]
fn each_name_says_which_call_it_is_of() {
    let body = vec![
        NodeProto::new("Neg", "first", &["v"], &["inside"]),
        NodeProto::new("Abs", "", &["inside"], &["more"]),
        NodeProto::new("Neg", "", &["more"], &["r"]),
    ];
    let nodes = vec![
        call("f", "one", &["x"], &["a"]),
        call("f", "", &["a"], &["y"]),
    ];
    let model = written(model(nodes, vec![function("f", &["v"], &["r"], body)]));
    let nodes = model.graph.nodes().iter();
    let names: Vec<_> = nodes
        .map(|n| (n.name.as_deref().unwrap(), n.output[0].as_str()))
        .collect();
    assert_eq!(
        names,
        [
            ("one/first", "one/inside"),
            ("one/more", "one/more"),
            ("one/r", "a"),
            ("y/first", "y/inside"),
            ("y/more", "y/more"),
            ("y/r", "y"),
        ]
    );
    assert!(model.header().functions.is_empty());
}

#[test]
fn what_a_graph_in_a_body_reads_is_what_the_body_made() {
    // The graph produces a value with the name of the call's input, and reads that input too.
    let branch = |name: &str| AttributeProto {
        name: Some(name.into()),
        r#type: Some(AttributeType::Graph as i32),
        g: Some(GraphProto {
            node: vec![
                NodeProto::new("Neg", "", &["v"], &["x"]),
                NodeProto::new("Add", "", &["x", "v"], &["p"]),
            ],
            output: vec![ValueInfoProto {
                name: Some("p".into()),
                ..Default::default()
            }],
            ..Default::default()
        }),
        ..Default::default()
    };
    let choice = node("If", &["is"], "r")
        .with(branch("then_branch"))
        .with(branch("else_branch"));
    let body = vec![NodeProto::new("IsInf", "", &["v"], &["is"]), choice];
    let nodes = vec![call("f", "one", &["x"], &["y"])];
    let model = written(model(nodes, vec![function("f", &["v"], &["r"], body)]));
    let choice = &model.graph.nodes()[1];
    assert_eq!(choice.captured(), ["x"]);
    for graph in choice.subgraphs() {
        let made = graph.nodes[0].output[0].as_str();
        assert!(made.starts_with("one/x"), "{made}");
        assert_eq!(graph.nodes[0].input, ["x"]);
        assert_eq!(graph.nodes[1].input, [made, "x"]);
        assert_eq!(
            graph.outputs[0].name,
            graph.nodes[1].output.first().cloned()
        );
    }
}

#[test]
fn attributes_are_the_calls_or_the_functions_or_none() {
    let leaky = node("LeakyRelu", &["v"], "r").with(referring("alpha", "a", AttributeType::Float));
    let usual = FunctionProto {
        attribute_proto: vec![AttributeProto::float("a", 0.5)],
        ..function("usual", &["v"], &["r"], vec![leaky.clone()])
    };
    let bare = function("bare", &["v"], &["r"], vec![leaky]);
    for (name, given, alpha) in [
        ("usual", Some(0.25), Some(0.25)),
        ("usual", None, Some(0.5)),
        ("bare", Some(0.25), Some(0.25)),
        ("bare", None, None),
    ] {
        let mut node = call(name, "", &["x"], &["y"]);
        node.attribute
            .extend(given.map(|given| AttributeProto::float("a", given)));
        let model = written(model(vec![node], vec![usual.clone(), bare.clone()]));
        let found = &model.graph.nodes()[0];
        assert_eq!(found.float("alpha"), alpha, "{name} {given:?}");
        assert!(
            found
                .to_proto()
                .attribute
                .iter()
                .all(|a| a.ref_attr_name.is_none())
        );
    }
}

#[test]
fn outputs_that_are_inputs_or_other_outputs_are_copied() {
    let body = vec![node("Neg", &["v"], "r")];
    let nodes = vec![
        call("f", "one", &["x"], &["a", "b", "c"]),
        node("Sum", &["a", "b", "c"], "y"),
    ];
    let functions = vec![function("f", &["v"], &["r", "v", "r"], body)];
    let model = written(model(nodes, functions));
    assert_eq!(operators(&model), ["Neg", "Identity", "Identity", "Sum"]);
    assert_eq!(model.graph.nodes()[1].input, ["x"]);
    assert_eq!(model.graph.nodes()[2].input, ["a"]);
}

#[test]
fn results_nobody_asks_for_go_and_inputs_left_out_stay_out() {
    let body = vec![
        NodeProto::new("Clip", "", &["v", "low", "high"], &["r"]),
        NodeProto::new("Neg", "", &["r"], &["more"]),
    ];
    let nodes = vec![call("f", "one", &["x", "", "x"], &["y"])];
    let functions = vec![function("f", &["v", "low", "high"], &["r", "more"], body)];
    let prepared = prepare(model(nodes, functions)).unwrap();
    assert_eq!(operators(&prepared.model), ["Clip"]);
    assert_eq!(prepared.model.graph.nodes()[0].input, ["x", "", "x"]);
    let said = "1 call of the model's functions inlined: lib::f 1".to_owned();
    assert_eq!(prepared.done[0], said);
}

#[test]
fn functions_that_are_still_called_or_never_were_stay() {
    let old = |mut function: FunctionProto, version| {
        function.opset_import = vec![set("", version)];
        function
    };
    let norm = NodeProto::new("GroupNormalization", "", &["v", "v", "v"], &["n"]);
    let left = vec![norm, call("inner", "", &["n"], &["r"])];
    let functions = vec![
        old(function("left", &["v"], &["r"], left), 21),
        function("inner", &["v"], &["r"], vec![node("Neg", &["v"], "r")]),
        function("gone", &["v"], &["r"], vec![node("Abs", &["v"], "r")]),
        function("never", &["v"], &["r"], vec![node("Exp", &["v"], "r")]),
    ];
    let nodes = vec![
        call("left", "one", &["x"], &["a"]),
        call("inner", "two", &["a"], &["b"]),
        call("gone", "three", &["b"], &["y"]),
    ];
    let mut model = model(nodes, functions);
    let written = Functions::inline(&mut model).unwrap();
    assert_eq!(operators(&model), ["lib::left", "Neg", "Abs"]);
    let kept = model.header().functions.iter();
    let kept: Vec<_> = kept.map(|f| f.name.as_deref().unwrap()).collect();
    assert_eq!(kept, ["left", "inner", "never"]);
    let reason = written.remaining_call().unwrap();
    assert!(matches!(reason, PrepareError::FunctionNotInlined { node, .. } if node == "one"));
    for word in ["lib::left", "GroupNormalization", "opset 21", "18"] {
        assert!(reason.to_string().contains(word), "{reason}");
    }
}

#[test]
fn what_older_operators_say_is_written_as_the_model_would() {
    let mean =
        node("ReduceMean", &["v"], "r").with(referring("axes", "which", AttributeType::Ints));
    let mut older = function("f", &["v"], &["r"], vec![mean]);
    older.opset_import = vec![set("ai.onnx", 13)];
    let one = call("f", "one", &["x"], &["y"]).with(AttributeProto::ints("which", &[1]));
    let prepared = prepare(model(vec![one], vec![older])).unwrap().model;
    let mean = &prepared.graph.nodes()[0];
    assert!(mean.attributes.is_empty());
    let axes = prepared.graph.initializers.get(&mean.input[1]).unwrap();
    assert_eq!(axes.to_i64().unwrap(), [1]);
}

#[test]
fn an_operator_of_another_version_is_written_where_it_means_the_same() {
    for (operator, theirs, ours, same) in [
        ("Neg", 20, 18, true),
        ("Neg", 12, 11, true),
        ("Neg", 9, 12, true),
        ("Softmax", 12, 11, false),
        ("GroupNormalization", 21, 18, false),
        ("GroupNormalization", 20, 18, true),
    ] {
        let body = vec![node(operator, &["v"], "r")];
        let mut other = function("f", &["v"], &["r"], body);
        other.opset_import = vec![set("", theirs)];
        let mut model = model(vec![call("f", "one", &["x"], &["y"])], vec![other]);
        model.set_opset(ours);
        let done = Functions::inline(&mut model).unwrap();
        let told = format!("{operator} {theirs} {ours}");
        assert_eq!(done.remaining_call().is_none(), same, "{told}");
        assert_eq!(model.graph.nodes()[0].is(operator), same, "{told}");
        assert_eq!(model.opset(), ours, "{told}");
    }
}

#[test]
fn an_operator_set_that_the_model_lacks_is_imported() {
    let quick = NodeProto {
        domain: Some("com.microsoft".into()),
        ..node("Frobnicate", &["v"], "r")
    };
    let mut more = function("f", &["v"], &["r"], vec![quick]);
    more.opset_import.push(set("com.microsoft", 1));
    let model = written(model(vec![call("f", "one", &["x"], &["y"])], vec![more]));
    assert!(
        model
            .header()
            .opset_import
            .contains(&set("com.microsoft", 1))
    );
}

#[test]
fn a_function_does_not_stand_in_for_an_operator() {
    let mut shadow = function("Relu", &["v"], &["r"], vec![node("Neg", &["v"], "r")]);
    for domain in ["", "ai.onnx"] {
        shadow.domain = Some(domain.into());
        let model = written(model(vec![node("Relu", &["x"], "y")], vec![shadow.clone()]));
        assert_eq!(operators(&model), ["Relu"]);
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let one = || vec![call("f", "one", &["x"], &["y"])];
    let of = |body: Vec<NodeProto>| vec![function("f", &["v"], &["r"], body)];
    let neg = || vec![node("Neg", &["v"], "r")];
    let many = vec![call("f", "one", &["x", "x"], &["y"])];
    for (nodes, functions, words) in [
        (
            one(),
            of(vec![call("f", "", &["v"], &["r"])]),
            "calls itself",
        ),
        (many, of(neg()), "has 1 inputs and is called with 2"),
        (one(), [of(neg()), of(neg())].concat(), "both named lib::f"),
        (
            one(),
            of(vec![node("Add", &["v", "x"], "r")]),
            "one/x, which nothing produces",
        ),
        (
            one(),
            of([neg(), neg()].concat()),
            "the value y, which already exists",
        ),
        (one(), of(vec![]), "no node produces the model's output y"),
    ] {
        let said = refused(nodes, functions);
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn functions_that_double_what_they_hold_end() {
    let doubling = |i: usize| {
        let next = format!("f{}", i + 1);
        let body = vec![
            call(&next, "a", &["v"], &["w"]),
            call(&next, "b", &["w"], &["r"]),
        ];
        function(&format!("f{i}"), &["v"], &["r"], body)
    };
    let mut functions: Vec<_> = (0..40).map(doubling).collect();
    functions.push(function("f40", &["v"], &["r"], vec![]));
    let said = refused(vec![call("f0", "one", &["x"], &["y"])], functions);
    assert!(
        said.contains("node one") && said.contains("200000 nodes"),
        "{said}"
    );
}
