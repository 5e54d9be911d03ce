//! Ranges of values that differ from their own observed range.

use octet_graph::Model;
use octet_onnx::schema::*;
use octet_quantize::{ActivationRanges, Plan, Quantized, Settings, apply};
use octet_stats::{CalibrationStatistics, Method, Range, TensorStatistics};
use serde_json::{Value, json};

use octet_test_models::{constant, model, node, producer};

/// Quantizes the model by these settings, after a calibration that observed these ranges, and -1 to
/// 2 for other values.
pub fn quantized(
    model: &Model,
    settings: Value,
    ends: &[(&str, [f32; 2])],
    method: Method,
) -> Quantized {
    let settings = Settings::from_value(settings).unwrap();
    let seen: CalibrationStatistics = Plan::observed_values(model)
        .unwrap()
        .into_iter()
        .map(|name| {
            let ends = ends.iter().find(|(value, _)| *value == name);
            let mut seen = TensorStatistics::new();
            seen.observe(&ends.map_or([-1.0, 2.0], |(_, ends)| *ends));
            (name, seen)
        })
        .collect();
    apply(
        model,
        &settings,
        Some(ActivationRanges::Observed(&seen, method)),
    )
    .unwrap()
}

/// The ends of a value's represented range, in hundredths.
pub fn ends(quantized: &Quantized, value: &str) -> [i32; 2] {
    let mut tensors = quantized.tensors.iter();
    let result = tensors.find(|tensor| tensor.name == value).unwrap();
    [result.min, result.max].map(|end| (end * 100.0).round() as i32)
}

fn convs(between: Vec<NodeProto>, last: &str, outputs: &[&str]) -> Model {
    let mut nodes = vec![node("Conv", &["x", "w"], "a")];
    nodes.extend(between);
    nodes.push(node("Conv", &[last, "w"], "y"));
    let number = |name: &str, value: f32| TensorProto::from_f32(name, &[], &[value]);
    let constants = vec![
        constant("w", &[3, 3, 1, 1]),
        number("low", 0.0),
        number("high", 6.0),
    ];
    model(nodes, constants, outputs)
}

#[test]
fn a_model_output_read_by_a_relu_keeps_its_negative_range() {
    let seen = [("a", [-20.0, 10.0]), ("r", [0.0, 10.0])];
    for clamp in [
        node("Relu", &["a"], "r"),
        node("Clip", &["a", "low", "high"], "r"),
    ] {
        for (outputs, wanted) in [(&["y", "a"][..], [-2000, 1000]), (&["y"], [0, 1000])] {
            let model = convs(vec![clamp.clone()], "r", outputs);
            // The Relu is not folded, so `a` has a scale of its own.
            let settings = json!({ "guard": false, "tensors": { "r": { "symmetric": true } } });
            let quantized_model = quantized(&model, settings, &seen, Method::MinMax);
            let [low, high] = ends(&quantized_model, "a");
            assert!(
                (low - wanted[0]).abs() < 12 && (high - wanted[1]).abs() < 12,
                "{outputs:?}: {low} {high}"
            );
        }
    }
}

#[test]
fn a_clamp_with_a_float_output_is_not_folded() {
    let model = convs(
        vec![node("Relu", &["a"], "r"), node("Exp", &["r"], "e")],
        "e",
        &["y"],
    );
    let settings = json!({ "by_node": { "r": { "float_output": true } } });
    let quantized_model = quantized(&model, settings, &[], Method::MinMax);
    assert!(producer(&quantized_model.model, "r").is("Relu"));
    assert_eq!(producer(&quantized_model.model, "e").input, ["r"]);
}

#[test]
fn a_softmax_has_the_range_zero_to_one_in_every_form() {
    let model = model(
        vec![
            node("MatMul", &["x", "m"], "a"),
            node("Softmax", &["a"], "p"),
            node("MatMul", &["p", "m"], "y"),
        ],
        vec![constant("m", &[3, 3])],
        &["y"],
    );
    let seen = [("p", [0.0, 0.25])];
    let float = json!({ "by_operator": { "Softmax": { "float": true } } });
    for settings in [json!({}), float.clone(), json!({ "operators": ["MatMul"] })] {
        let quantized_model = quantized(&model, settings, &seen, Method::MinMax);
        assert_eq!(ends(&quantized_model, "p"), [0, 100]);
    }
    // ONNX Runtime's quantizer uses the observed range of a float Softmax, and so do its methods
    // here.
    let its = Method::OrtEntropy {
        bins: 128,
        levels: 128,
    };
    assert_eq!(ends(&quantized(&model, float, &seen, its), "p"), [0, 25]);
    assert_eq!(
        ends(&quantized(&model, json!({}), &seen, its), "p"),
        [0, 100]
    );
}

