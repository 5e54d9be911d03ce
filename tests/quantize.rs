//! What quantization promises on graphs as they come: constants shared in every way, outputs inside, subgraphs,
//! slots left empty. The result is always a valid graph, and every node says what became of it.

#[path = "quantize/done.rs"]
mod done;
mod graphs;

use std::collections::{BTreeMap, HashSet};

use done::done;
use graphs::{choice, constant, maker, model, node, value};
use octet::calibrate::Range;
use octet::onnx::schema::*;
use octet::quantize::{
    ElementType, LayerSettings, Operators, Plan, QuantizeError, Quantized, Ranges, Settings,
    TensorSettings, apply, quantize,
};

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
    let (choice, yes) = choice("Add", "y");
    let nodes = vec![
        node("Conv", &["x", "w"], "inner"),
        node("Relu", &["inner"], "z"),
        choice.clone(),
    ];
    let quantized = done(&model(
        nodes,
        vec![constant("w", &[3, 3, 1, 1]), yes],
        &["y", "z"],
    ));
    assert_eq!(maker(&quantized, "y").attribute, choice.attribute);
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
    let quantized = done(&model(nodes, vec![constant("w", &[3, 3])], &["y"]));
    let scale = quantized.model.graph.initializers.get("w_scale").unwrap();
    assert_eq!(scale.element_count().unwrap(), 1);
    assert!(quantized.nodes.iter().all(|n| n.quantized));
}

#[test]
fn the_names_that_are_given_are_free() {
    // The copy of a shared bias would be called `b0`, what is made of it `b_quantized`: both are there.
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
    let quantized = done(&model(nodes, constants, &["y"]));
    let conv = quantized.model.graph.nodes.iter().filter(|n| n.is("Conv"));
    let biases: HashSet<&String> = conv.map(|n| &n.input[2]).collect();
    assert_eq!(biases.len(), 3);
}

#[test]
fn scalars_are_quantized_with_one_scale() {
    let scalar = |name: &str, value: f32| TensorProto::from_f32(name, &[], &[value]);
    let nodes = vec![
        node("Mul", &["x", "half"], "a"),
        node("Add", &["nothing", "a"], "y"),
    ];
    let constants = vec![scalar("half", 0.5), scalar("nothing", 0.0)];
    let quantized = done(&model(nodes, constants, &["y"]));
    for name in ["half_quantized", "half_scale", "nothing_scale"] {
        let tensor = quantized.model.graph.initializers.get(name).unwrap();
        assert!(tensor.dims.is_empty(), "{name} is no scalar");
    }
    let integer = quantized.model.graph.initializers.get("half_quantized");
    assert_eq!(integer.unwrap().to_i64().unwrap(), [255]);
}

