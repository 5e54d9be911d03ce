//! Words that mean our keys, and words that are refused.

use super::super::Settings;
use super::words::Meaning::Refused;
use super::words::{OPTIONS, WORDS};

fn read(text: &str) -> Settings {
    Settings::from_value(serde_json::from_str(text).unwrap()).unwrap()
}

fn error(text: &str) -> String {
    let value = serde_json::from_str(text).unwrap();
    Settings::from_value(value).unwrap_err().to_string()
}

#[test]
fn words_of_other_tools_mean_our_keys() {
    for (theirs, ours) in [
        (
            r#"{ "nodes_to_exclude": ["a", "b"] }"#,
            r#"{ "by_node": { "a": { "float": true }, "b": { "float": true } } }"#,
        ),
        (
            r#"{ "op_types_to_quantize": ["Conv"] }"#,
            r#"{ "operators": ["Conv"] }"#,
        ),
        (r#"{ "op_types_to_quantize": null }"#, "{}"),
        (
            r#"{ "per_channel": false, "reduce_range": true }"#,
            r#"{ "weights": { "per_channel": false, "reduce_range": true } }"#,
        ),
        (
            r#"{ "weight_type": "QUInt8", "activation_type": "QuantType.QUInt16" }"#,
            r#"{ "weights": { "type": "u8" }, "activations": { "type": "u16" } }"#,
        ),
        (
            r#"{ "quant_format": "QOperator", "calibrate_method": "MinMax" }"#,
            r#"{ "format": "qoperator", "method": "minmax" }"#,
        ),
        (
            r#"{ "extra_options": { "ActivationSymmetric": true, "MinimumRealRange": 0.5 } }"#,
            r#"{ "activations": { "symmetric": true, "minimum_range": 0.5 }, "weights": { "minimum_range": 0.5 } }"#,
        ),
        (
            r#"{ "extra_options": { "QDQDisableWeightAdjustForInt32Bias": true } }"#,
            r#"{ "fit_bias": false }"#,
        ),
        (
            r#"{ "extra_options": { "MatMulConstBOnly": true, "UseGPTQ": false } }"#,
            r#"{ "by_operator": { "MatMul": { "constant_only": true } } }"#,
        ),
        (
            r#"{ "extra_options": { "UsePowerOf2Scale": true } }"#,
            r#"{ "activations": { "power_of_two": "nearest" }, "weights": { "power_of_two": "nearest" } }"#,
        ),
        (
            r#"{ "dtype": "q4f16" }"#,
            r#"{ "scheme": "blocks", "blocks": { "activations": "float16" }, "target": "transformers.js" }"#,
        ),
        (
            r#"{ "dtype": "q8" }"#,
            r#"{ "scheme": "dynamic", "weights": { "per_channel": false }, "target": "transformers.js" }"#,
        ),
        (
            r#"{ "dtype": "fp16", "target": "any" }"#,
            r#"{ "scheme": "float16" }"#,
        ),
    ] {
        assert_eq!(read(theirs), read(ours), "{theirs}");
    }
}

#[test]
fn words_without_an_equal_are_refused_with_the_nearest() {
    for (text, words) in [
        (
            r#"{ "nodes_to_quantize": ["a"] }"#,
            "`nodes_to_quantize` of ONNX Runtime has no equal here; the nearest is `float`",
        ),
        (
            r#"{ "extra_options": { "SmoothQuant": true } }"#,
            "the nearest is `equalize`",
        ),
        (
            r#"{ "extra_options": { "Int16Bias": true } }"#,
            "`Int16Bias` of AMD Quark",
        ),
        (
            r#"{ "extra_options": { "ActivationSymetric": true } }"#,
            "did you mean `ActivationSymmetric`?",
        ),
        (r#"{ "extra_options": [] }"#, "a mapping of options"),
        (
            r#"{ "weight_type": "QFLOAT8E4M3FN" }"#,
            "give QInt8, QUInt8",
        ),
        (
            r#"{ "calibrate_method": "Distribution" }"#,
            "give MinMax, Percentile, Entropy",
        ),
        (r#"{ "dtype": "fp32" }"#, "give fp16, q8"),
        (
            r#"{ "per_channel": true, "weights": { "per_channel": false } }"#,
            "means `weights.per_channel`, which is there too",
        ),
        (r#"{ "nodes_to_exclude": "a" }"#, "a list of names"),
    ] {
        let error = error(text);
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn every_word_is_in_the_documents_and_no_key_of_ours() {
    let page = include_str!("../../../../docs/settings.md");
    let keys = serde_json::to_value(Settings::default()).unwrap();
    for (word, _, meaning) in WORDS.iter().chain(OPTIONS) {
        assert!(keys.get(word).is_none(), "{word}");
        let Refused(nearest) = meaning else {
            assert!(
                page.contains(&format!("`{word}")),
                "docs/settings.md lacks {word}"
            );
            continue;
        };
        assert!(
            nearest.starts_with('`') || nearest.starts_with("no key"),
            "{nearest}"
        );
    }
}