#[test]
fn either_of_two_clamps_in_a_row_may_stay() {
    let between = vec![
        node("Relu", &["a"], "r"),
        node("Clip", &["r", "low", "high"], "c"),
        node("Relu", &["c"], "s"),
    ];
    let model = convs(between, "s", &["y"]);
    let seen = [("r", [0.0, 9.0]), ("c", [0.0, 6.0]), ("s", [0.0, 5.0])];
    for (settings, value, wanted) in [
        (json!({ "activations": { "symmetric": true } }), "a", 900),
        (json!({ "operators": ["Conv"] }), "a", 900),
        (
            json!({ "by_operator": { "Clip": { "float": true } } }),
            "r",
            600,
        ),
        (json!({ "by_node": { "s": { "float": true } } }), "c", 500),
        (json!({}), "s", 500),
    ] {
        let said = settings.to_string();
        let quantized_model = quantized(&model, settings, &seen, Method::MinMax);
        let [_, high] = ends(&quantized_model, value);
        assert!((high - wanted).abs() < 12, "{said}: {high}");
    }
}

#[test]
fn data_movement_is_quantized_alone_on_request() {
    let model = model(
        vec![
            node("MaxPool", &["x"], "p"),
            node("Transpose", &["p"], "t"),
            node("MatMul", &["t", "m"], "y"),
        ],
        vec![constant("m", &[3, 3])],
        &["y"],
    );
    let always = json!({ "by_name": { "": { "always": true } } });
    let quantized_model = quantized(&model, always, &[("x", [-3.0, 3.0])], Method::MinMax);
    assert!(quantized_model.nodes.iter().all(|node| node.quantized));
    assert_eq!(
        quantized_model.ranges.get("x"),
        Some(&Range::new(-3.0, 3.0))
    );
}

#[test]
fn a_note_tells_of_sums_that_may_saturate_in_onnx_runtime() {
    let of = |settings: Value| {
        let notes = quantized(&convs(vec![], "a", &["y"]), settings, &[], Method::MinMax).notes;
        let note = notes.into_iter().find(|note| note.contains("VNNI"));
        note.map(|note| note.contains("sums in 2 layers"))
    };
    for settings in [
        json!({}),
        json!({ "activations": { "type": "i8" } }),
        json!({ "format": "qoperator" }),
        json!({ "scheme": "dynamic" }),
    ] {
        assert_eq!(of(settings.clone()), Some(true), "{settings}");
    }
    for settings in [
        json!({ "weights": { "type": "u8" } }),
        json!({ "weights": { "reduce_range": true } }),
        json!({ "activations": { "type": "u16" } }),
        json!({ "scheme": "weights" }),
        json!({ "format": "simulated" }),
    ] {
        assert_eq!(of(settings.clone()), None, "{settings}");
    }
}

#[test]
fn the_ranges_of_a_result_suffice_for_the_same_settings() {
    let mut join = node("Concat", &["a", "b"], "c");
    join.attribute.push(AttributeProto::int("axis", 1));
    let nodes = vec![
        node("Conv", &["x", "w"], "a"),
        node("Conv", &["x", "w"], "b"),
        join,
        node("Conv", &["c", "v"], "y"),
    ];
    let constants = vec![constant("w", &[3, 3, 1, 1]), constant("v", &[3, 6, 1, 1])];
    let model = model(nodes, constants, &["y"]);
    for (settings, method) in [
        (json!({}), Method::MinMax),
        (json!({ "guard": false }), Method::MinMax),
        (
            json!({ "guard": false, "bias_correction": false }),
            Method::Auto,
        ),
        (
            json!({ "tensors": { "c": { "type": "u16" } } }),
            Method::MinMax,
        ),
    ] {
        let first = quantized(&model, settings.clone(), &[("c", [-8.0, 8.0])], method);
        assert!(first.ranges.contains_key("a"), "{:?}", first.ranges);
        let provided = ActivationRanges::Provided(&first.ranges);
        let settings = Settings::from_value(settings).unwrap();
        let again = apply(&model, &settings, Some(provided)).unwrap();
        assert_eq!(again.ranges, first.ranges);
        let bytes = |made: &Quantized| octet_onnx::write(&made.model.to_proto()).unwrap();
        assert!(bytes(&again) == bytes(&first), "{settings:?}");
    }
}
