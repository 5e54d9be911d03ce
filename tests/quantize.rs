//! What quantization promises on graphs as they come: constants shared in every way, outputs inside, subgraphs,
//! slots left empty. The result is always a valid graph, and every node says what became of it.

use std::collections::{BTreeMap, HashSet};

use octet::calibrate::Range;
use octet::graph::Model;
use octet::onnx::schema::*;
use octet::quantize::{Plan, QuantizeError, Quantized, Ranges, Settings, quantize};

fn value(name: &str) -> ValueInfoProto {
    let tensor = TensorTypeProto {
        elem_type: Some(DataType::Float as i32),
        shape: None,
    };
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto {
            value: Some(TypeValue::TensorType(tensor)),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn node(operator: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        op_type: Some(operator.into()),
        input: inputs.iter().map(ToString::to_string).collect(),
        output: vec![output.into()],
        ..Default::default()
    }
}

fn constant(name: &str, dims: &[usize]) -> TensorProto {
    let count: usize = dims.iter().product();
    let values: Vec<f32> = (0..count).map(|i| (i as f32 * 0.7).sin()).collect();
    TensorProto::from_f32(name, dims, &values)
}

/// A model in which every value is a float.
fn model(nodes: Vec<NodeProto>, constants: Vec<TensorProto>, outputs: &[&str]) -> Model {
    let made = nodes.iter().flat_map(|n| &n.output);
    let value_info = made
        .filter(|n| !outputs.contains(&n.as_str()))
        .map(|n| value(n))
        .collect();
    let graph = GraphProto {
        name: Some("graph".into()),
        node: nodes,
        initializer: constants,
        input: vec![value("x")],
        output: outputs.iter().map(|n| value(n)).collect(),
        value_info,
        ..Default::default()
    };
    let opset = OperatorSetIdProto {
        domain: None,
        version: Some(17),
    };
    Model::from_proto(ModelProto {
        ir_version: Some(8),
        graph: Some(graph),
        opset_import: vec![opset],
        ..Default::default()
    })
    .unwrap()
}

/// Quantizes with the range [-1, 2] for everything, and checks that what comes out is a valid graph.
fn done(model: &Model) -> Quantized {
    let plan = Plan::new(model, &Settings::default()).unwrap();
    let ranges: BTreeMap<String, Range> = Plan::observable(model)
        .unwrap()
        .into_iter()
        .map(|name| (name, Range::new(-1.0, 2.0)))
        .collect();
    let quantized = quantize(model, &plan, Ranges::Given(&ranges)).unwrap();
    let graph = &quantized.model.graph;
    let inputs = graph.inputs.iter().filter_map(|v| v.name.clone());
    let mut known: HashSet<String> = HashSet::new();
    for name in inputs.chain(graph.initializers.iter().filter_map(|t| t.name.clone())) {
        assert!(known.insert(name.clone()), "{name} is there twice");
    }
    for node in &graph.nodes {
        for name in node
            .input
            .iter()
            .cloned()
            .chain(node.captured())
            .filter(|n| !n.is_empty())
        {
            assert!(
                known.contains(&name),
                "{} uses {name} before it is made",
                node.title()
            );
        }
        for name in node.output.iter().filter(|n| !n.is_empty()) {
            assert!(known.insert(name.clone()), "{name} is made twice");
        }
    }
    for output in graph.outputs.iter().filter_map(|v| v.name.as_ref()) {
        assert!(known.contains(output), "the output {output} is not made");
    }
    assert_eq!(quantized.nodes.len(), model.graph.nodes.len());
    quantized
}

fn maker<'a>(quantized: &'a Quantized, value: &str) -> &'a NodeProto {
    let mut nodes = quantized.model.graph.nodes.iter();
    nodes.find(|n| n.output.iter().any(|o| o == value)).unwrap()
}

#[test]
fn a_weight_serves_two_operators_whose_channels_lie_on_different_axes() {
    let nodes = vec![
        node("Conv", &["x", "w", "b"], "a"),
        node("ConvTranspose", &["a", "w"], "t"),
        node("Add", &["t", "w"], "y"),
    ];
    let quantized = done(&model(
        nodes,
        vec![constant("w", &[3, 3, 1, 1]), constant("b", &[3])],
        &["y"],
    ));
    assert!(quantized.nodes.iter().all(|n| n.quantized));
}

