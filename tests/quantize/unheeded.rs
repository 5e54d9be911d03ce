//! What is said in the settings is done, or a note says why it isn't.

use octet::calibrate::Method;
use octet::graph::Model;
use octet::onnx::schema::TensorProto;
use octet::quantize::Quantized;
use serde_json::{Value, json};

use crate::graphs::{constant, model, node};
use crate::ranges::{ends, quantized};

/// x → Conv → a → Relu → r → Clip → c → MaxPool → p → Conv → s → Softmax → y, and `e` beside that is never integers
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

/// With the notes that are about tensors.
fn made(settings: Value) -> Quantized {
    let mut made = quantized(&small(), settings, &[("c", [0.0, 2.0])], Method::MinMax);
    made.notes.retain(|note| !note.contains("VNNI"));
    made
}

#[test]
fn what_has_no_effect_on_a_tensor_is_noted_with_the_reason() {
    for (name, said, reason) in [
        ("a", json!({ "type": "u16" }), "say it of `c`"),
        ("r", json!({ "method": "mse" }), "say it of `c`"),
        ("b", json!({ "type": "i8" }), "32 bits"),
        ("b", json!({ "scale": 0.5 }), "32 bits"),
        ("e", json!({ "type": "i8" }), "stays float"),
        (
            "w",
            json!({ "type": "u8", "method": "entropy" }),
            "`method`, as",
        ),
        ("x", json!({ "per_channel": true }), "`per_channel`, as"),
        ("y", json!({ "method": "mse" }), "from 0 to 1"),
        (
            "x",
            json!({ "method": "mse", "range": [-1, 1] }),
            "given with it",
        ),
    ] {
        let notes = made(json!({ "guard": false, "tensors": { name: said } })).notes;
        let about = format!("the tensor `{name}`");
        let [note] = notes.as_slice() else {
            panic!("{name}: {notes:?}");
        };
        assert!(note.contains(&about) && note.contains(reason), "{note}");
    }
    for (name, said) in [
        ("c", json!({ "type": "u16", "method": "mse" })),
        ("w", json!({ "method": "mse" })),
        ("p", json!({ "method": "mse" })),
        ("w", json!({ "scale": 0.1, "per_channel": false })),
        ("y", json!({ "range": [0, 2] })),
        ("e", json!({})),
    ] {
        let notes = made(json!({ "guard": false, "tensors": { name: said } })).notes;
        assert_eq!(notes, [""; 0], "{name}");
    }
}

fn element(quantized: &Quantized, value: &str) -> &'static str {
    let mut tensors = quantized.tensors.iter();
    tensors.find(|tensor| tensor.name == value).unwrap().element
}

#[test]
fn what_is_folded_into_a_layer_has_a_say_in_what_that_makes() {
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
        // The narrower wins, wherever it stands; of two alike the later.
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
        let said = settings.to_string();
        let made = made(settings);
        assert_eq!(element(&made, "c"), wanted, "{said}");
        let folded = |name: &str| made.tensors.iter().all(|tensor| tensor.name != name);
        assert!(folded("a") && folded("r"), "{said}");
    }
    // What can't be folded any more stays a node.
    let symmetric = json!({ "by_operator": { "Relu": { "activations": { "symmetric": true } } } });
    let nodes = made(symmetric).model.graph.nodes;
    assert!(nodes.iter().any(|node| node.is("Relu")));
}

#[test]
fn a_method_said_of_what_shares_a_scale_gives_it_one_of_its_own() {
    let shared = |settings: Value| {
        let made = quantized(
            &small(),
            settings,
            &[("c", [0.0, 2.0]), ("p", [0.0, 1.0])],
            Method::MinMax,
        );
        let own = made
            .tensors
            .iter()
            .any(|tensor| tensor.name == "p" && tensor.max < 1.5);
        (!own, ends(&made, "c"))
    };
    let min_max = json!({ "method": "minmax" });
    for (settings, wanted) in [
        (json!({}), true),
        (json!({ "method": "mse" }), true),
        // It was said of the Conv, or of both.
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
        let said = settings.to_string();
        let (is_shared, ends) = shared(settings);
        assert_eq!(is_shared, wanted, "{said}: {ends:?}");
    }
}
