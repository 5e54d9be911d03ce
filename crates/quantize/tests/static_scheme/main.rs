//! Quantization of unusual graphs: shared constants, inner values as outputs, subgraphs, empty
//! slots. The result is always a valid graph, and every node has a decision.
#![allow(clippy::unwrap_used)]

mod all_formats;
mod any_settings;
mod concat_scales;
mod ignored_settings;
mod operator_patterns;
mod ranges;
mod refusals;

use std::collections::HashSet;

use all_formats::quantize_all_formats;
use octet_onnx::schema::*;
use octet_test_models::{assert_valid, choice, constant, model, node, producer, value};

#[test]
fn a_weight_read_along_two_channel_axes_has_one_scale() {
    let nodes = vec![
        node("Conv", &["x", "w", "b"], "a"),
        node("ConvTranspose", &["a", "w"], "t"),
        node("Add", &["t", "w"], "y"),
    ];
    let quantized = quantize_all_formats(&model(
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
    let quantized = quantize_all_formats(&model(
        nodes,
        vec![constant("w", &[3, 3, 1, 1]), constant("b", &[3])],
        &["y"],
    ));
    let conv: Vec<_> = quantized
        .model
        .graph
        .nodes()
        .iter()
        .filter(|n| n.is("Conv"))
        .collect();
    assert_ne!(conv[0].input[2], conv[1].input[2]);
    // A float node still reads the float bias.
    assert_eq!(producer(&quantized.model, "e").input, ["b"]);
    assert!(quantized.model.graph.initializers.get("b").is_some());
}

#[test]
fn a_constant_that_is_an_output_stays_as_it_is() {
    let nodes = vec![node("Conv", &["x", "w", "b"], "y")];
    let constants = vec![constant("w", &[3, 3, 1, 1]), constant("b", &[3])];
    let quantized = quantize_all_formats(&model(nodes, constants.clone(), &["y", "w", "b"]));
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
    let quantized = quantize_all_formats(&model(
        nodes,
        vec![constant("w", &[3, 3, 1, 1])],
        &["inner", "y"],
    ));
    assert!(producer(&quantized.model, "inner").is("DequantizeLinear"));
    assert_eq!(
        quantized
            .model
            .graph
            .nodes()
            .iter()
            .filter(|n| n.is("Relu"))
            .count(),
        1
    );
}

#[test]
fn an_input_that_is_an_output_too_stays_both() {
    let quantized = quantize_all_formats(&model(
        vec![node("Sigmoid", &["x"], "y")],
        vec![],
        &["x", "y"],
    ));
    assert_eq!(producer(&quantized.model, "y").op_type, "DequantizeLinear");
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
    let quantized = quantize_all_formats(&model(
        nodes,
        vec![constant("w", &[3, 3, 1, 1]), high, scales],
        &["y"],
    ));
    let resize = quantized
        .model
        .graph
        .nodes()
        .iter()
        .find(|n| n.is("Resize"))
        .unwrap();
    assert_eq!(resize.input[1..], ["", "scales"]);
    // The Clip is folded into the range, so its bound has no reader.
    assert!(!quantized.model.graph.initializers.contains("high"));
}

#[test]
fn subgraphs_are_unchanged_and_find_their_values() {
    let (choice, yes) = choice("Add", "y");
    let nodes = vec![
        node("Conv", &["x", "w"], "inner"),
        node("Relu", &["inner"], "z"),
        choice.clone(),
    ];
    let quantized = quantize_all_formats(&model(
        nodes,
        vec![constant("w", &[3, 3, 1, 1]), yes],
        &["y", "z"],
    ));
    assert_eq!(
        producer(&quantized.model, "y").to_proto().attribute,
        choice.attribute
    );
    assert!(quantized.model.graph.initializers.contains("w"));
}

#[test]
fn a_constant_read_along_two_axes_has_one_scale_for_both() {
    let mut transposed = node("Gemm", &["a", "w"], "g");
    transposed.attribute = vec![AttributeProto::int("transB", 1)];
    let nodes = vec![
        node("Gemm", &["x", "w"], "a"),
        transposed,
        node("MatMul", &["g", "w"], "y"),
    ];
    let quantized = quantize_all_formats(&model(nodes, vec![constant("w", &[3, 3])], &["y"]));
    let scale = quantized.model.graph.initializers.get("w_scale").unwrap();
    assert_eq!(scale.element_count().unwrap(), 1);
    assert!(quantized.nodes.iter().all(|n| n.quantized));
}

#[test]
fn new_value_names_do_not_collide() {
    // The usual names of a shared bias' copy, `b0`, and of its integers, `b_quantized`, are taken.
    let nodes = vec![
        node("Conv", &["x", "w", "b"], "a"),
        node("Conv", &["a", "w", "b"], "c"),
        node("Conv", &["c", "w", "b0"], "d"),
        node("Add", &["d", "b_quantized"], "w_quantized"),
        node("Sigmoid", &["w_quantized"], "w_scale"),
        node("Exp", &["w_scale"], "y"),
    ];
    let constants = vec![
        constant("w", &[3, 3, 1, 1]),
        constant("b", &[3]),
        constant("b0", &[3]),
        constant("b_quantized", &[1]),
    ];
    let quantized = quantize_all_formats(&model(nodes, constants, &["y"]));
    let conv = quantized
        .model
        .graph
        .nodes()
        .iter()
        .filter(|n| n.is("Conv"));
    let biases: HashSet<&String> = conv.map(|n| &n.input[2]).collect();
    assert_eq!(biases.len(), 3);
}

#[test]
fn new_node_names_do_not_collide() {
    // The usual names of the pairs and of the integer operators.
    let named = |mut renamed: NodeProto, name: &str| {
        renamed.name = Some(name.into());
        renamed
    };
    let nodes = vec![
        named(node("Conv", &["x", "w", "b"], "a"), "x_QuantizeLinear"),
        named(node("Sigmoid", &["a"], "s"), "x_QuantizeLinear_quant"),
        named(node("Conv", &["s", "w", "b"], "c"), "w_DequantizeLinear"),
        named(node("Add", &["c", "c"], "d"), "b_DequantizeLinear"),
        named(node("MaxPool", &["d"], "y"), "b_DequantizeLinear_1"),
    ];
    let weight = constant("w", &[3, 3, 1, 1]);
    let model = model(nodes, vec![weight.clone(), constant("b", &[3])], &["y"]);
    let quantized = quantize_all_formats(&model);
    // The simulated form finds the weight by the name of its pair.
    let readable = octet_quantize::with_float_weights(&quantized.model, &model).unwrap();
    let floats = readable.graph.initializers.get("w").unwrap();
    assert_eq!(floats.to_f32().unwrap(), weight.to_f32().unwrap());
}

#[test]
fn scalars_are_quantized_with_one_scale() {
    let scalar = |name: &str, value: f32| TensorProto::from_f32(name, &[], &[value]);
    let nodes = vec![
        node("Mul", &["x", "half"], "a"),
        node("Add", &["nothing", "a"], "y"),
    ];
    let constants = vec![scalar("half", 0.5), scalar("nothing", 0.0)];
    let quantized = quantize_all_formats(&model(nodes, constants, &["y"]));
    for name in ["half_quantized", "half_scale", "nothing_scale"] {
        let tensor = quantized.model.graph.initializers.get(name).unwrap();
        assert!(tensor.dims.is_empty(), "{name} is no scalar");
    }
    let integer = quantized.model.graph.initializers.get("half_quantized");
    assert_eq!(integer.unwrap().to_i64().unwrap(), [255]);
}

#[test]
fn loops_stay_float_with_a_reason() {
    for operator in ["If", "Loop", "Scan"] {
        let body = GraphProto {
            name: Some("body".into()),
            node: vec![node("MatMul", &["clamped", "w"], "taken")],
            output: vec![value("taken")],
            ..Default::default()
        };
        let mut inner = node(operator, &["x"], "y");
        inner.attribute = vec![AttributeProto {
            name: Some("body".into()),
            r#type: Some(AttributeType::Graph as i32),
            g: Some(body),
            ..Default::default()
        }];
        // The subgraph reads the float value, which no integers clip, so the Relu isn't folded into
        // the Conv.
        let nodes = vec![
            node("Conv", &["x", "w"], "a"),
            node("Relu", &["a"], "clamped"),
            inner.clone(),
        ];
        let quantized =
            quantize_all_formats(&model(nodes, vec![constant("w", &[3, 3, 1, 1])], &["y"]));
        assert_eq!(
            producer(&quantized.model, "y").to_proto().attribute,
            inner.attribute
        );
        assert!(producer(&quantized.model, "clamped").is("Relu"));
        let choice = quantized.nodes.iter().find(|n| n.operator == operator);
        let reason = choice.and_then(|choice| Some(choice.reason?.words()));
        assert!(
            reason.is_some_and(|r| r.contains("subgraphs")),
            "{reason:?}"
        );
    }
}

#[test]
fn a_large_weight_that_a_loop_takes_too_is_kept_once() {
    for (side, kept) in [(32, false), (3, true)] {
        let body = GraphProto {
            name: Some("body".into()),
            node: vec![node("Tanh", &["x"], "taken")],
            output: vec![value("taken")],
            ..Default::default()
        };
        let mut inner = node("Loop", &["", "", "w"], "l");
        inner.attribute = vec![AttributeProto {
            name: Some("body".into()),
            r#type: Some(AttributeType::Graph as i32),
            g: Some(body),
            ..Default::default()
        }];
        let nodes = vec![
            inner,
            node("MatMul", &["x", "w"], "m"),
            node("Add", &["m", "l"], "y"),
        ];
        let weight = vec![constant("w", &[side, side])];
        let quantized = quantize_all_formats(&model(nodes, weight, &["y"]));
        let graph = &quantized.model.graph;
        assert_eq!(graph.initializers.contains("w"), kept, "side {side}");
        assert!(graph.initializers.contains("w_quantized"));
        let taken = producer(&quantized.model, "l").input[2].clone();
        assert_eq!(taken == "w", kept, "{taken}");
        assert_valid(&quantized.model);
    }
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
        let quantized = quantize_all_formats(&model(nodes, constants, &["y"]));
        let clips = quantized
            .model
            .graph
            .nodes()
            .iter()
            .filter(|n| n.is("Clip"))
            .count();
        assert_eq!(clips, usize::from(!folded), "Clip to [{low}, {high}]");
    }
}

#[test]
fn a_constant_with_an_infinity_keeps_its_node_float_with_a_reason() {
    let mask = TensorProto::from_f32("mask", &[2], &[0.0, f32::NEG_INFINITY]);
    let nodes = vec![
        node("Conv", &["x", "w"], "a"),
        node("Add", &["a", "mask"], "y"),
    ];
    let quantized = quantize_all_formats(&model(
        nodes,
        vec![constant("w", &[3, 3, 1, 1]), mask],
        &["y"],
    ));
    let add = &quantized.nodes[1];
    assert!(
        !add.quantized && add.reason.unwrap().words().contains("infinite"),
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
    let bytes = || octet_onnx::write(&quantize_all_formats(&model).model.to_proto()).unwrap();
    assert_eq!(bytes(), bytes());
}
