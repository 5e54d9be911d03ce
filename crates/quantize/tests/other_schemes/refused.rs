//! Errors of the schemes without samples.

use octet_quantize::*;

use super::{SCHEMES, alike};
use octet_test_models::{constant, model, node};

#[test]
fn a_quantized_model_is_an_error() {
    let nodes = vec![node("DynamicQuantizeLinear", &["x"], "y")];
    for (name, scheme) in SCHEMES {
        let error = scheme(&model(nodes.clone(), vec![], &["y"]), &[]);
        let refused = matches!(error, Err(QuantizeError::AlreadyQuantized { .. }));
        assert!(refused, "{name}");
    }
}

#[test]
fn conflicting_settings_are_errors() {
    let model = model(
        vec![node("MatMul", &["x", "w"], "y")],
        vec![constant("w", &[64, 64])],
        &["y"],
    );
    let plain = BlockSettings::default;
    for (settings, word) in [
        (BlockSettings { bits: 3, ..plain() }, "bits is 3"),
        (
            BlockSettings {
                bits: 2,
                form: BlockForm::Dequantize,
                ..plain()
            },
            "matmul_nbits",
        ),
        (
            BlockSettings {
                size: 48,
                ..plain()
            },
            "size is 48",
        ),
        (BlockSettings { size: 8, ..plain() }, "16, 32"),
        (
            BlockSettings {
                accuracy_level: 5,
                ..plain()
            },
            "accuracy_level",
        ),
        (
            BlockSettings {
                method: BlockMethod::Hqq,
                symmetric: Some(true),
                ..plain()
            },
            "zero points",
        ),
    ] {
        let error = alike(&model, &settings, &[]).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn wrong_block_settings_of_a_layer_are_an_error_with_its_name() {
    let model = model(
        vec![node("MatMul", &["x", "w"], "y")],
        vec![constant("w", &[64, 64])],
        &["y"],
    );
    let own = BlockChoice {
        bits: Some(3),
        ..BlockChoice::default()
    };
    let mut settings = Settings {
        scheme: Scheme::Blocks,
        ..Settings::default()
    };
    settings.by_node.entry("y".into()).or_default().blocks = own;
    let error = apply(&model, &settings, None).unwrap_err().to_string();
    assert!(error.contains("node `y`: the setting bits is 3"), "{error}");
}