#[test]
fn a_bias_shared_by_nodes_with_other_scales_becomes_one_for_each() {
    let nodes = vec![
        node("Conv", &["x", "w", "b"], "a"),
        node("Conv", &["a", "w", "b"], "c"),
        node("Exp", &["b"], "e"),
        node("Mul", &["c", "e"], "y"),
    ];
    let quantized = done(&model(
        nodes,
        vec![constant("w", &[3, 3, 1, 1]), constant("b", &[3])],
        &["y"],
    ));
    let conv: Vec<_> = quantized
        .model
        .graph
        .nodes
        .iter()
        .filter(|n| n.is("Conv"))
        .collect();
    assert_ne!(conv[0].input[2], conv[1].input[2]);
    // A node that stays float goes on reading the float bias.
    assert_eq!(maker(&quantized, "e").input, ["b"]);
    assert!(quantized.model.graph.initializers.get("b").is_some());
}

#[test]
fn a_constant_that_is_an_output_stays_as_it_is() {
    let nodes = vec![node("Conv", &["x", "w", "b"], "y")];
    let constants = vec![constant("w", &[3, 3, 1, 1]), constant("b", &[3])];
    let quantized = done(&model(nodes, constants.clone(), &["y", "w", "b"]));
    for tensor in &constants {
        let name = tensor.name.as_deref().unwrap();
        assert_eq!(quantized.model.graph.initializers.get(name), Some(tensor));
    }
}

#[test]
fn an_output_used_further_on_keeps_its_name() {
    let nodes = vec![
        node("Conv", &["x", "w"], "inner"),
        node("Relu", &["inner"], "y"),
    ];
    let quantized = done(&model(
        nodes,
        vec![constant("w", &[3, 3, 1, 1])],
        &["inner", "y"],
    ));
    assert!(maker(&quantized, "inner").is("DequantizeLinear"));
    assert_eq!(
        quantized
            .model
            .graph
            .nodes
            .iter()
            .filter(|n| n.is("Relu"))
            .count(),
        1
    );
}

#[test]
fn an_input_that_is_an_output_too_stays_both() {
    let quantized = done(&model(
        vec![node("Sigmoid", &["x"], "y")],
        vec![],
        &["x", "y"],
    ));
    assert_eq!(
        maker(&quantized, "y").op_type.as_deref(),
        Some("DequantizeLinear")
    );
}

#[test]
fn slots_left_empty_stay_empty() {
    let nodes = vec![
        node("Conv", &["x", "w", ""], "a"),
        node("Clip", &["a", "", "high"], "c"),
        node("Resize", &["c", "", "scales"], "y"),
    ];
    let high = TensorProto::from_f32("high", &[], &[1.0]);
    let scales = TensorProto::from_f32("scales", &[4], &[1.0, 1.0, 2.0, 2.0]);
    let quantized = done(&model(
        nodes,
        vec![constant("w", &[3, 3, 1, 1]), high, scales],
        &["y"],
    ));
    let resize = quantized
        .model
        .graph
        .nodes
        .iter()
        .find(|n| n.is("Resize"))
        .unwrap();
    assert_eq!(resize.input[1..], ["", "scales"]);
    // The Clip is folded into the range; nobody reads its bound any more.
    assert!(!quantized.model.graph.initializers.contains("high"));
}

