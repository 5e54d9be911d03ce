//! Settings take effect, or a note says why they don't.

use octet_graph::Model;
use octet_onnx::schema::TensorProto;
use octet_quantize::Quantized;
use octet_stats::Method;
use serde_json::{Value, json};

use crate::ranges::{ends, quantized};
use octet_test_models::{constant, model, node};

///  x → Conv → a → Relu → r → Clip → c → MaxPool → p → Conv → s → Softmax → y; `e` stays float
fn small() -> Model {
    let number = |name: &str, value: f32| TensorProto::from_f32(name, &[], &[value]);
    let nodes = vec![
        node("Conv", &["x", "w", "b"], "a"),
        node("Relu", &["a"], "r"),
        node("Clip", &["r", "low", "high"], "c"),
        node("MaxPool", &["c"], "p"),
        node("Conv", &["p", "w"], "s"),
        node("Softmax", &["s"], "y"),
        node("Exp", &["s"], "e"),
    ];
    let constants = vec![
        constant("w", &[3, 3, 1, 1]),
        constant("b", &[3]),
        number("low", 0.0),
        number("high", 6.0),
    ];
    model(nodes, constants, &["y", "e"])
}

/// Quantizes by these settings; keeps only notes about tensors.
fn quantize_small(settings: Value) -> Quantized {
    let mut result = quantized(&small(), settings, &[("c", [0.0, 2.0])], Method::MinMax);
    result.notes.retain(|note| !note.contains("VNNI"));
    result
}

#[test]
fn tensor_settings_without_effect_are_noted_with_the_reason() {
    for (name, text, reason) in [
        ("a", json!({ "type": "u16" }), "set it for `c`"),
        ("r", json!({ "method": "mse" }), "set it for `c`"),
        ("b", json!({ "type": "i8" }), "32 bits"),
        ("b", json!({ "scale": 0.5 }), "32 bits"),
        ("e", json!({ "type": "i8" }), "stays float"),
        (
            "w",
            json!({ "type": "u8", "method": "entropy" }),
            "`method` (",
        ),
        ("x", json!({ "per_channel": true }), "`per_channel` ("),
        ("y", json!({ "method": "mse" }), "from 0 to 1"),
        (
            "x",
            json!({ "method": "mse", "range": [-1, 1] }),
            "is set too",
        ),
    ] {
        let notes = quantize_small(json!({ "guard": false, "tensors": { name: text } })).notes;
        let about = format!("the tensor `{name}`");
        let [note] = notes.as_slice() else {
            panic!("{name}: {notes:?}");
        };
        assert!(note.contains(&about) && note.contains(reason), "{note}");
    }
    for (name, text) in [
        ("c", json!({ "type": "u16", "method": "mse" })),
        ("w", json!({ "method": "mse" })),
        ("p", json!({ "method": "mse" })),
        ("w", json!({ "scale": 0.1, "per_channel": false })),
        ("y", json!({ "range": [0, 2] })),
        ("e", json!({})),
    ] {
        let notes = quantize_small(json!({ "guard": false, "tensors": { name: text } })).notes;
        assert_eq!(notes, [""; 0], "{name}");
    }
}

fn element(quantized: &Quantized, value: &str) -> &'static str {
    let mut tensors = quantized.tensors.iter();
    tensors
        .find(|tensor| tensor.name == value)
        .unwrap()
        .element
        .name()
}

#[test]
fn settings_of_folded_nodes_apply_to_the_layers_output() {
    for (settings, wanted) in [
        (
            json!({ "by_operator": { "Relu": { "activations": { "type": "u16" } } } }),
            "uint16",
        ),
        (
            json!({ "by_node": { "c": { "activations": { "type": "u16" } } } }),
            "uint16",
        ),
        (
            json!({ "by_node": { "a": { "activations": { "type": "u16" } } } }),
            "uint16",
        ),
        // The narrower setting wins, in any order; of two equal ones the later wins.
        (
            json!({
                "by_name": { "": { "activations": { "type": "u8" } } },
                "by_node": { "a": { "activations": { "type": "u16" } } }
            }),
            "uint16",
        ),
        (
            json!({ "by_node": {
                "a": { "activations": { "type": "u16" } }, "c": { "activations": { "type": "i8" } }
            } }),
            "int8",
        ),
        (json!({}), "uint8"),
    ] {
        let text = settings.to_string();
        let result = quantize_small(settings);
        assert_eq!(element(&result, "c"), wanted, "{text}");
        let folded = |name: &str| result.tensors.iter().all(|tensor| tensor.name != name);
        assert!(folded("a") && folded("r"), "{text}");
    }
    // A Relu that can't be folded stays a node.
    let symmetric = json!({ "by_operator": { "Relu": { "activations": { "symmetric": true } } } });
    let graph = quantize_small(symmetric).model.graph;
    assert!(graph.nodes().iter().any(|node| node.is("Relu")));
}

#[test]
fn a_method_for_a_tensor_gives_it_a_scale_of_its_own() {
    let shared = |settings: Value| {
        let result = quantized(
            &small(),
            settings,
            &[("c", [0.0, 2.0]), ("p", [0.0, 1.0])],
            Method::MinMax,
        );
        let own = result
            .tensors
            .iter()
            .any(|tensor| tensor.name == "p" && tensor.max < 1.5);
        (!own, ends(&result, "c"))
    };
    let min_max = json!({ "method": "minmax" });
    for (settings, wanted) in [
        (json!({}), true),
        (json!({ "method": "mse" }), true),
        // Set for the Conv, or for both.
        (
            json!({ "method": "mse", "by_operator": { "Conv": { "activations": min_max } } }),
            true,
        ),
        (
            json!({ "method": "mse", "by_name": { "": { "activations": min_max } } }),
            true,
        ),
        (
            json!({ "method": "mse", "tensors": { "p": min_max } }),
            false,
        ),
        (
            json!({ "method": "mse", "by_node": { "p": { "activations": min_max } } }),
            false,
        ),
    ] {
        let text = settings.to_string();
        let (is_shared, ends) = shared(settings);
        assert_eq!(is_shared, wanted, "{text}: {ends:?}");
    }
}
