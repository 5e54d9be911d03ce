//! Each rule finds its violation, and no other file breaks it: a sound file and a list of damages.
#![allow(clippy::unwrap_used)]

use octet_onnx::schema::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};
use octet_targets::{RunTarget, check};

/// A convolution of i8 values with i8 weights, whose result is added to another value; all fits
/// TensorRT and Arm.
fn sound() -> ModelProto {
    let node = NodeProto::new;
    let axis = || AttributeProto::int("axis", 0);
    let nodes = vec![
        node("QuantizeLinear", "xq", &["x", "x.s", "z"], &["x.q"]),
        node("DequantizeLinear", "xd", &["x.q", "x.s", "z"], &["x.d"]),
        node("DequantizeLinear", "wd", &["w", "w.s", "w.z"], &["w.d"]).with(axis()),
        node("Conv", "conv", &["x.d", "w.d", "b"], &["c"]),
        node("QuantizeLinear", "cq", &["c", "x.s", "z"], &["c.q"]),
        node("DequantizeLinear", "cd", &["c.q", "x.s", "z"], &["c.d"]),
        node("Add", "add", &["c.d", "x.d"], &["a"]),
        node("QuantizeLinear", "aq", &["a", "x.s", "z"], &["a.q"]),
        node("DequantizeLinear", "ad", &["a.q", "x.s", "z"], &["a.d"]),
        node("Concat", "concat", &["a.d", "x.d"], &["j"]).with(axis()),
        node("QuantizeLinear", "jq", &["j", "x.s", "z"], &["j.q"]),
        node("DequantizeLinear", "jd", &["j.q", "x.s", "z"], &["y"]),
    ];
    let constants = vec![
        TensorProto::from_f32("x.s", &[], &[0.5]),
        TensorProto::from_i8("z", &[], &[0]),
        TensorProto::from_i8("w", &[2, 1, 1, 1], &[-127, 127]),
        TensorProto::from_f32("w.s", &[2], &[0.25, 0.125]),
        TensorProto::from_i8("w.z", &[2], &[0, 0]),
        TensorProto::from_f32("b", &[2], &[0.0, 1.0]),
    ];
    let graph = GraphProto {
        node: nodes,
        initializer: constants,
        ..GraphProto::default()
    };
    ModelProto::from_graph(graph, 17)
}

/// Replaces a constant.
fn put(model: &mut ModelProto, tensor: TensorProto) {
    let constants = &mut model.graph.as_mut().unwrap().initializer;
    constants.retain(|old| old.name != tensor.name);
    constants.push(tensor);
}

fn node<'a>(model: &'a mut ModelProto, name: &str) -> &'a mut NodeProto {
    let nodes = &mut model.graph.as_mut().unwrap().node;
    nodes.iter_mut().find(|node| node.title() == name).unwrap()
}

/// Adds an int32 bias with these scales, read by the convolution.
fn bias(model: &mut ModelProto, scales: &[f32], zero_point: bool) {
    put(model, TensorProto::from_i32("b.q", &[2], &[1, 2]));
    put(model, TensorProto::from_f32("b.s", &[2], scales));
    put(model, TensorProto::from_i32("b.z", &[2], &[0, 0]));
    let inputs = ["b.q", "b.s", "b.z"];
    let count = if zero_point { 3 } else { 2 };
    let read = NodeProto::new("DequantizeLinear", "bd", &inputs[..count], &["b.d"]);
    let read = read.with(AttributeProto::int("axis", 0));
    model.graph.as_mut().unwrap().node.insert(0, read);
    node(model, "conv").input[2] = "b.d".into();
}

fn broken(model: &ModelProto, target: RunTarget) -> Vec<&'static str> {
    let mut rules: Vec<_> = check(model, "m_int8.onnx", target)
        .iter()
        .map(|found| found.rule)
        .collect();
    rules.dedup();
    rules
}

#[test]
fn the_sound_file_fulfils_all_rules_of_the_targets_it_is_for() {
    for target in [
        RunTarget::Any,
        RunTarget::OnnxRuntime,
        RunTarget::TransformersJs,
        RunTarget::TensorRt,
        RunTarget::OpenVino,
        RunTarget::ArmCmsis,
    ] {
        assert_eq!(broken(&sound(), target), [""; 0], "{target}");
    }
}