#[test]
fn subgraphs_are_left_as_they_are_and_find_what_they_use() {
    let branch = GraphProto {
        name: Some("branch".into()),
        node: vec![node("Add", &["inner", "w"], "taken")],
        output: vec![value("taken")],
        ..Default::default()
    };
    let attribute = |name: &str| AttributeProto {
        name: Some(name.into()),
        r#type: Some(AttributeType::Graph as i32),
        g: Some(branch.clone()),
        ..Default::default()
    };
    let mut choice = node("If", &["yes"], "y");
    choice.attribute = vec![attribute("then_branch"), attribute("else_branch")];
    let nodes = vec![
        node("Conv", &["x", "w"], "inner"),
        node("Relu", &["inner"], "z"),
        choice.clone(),
    ];
    let yes = TensorProto::from_raw("yes", DataType::Bool, &[], vec![1u8].into());
    let quantized = done(&model(
        nodes,
        vec![constant("w", &[3, 3, 1, 1]), yes],
        &["y", "z"],
    ));
    assert_eq!(maker(&quantized, "y").attribute, choice.attribute);
    assert!(quantized.model.graph.initializers.contains("w"));
}

#[test]
fn a_clip_that_keeps_zero_out_stays_a_node() {
    for (low, high, folded) in [
        (0.0, 6.0, true),
        (-1.0, 1.0, true),
        (1.0, 6.0, false),
        (-6.0, -1.0, false),
    ] {
        let nodes = vec![
            node("Conv", &["x", "w"], "a"),
            node("Clip", &["a", "low", "high"], "y"),
        ];
        let bounds =
            [("low", low), ("high", high)].map(|(n, v)| TensorProto::from_f32(n, &[], &[v]));
        let constants = [constant("w", &[3, 3, 1, 1])]
            .into_iter()
            .chain(bounds)
            .collect();
        let quantized = done(&model(nodes, constants, &["y"]));
        let clips = quantized
            .model
            .graph
            .nodes
            .iter()
            .filter(|n| n.is("Clip"))
            .count();
        assert_eq!(clips, usize::from(!folded), "Clip to [{low}, {high}]");
    }
}

#[test]
fn a_constant_with_an_infinity_keeps_its_node_float_and_says_so() {
    let mask = TensorProto::from_f32("mask", &[2], &[0.0, f32::NEG_INFINITY]);
    let nodes = vec![
        node("Conv", &["x", "w"], "a"),
        node("Add", &["a", "mask"], "y"),
    ];
    let quantized = done(&model(
        nodes,
        vec![constant("w", &[3, 3, 1, 1]), mask],
        &["y"],
    ));
    let add = &quantized.nodes[1];
    assert!(
        !add.quantized && add.reason.as_deref().unwrap().contains("infinite"),
        "{add:?}"
    );
}

#[test]
fn the_same_model_and_ranges_give_the_same_bytes() {
    let nodes = vec![
        node("Conv", &["x", "w", "b"], "a"),
        node("Add", &["a", "b"], "c"),
        node("Relu", &["c"], "y"),
    ];
    let model = model(
        nodes,
        vec![constant("w", &[3, 3, 1, 1]), constant("b", &[3])],
        &["y"],
    );
    let bytes = || octet::onnx::write(&done(&model).model.to_proto()).unwrap();
    assert_eq!(bytes(), bytes());
}

#[test]
fn what_can_not_be_quantized_is_refused_in_words() {
    let conv = || vec![node("Conv", &["x", "w"], "y")];
    let weight = || vec![constant("w", &[3, 3, 1, 1])];
    let settings = Settings::default();

    let quantized = done(&model(conv(), weight(), &["y"])).model;
    assert!(matches!(
        Plan::new(&quantized, &settings),
        Err(QuantizeError::AlreadyQuantized { .. })
    ));

    let mut old = model(conv(), weight(), &["y"]);
    old.header_mut().opset_import[0].version = Some(9);
    assert!(matches!(
        Plan::new(&old, &settings),
        Err(QuantizeError::Opset { opset: 9 })
    ));

    let kept = Settings {
        float: vec!["z".into()],
        ..Settings::default()
    };
    let error = Plan::new(&model(conv(), weight(), &["y"]), &kept).unwrap_err();
    assert!(error.to_string().contains("`z`"), "{error}");

    let whole = model(conv(), weight(), &["y"]);
    let plan = Plan::new(&whole, &settings).unwrap();
    let error = quantize(&whole, &plan, Ranges::Given(&BTreeMap::new())).unwrap_err();
    assert!(
        error.to_string().contains("no range for the value `x`"),
        "{error}"
    );
}