#[test]
fn loops_stay_as_they_are_and_the_choices_say_why() {
    for operator in ["If", "Loop", "Scan"] {
        let body = GraphProto {
            name: Some("body".into()),
            node: vec![node("MatMul", &["folded", "w"], "taken")],
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
        // The Relu is folded into the Conv: what the subgraph reads has the Conv as its maker now.
        let nodes = vec![
            node("Conv", &["x", "w"], "a"),
            node("Relu", &["a"], "folded"),
            inner.clone(),
        ];
        let quantized = done(&model(nodes, vec![constant("w", &[3, 3, 1, 1])], &["y"]));
        assert_eq!(maker(&quantized, "y").attribute, inner.attribute);
        let choice = quantized.nodes.iter().find(|n| n.operator == operator);
        let reason = choice.and_then(|choice| choice.reason.as_deref());
        assert!(
            reason.is_some_and(|r| r.contains("subgraphs")),
            "{reason:?}"
        );
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

#[test]
fn a_zero_point_that_no_integer_of_the_type_is_is_refused() {
    let whole = model(
        vec![node("Conv", &["x", "w"], "y")],
        vec![constant("w", &[3, 3, 1, 1])],
        &["y"],
    );
    let planned = |tensor: &str, element: ElementType, zero_point: i32| {
        let own = TensorSettings {
            element: Some(element),
            scale: Some(0.5),
            zero_point: Some(zero_point),
            ..TensorSettings::default()
        };
        let settings = Settings {
            tensors: [(tensor.to_string(), own)].into(),
            ..Settings::default()
        };
        Plan::new(&whole, &settings)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    for (tensor, element, inside, outside) in [
        ("x", ElementType::U8, [0, 255], [-1, 256]),
        ("y", ElementType::I8, [-128, 127], [-129, 128]),
        ("w", ElementType::I4, [-8, 7], [-9, 8]),
        ("x", ElementType::U16, [0, 65_535], [-1, 65_536]),
    ] {
        for zero_point in inside {
            assert_eq!(planned(tensor, element, zero_point), Ok(()));
        }
        for zero_point in outside {
            let error = planned(tensor, element, zero_point).unwrap_err();
            assert!(
                error.contains(&format!("`{tensor}` the zero point {zero_point}")),
                "{error}"
            );
        }
    }
}

#[test]
fn operators_that_nobody_knows_are_refused_and_those_that_are_absent_are_noted() {
    let whole = model(
        vec![node("Conv", &["x", "w"], "y")],
        vec![constant("w", &[3, 3, 1, 1])],
        &["y"],
    );
    let ranges: BTreeMap<String, Range> = ["x", "y"]
        .map(|name| (name.into(), Range::new(-1.0, 2.0)))
        .into();
    let applied = |settings: Settings| apply(&whole, &settings, Some(Ranges::Given(&ranges)));
    let by_operator = |name: &str| Settings {
        by_operator: [(name.to_string(), LayerSettings::default())].into(),
        ..Settings::default()
    };
    let listed = |name: &str| Settings {
        operators: Operators::Only(vec!["Conv".into(), name.into()]),
        ..Settings::default()
    };
    for settings in [by_operator("Matmul"), listed("MatMull")] {
        let error = applied(settings).unwrap_err().to_string();
        assert!(error.contains("did you mean `MatMul`?"), "{error}");
    }
    for settings in [
        by_operator("BatchNormalization"),
        listed("com.microsoft::Unheard"),
    ] {
        let notes = applied(settings).unwrap().notes;
        assert!(
            notes.iter().any(|note| note.contains("had no effect")),
            "{notes:?}"
        );
    }
    assert!(applied(by_operator("Conv")).unwrap().notes.is_empty());
}

/// The nodes of a layer normalization of `x`, and its constants.
fn layer_norm(twice: bool) -> (Vec<NodeProto>, Vec<TensorProto>) {
    let mean = |input: &str, output: &str| {
        let mut mean = node("ReduceMean", &[input], output);
        mean.attribute = vec![AttributeProto::ints("axes", &[-1])];
        mean
    };
    let again = if twice { "again" } else { "apart" };
    let mut nodes = vec![mean("x", "mean"), node("Sub", &["x", "mean"], "apart")];
    if twice {
        nodes.push(node("Sub", &["x", "mean"], "again"));
    }
    nodes.extend([
        node("Pow", &[again, "two"], "squared"),
        mean("squared", "variance"),
        node("Add", &["variance", "epsilon"], "more"),
        node("Sqrt", &["more"], "deviation"),
        node("Div", &["apart", "deviation"], "normal"),
        node("Mul", &["normal", "gamma"], "scaled"),
        node("Add", &["scaled", "beta"], "y"),
    ]);
    let number = |name: &str, value: f32| TensorProto::from_f32(name, &[], &[value]);
    let (gamma, beta) = (constant("gamma", &[4]), constant("beta", &[4]));
    (
        nodes,
        vec![number("two", 2.0), number("epsilon", 1e-5), gamma, beta],
    )
}

fn activations(quantized: &Quantized) -> Vec<&str> {
    quantized
        .tensors
        .iter()
        .map(|tensor| tensor.name.as_str())
        .collect()
}

#[test]
fn a_layer_normalization_written_as_a_chain_is_one_operator() {
    for twice in [false, true] {
        let (nodes, constants) = layer_norm(twice);
        let count = nodes.len();
        let quantized = done(&model(nodes, constants, &["y"]));
        assert_eq!(activations(&quantized), ["x", "y"]);
        let inside = quantized.nodes.iter().filter(|node| !node.quantized);
        let reasons: Vec<&str> = inside.filter_map(|node| node.reason.as_deref()).collect();
        assert_eq!(reasons.len(), count - 1);
        assert!(
            reasons
                .iter()
                .all(|reason| reason.contains("layer normalization")),
            "{reasons:?}"
        );
    }
    // With a value inside that others use, it is what it says: nine operators.
    let (nodes, constants) = layer_norm(false);
    let quantized = done(&model(nodes, constants, &["y", "variance"]));
    assert!(activations(&quantized).contains(&"scaled"));
}

#[test]
fn a_gelu_written_as_a_chain_is_one_operator_wherever_its_half_stands() {
    let number = |name: &str, value: f32| TensorProto::from_f32(name, &[], &[value]);
    let begin = [
        node("Div", &["x", "root"], "a"),
        node("Erf", &["a"], "b"),
        node("Add", &["b", "one"], "c"),
    ];
    for end in [
        [
            node("Mul", &["x", "c"], "d"),
            node("Mul", &["d", "half"], "y"),
        ],
        [
            node("Mul", &["c", "half"], "d"),
            node("Mul", &["x", "d"], "y"),
        ],
        [
            node("Mul", &["x", "half"], "d"),
            node("Mul", &["d", "c"], "y"),
        ],
    ] {
        let nodes: Vec<_> = begin.iter().cloned().chain(end).collect();
        let constants = [
            ("root", std::f32::consts::SQRT_2),
            ("one", 1.0),
            ("half", 0.5),
        ]
        .map(|(name, value)| number(name, value));
        let quantized = done(&model(nodes, constants.into(), &["y"]));
        assert_eq!(activations(&quantized), ["x", "y"]);
    }
}

#[test]
fn a_chain_follows_the_settings() {
    let (nodes, constants) = layer_norm(false);
    let whole = model(nodes, constants, &["y"]);
    let quantized = |settings: Settings| {
        let plan = Plan::new(&whole, &settings);
        plan.map(|plan| {
            plan.choices()
                .iter()
                .filter(|choice| choice.quantized)
                .count()
        })
    };
    let only = |name: &str| Settings {
        operators: Operators::Only(vec![name.into()]),
        ..Settings::default()
    };
    assert_eq!(quantized(only("LayerNormalization")).unwrap(), 1);
    // By its own operators it is quantized where the settings ask for these, and observed for it.
    assert_eq!(quantized(only("Mul")).unwrap(), 1);
    assert_eq!(
        quantized(Settings {
            operators: Operators::OnnxRuntime,
            ..Settings::default()
        })
        .unwrap(),
        3
    );
    let observed = Plan::observable(&whole).unwrap();
    assert!(
        ["x", "normal", "scaled", "y"]
            .iter()
            .all(|name| observed.iter().any(|seen| seen == name))
    );
    // One of its nodes kept float keeps all of it.
    let kept = Settings {
        float: vec!["squared".into()],
        ..Settings::default()
    };
    assert!(matches!(
        quantized(kept),
        Err(QuantizeError::Nothing { .. })
    ));
}