#[test]
fn each_damage_breaks_its_rule_only() {
    type Damage = (&'static str, RunTarget, &'static str, fn(&mut ModelProto));
    let damages: [Damage; 22] = [
        ("an old opset", RunTarget::TensorRt, "opset", |m| {
            m.opset_import[0].version = Some(8)
        }),
        ("a new opset", RunTarget::OnnxRuntime, "opset", |m| {
            m.opset_import[0].version = Some(27)
        }),
        ("a new format", RunTarget::OnnxRuntime, "ir-version", |m| {
            m.ir_version = Some(14)
        }),
        (
            "a foreign operator",
            RunTarget::OnnxRuntime,
            "domains",
            |m| node(m, "add").domain = Some("acme".into()),
        ),
        (
            "a contributed operator",
            RunTarget::TensorRt,
            "domains",
            |m| node(m, "concat").domain = Some("com.microsoft".into()),
        ),
        ("an integer operator", RunTarget::OpenVino, "pairs", |m| {
            node(m, "add").op_type = Some("MatMulInteger".into())
        }),
        (
            "u8 activations",
            RunTarget::TensorRt,
            "activation-type",
            |m| put(m, TensorProto::from_u8("z", &[], &[0])),
        ),
        ("i16 weights", RunTarget::OpenVino, "weight-type", |m| {
            put(m, TensorProto::from_i16("w", &[2, 1, 1, 1], &[1, 2]));
            put(m, TensorProto::from_i16("w.z", &[2], &[0, 0]));
        }),
        (
            "a shifted activation",
            RunTarget::TensorRt,
            "activation-zero-point",
            |m| put(m, TensorProto::from_i8("z", &[], &[3])),
        ),
        (
            "a shifted weight",
            RunTarget::ArmCmsis,
            "weight-zero-point",
            |m| put(m, TensorProto::from_i8("w.z", &[2], &[0, 1])),
        ),
        (
            "the lowest weight",
            RunTarget::ArmCmsis,
            "weight-range",
            |m| put(m, TensorProto::from_i8("w", &[2, 1, 1, 1], &[-128, 1])),
        ),
        (
            "scales of activations",
            RunTarget::OnnxRuntime,
            "activation-scale",
            |m| {
                put(m, TensorProto::from_f32("x.s", &[2], &[0.5, 0.5]));
            },
        ),
        (
            "scales along another axis",
            RunTarget::TensorRt,
            "channel-axis",
            |m| node(m, "wd").set(AttributeProto::int("axis", 1)),
        ),
        ("an int32 bias", RunTarget::TensorRt, "float-bias", |m| {
            bias(m, &[0.125, 0.0625], false)
        }),
        (
            "a bias with a zero point",
            RunTarget::OnnxRuntimeWeb,
            "bias-zero-point",
            |m| bias(m, &[0.125, 0.0625], true),
        ),
        (
            "a bias of another scale",
            RunTarget::ArmCmsis,
            "bias-scale",
            |m| bias(m, &[0.125, 0.125], false),
        ),
        ("one float input", RunTarget::TensorRt, "add-inputs", |m| {
            node(m, "add").input[1] = "x".into()
        }),
        ("joined scales", RunTarget::ArmCmsis, "one-scale", |m| {
            put(m, TensorProto::from_f32("y.s", &[], &[0.25]));
            node(m, "jq").input[1] = "y.s".into();
            node(m, "jd").input[1] = "y.s".into();
        }),
        (
            "a free scale of a Sigmoid",
            RunTarget::ArmCmsis,
            "output-scale",
            |m| {
                let add = node(m, "add");
                add.op_type = Some("Sigmoid".into());
                add.input.truncate(1);
            },
        ),
        (
            "signed products",
            RunTarget::OnnxRuntime,
            "conv-integer",
            |m| {
                let add = node(m, "add");
                add.op_type = Some("ConvInteger".into());
                add.input = vec!["x.q".into(), "w".into()];
            },
        ),
        (
            "blocks of a vector",
            RunTarget::OnnxRuntimeWeb,
            "block-axes",
            |m| {
                put(m, TensorProto::from_i8("w", &[2], &[1, 2]));
                node(m, "wd").set(AttributeProto::int("block_size", 1));
            },
        ),
        ("a pair", RunTarget::CoreMl, "no-pairs", |_| ()),
    ];
    for (what, target, rule, damage) in damages {
        let mut model = sound();
        damage(&mut model);
        assert_eq!(broken(&model, target), [rule], "{what}");
    }
}

#[test]
fn rules_of_qnn_find_their_violations() {
    let mut model = sound();
    put(&mut model, TensorProto::from_u8("z", &[], &[0]));
    assert_eq!(broken(&model, RunTarget::Qnn), [""; 0]);
    let mut mixed = model.clone();
    put(&mut mixed, TensorProto::from_u16("wide", &[], &[0]));
    node(&mut mixed, "aq").input[2] = "wide".into();
    assert_eq!(broken(&mixed, RunTarget::Qnn), ["one-type"]);
    let mut fine = model.clone();
    put(&mut fine, TensorProto::from_f32("x.s", &[], &[1e-8]));
    assert_eq!(broken(&fine, RunTarget::Qnn), ["least-range"]);
}

#[test]
fn names_of_files_are_those_of_transformers_js() {
    let names = |file: &str| check(&sound(), file, RunTarget::TransformersJs).len();
    assert_eq!(
        ["model.onnx", "a_int8.onnx", "a_q4f16.onnx", "a_fp16.onnx"].map(names),
        [0; 4]
    );
    assert_eq!(
        ["a.onnx", "a_weights.onnx", "model_small.onnx"].map(names),
        [1; 3]
    );
}

#[test]
fn graphs_inside_nodes_are_checked_with_the_constants_around_them() {
    let mut model = sound();
    let graph = model.graph.as_mut().unwrap();
    let inner = GraphProto {
        node: vec![NodeProto::new(
            "DequantizeLinear",
            "inside",
            &["w", "w.s", "u"],
            &["i"],
        )],
        initializer: vec![TensorProto::from_u8("u", &[], &[0])],
        ..GraphProto::default()
    };
    let mut branch = AttributeProto::int("then_branch", 0);
    branch.g = Some(inner);
    graph
        .node
        .push(NodeProto::new("If", "if", &["cond"], &["r"]).with(branch));
    let found = check(&model, "m.onnx", RunTarget::TensorRt);
    assert!(found.iter().any(|one| one.place == "inside"), "{found:?}");
}

#[test]
fn every_rule_and_source_is_in_the_documents() {
    let page = include_str!("../../../docs/targets.md");
    for target in RunTarget::ALL {
        assert!(
            page.contains(&format!("## {target}\n")) || target == RunTarget::Any,
            "{target}"
        );
        for rule in target.rules() {
            let words = rule.text.split_whitespace().collect::<Vec<_>>().join(" ");
            let row = format!("| `{}` | {words} | {} |", rule.name, rule.source);
            assert!(page.contains(&row), "docs/targets.md lacks: {row}");
        }
    }
}
