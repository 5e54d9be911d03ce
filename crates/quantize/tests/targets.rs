//! Settings for a target: what they decide, what they refuse, and that results fulfil the rules.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use octet_graph::Model;
use octet_onnx::schema::{AttributeProto, NodeProto};
use octet_quantize::{ActivationRanges, Plan, Quantized, Scheme, Settings, apply};
use octet_stats::Range;
use octet_targets::{RunTarget, check};
use octet_test_models::{assert_valid, constant, model, node};

fn settings(text: &str) -> Settings {
    Settings::from_value(serde_json::from_str(text).unwrap()).unwrap()
}

fn refusal(text: &str) -> String {
    let read = Settings::from_value(serde_json::from_str(text).unwrap());
    read.unwrap_err().to_string()
}

/// Two convolutions, of which one is added to the input, a Sigmoid, and a Concat of values with
/// different ranges.
fn branches() -> Model {
    let concat = |node: NodeProto| node.with(AttributeProto::int("axis", 1));
    model(
        vec![
            node("Conv", &["x", "w", "b"], "c"),
            node("Add", &["c", "x"], "a"),
            node("Sigmoid", &["a"], "s"),
            node("Mul", &["s", "x"], "m"),
            concat(node("Concat", &["s", "m"], "j")),
            node("Conv", &["m", "v", "b"], "y"),
            node("Relu", &["j"], "z"),
        ],
        vec![
            constant("w", &[3, 3, 1, 1]),
            constant("v", &[3, 3, 1, 1]),
            constant("b", &[3]),
        ],
        &["y", "z"],
    )
}

fn quantized(model: &Model, settings: &Settings) -> Quantized {
    let names = Plan::observed_values(model).unwrap();
    let ranges: BTreeMap<String, Range> = names
        .into_iter()
        .zip(1..)
        .map(|(name, place)| (name, Range::new(-0.5 * place as f32, 0.25 * place as f32)))
        .collect();
    let ranges = settings
        .needs_samples()
        .then_some(ActivationRanges::Provided(&ranges));
    let quantized = apply(model, settings, ranges).unwrap();
    assert_valid(&quantized.model);
    quantized
}

#[test]
fn results_fulfil_the_rules_of_their_target() {
    for target in RunTarget::ALL {
        let settings = settings(&format!(
            r#"{{ "target": "{target}", "method": "minmax" }}"#
        ));
        let made = quantized(&branches(), &settings);
        let found = check(&made.model.to_proto(), "m_int8.onnx", target);
        assert_eq!(found, [], "{target}");
        let noted = made
            .notes
            .iter()
            .any(|note| note.contains("docs/targets.md"));
        assert_eq!(
            noted,
            target != RunTarget::Any,
            "{target}: {:?}",
            made.notes
        );
    }
}

#[test]
fn an_add_beside_a_float_input_reads_floats_for_tensorrt() {
    let text =
        r#"{ "target": "tensorrt", "method": "minmax", "tensors": { "c": { "float": true } } }"#;
    let made = quantized(&branches(), &settings(text));
    assert_eq!(
        check(&made.model.to_proto(), "m.onnx", RunTarget::TensorRt),
        []
    );
    let nodes = made.model.graph.nodes();
    let add = nodes.iter().find(|node| node.is("Add")).unwrap();
    assert_eq!(add.input, ["c", "x"]);
}

#[test]
fn a_concat_for_arm_converts_inputs_of_other_scales() {
    let made = quantized(
        &branches(),
        &settings(r#"{ "target": "arm-cmsis", "method": "minmax" }"#),
    );
    let nodes = made.model.graph.nodes();
    let concat = nodes.iter().find(|node| node.is("Concat")).unwrap();
    assert!(
        concat.input.iter().any(|name| name.contains("_converted_")),
        "{:?}",
        concat.input
    );
}

#[test]
fn defaults_take_the_values_of_the_target_once() {
    for target in RunTarget::ALL {
        let fitted = settings(&format!(r#"{{ "target": "{target}" }}"#));
        assert_eq!(fitted.clone().for_target().unwrap(), fitted, "{target}");
        let document = serde_json::to_value(&fitted).unwrap();
        assert_eq!(Settings::from_value(document).unwrap(), fitted, "{target}");
    }
    assert_eq!(
        settings(r#"{ "target": "coreml" }"#).scheme,
        Scheme::Float16
    );
    assert_eq!(settings(r#"{ "target": "any" }"#), Settings::default());
}

#[test]
fn settings_against_a_target_are_refused() {
    for (text, words) in [
        (
            r#"{ "target": "tensorrt", "activations": { "type": "u8" } }"#,
            "activations, type: u8 contradicts the target tensorrt",
        ),
        (
            r#"{ "target": "tensorrt", "activations": { "symmetric": false } }"#,
            "activations, symmetric: false",
        ),
        (
            r#"{ "target": "qnn", "activations": { "minimum_range": 0.00001 } }"#,
            "takes 0.0001 and more",
        ),
        (
            r#"{ "target": "qnn", "by_operator": { "Add": { "activations": { "type": "u16" } } } }"#,
            "8 bits, as elsewhere",
        ),
        (r#"{ "target": "qnn", "fine_first": 3 }"#, "fine_first: 3"),
        (
            r#"{ "target": "openvino", "tensors": { "x": { "type": "i16" } } }"#,
            "tensor `x`: i16",
        ),
        (
            r#"{ "target": "coreml", "scheme": "blocks" }"#,
            "takes float16",
        ),
        (
            r#"{ "target": "arm-cmsis", "format": "qoperator" }"#,
            "LiteRT, 8-bit quantization specification",
        ),
    ] {
        let refusal = refusal(text);
        assert!(refusal.contains(words), "{refusal}");
        assert!(refusal.contains("choose"), "{refusal}");
    }
}
