//! The keys that each scheme uses, and a note about the others.

use serde_json::Value;

use super::{Scheme, Settings};

/// Parts of the document whose keys are checked one by one.
const PARTS: [&str; 3] = ["activations", "weights", "blocks"];
const LAYERS: [&str; 3] = ["by_operator", "by_name", "by_node"];

/// True for a key of activations under weights, or of weights under activations. The range of a weight
/// is its full range or the one of least squared error; an activation has one scale.
fn is_for_the_other_kind(path: &str, value: &Value) -> bool {
    let method = path.ends_with("weights.method") && value != "mse";
    method || path.ends_with("activations.per_channel")
}

/// True where a scheme uses a key of the document or of one of its parts.
fn is_used(scheme: Scheme, key: &str, value: &Value) -> bool {
    let always = ["scheme", "target", "operators", "float", "images"].contains(&key);
    always
        || match scheme {
            Scheme::Static => {
                let of_blocks = key.rsplit('.').nth(1) == Some("blocks");
                !["keep_io", "overflow"].contains(&key)
                    && !of_blocks
                    && !is_for_the_other_kind(key, value)
            }
            Scheme::Dynamic => [
                "weights.type",
                "weights.per_channel",
                "weights.reduce_range",
            ]
            .contains(&key),
            Scheme::Weights => [
                "weights.type",
                "weights.symmetric",
                "weights.per_channel",
                "weights.reduce_range",
            ]
            .contains(&key),
            Scheme::Blocks => key.starts_with("blocks.") || ["keep_io", "overflow"].contains(&key),
            Scheme::Float16 => ["keep_io", "overflow"].contains(&key),
        }
}

/// A note that lists the keys without effect in the scheme; `None` where all have one.
pub(crate) fn without_meaning(settings: &Settings) -> Option<String> {
    let to_json = |settings: &Settings| serde_json::to_value(settings).unwrap_or_default();
    let (document, defaults) = (to_json(settings), to_json(&Settings::default()));
    let mut unused: Vec<String> = Vec::new();
    let mut check = |key: String, value: &Value, default: Option<&Value>| {
        if Some(value) != default && !is_used(settings.scheme, &key, value) {
            unused.push(format!("`{key}`"));
        }
    };
    for (key, value) in document.as_object().into_iter().flatten() {
        let default = defaults.get(key);
        if PARTS.contains(&key.as_str()) {
            for (inner, value) in value.as_object().into_iter().flatten() {
                check(
                    format!("{key}.{inner}"),
                    value,
                    default.and_then(|part| part.get(inner)),
                );
            }
        } else if LAYERS.contains(&key.as_str()) {
            // Of a layer's keys, every scheme uses `float`, and the scheme `blocks` uses `blocks`.
            let own: &[&str] = match settings.scheme {
                Scheme::Blocks => &["float", "blocks"],
                _ => &["float"],
            };
            let layers = value.as_object().into_iter().flatten();
            let more = layers.flat_map(|(_, layer)| layer.as_object().into_iter().flatten());
            let is_set = |(key, value): (&String, &Value)| {
                !own.contains(&key.as_str())
                    && value.as_object().is_none_or(|inner| !inner.is_empty())
            };
            if settings.scheme != Scheme::Static && more.into_iter().any(is_set) {
                check(format!("{key} (except {})", own.join(" and ")), value, None);
            }
            let layers = value.as_object().into_iter().flatten();
            for (name, layer) in layers.filter(|_| settings.scheme == Scheme::Static) {
                for part in PARTS {
                    let inner = layer.get(part).and_then(Value::as_object);
                    for (inner, value) in inner.into_iter().flatten() {
                        check(format!("{key}.{name}.{part}.{inner}"), value, None);
                    }
                }
            }
        } else {
            check(key.clone(), value, default);
        }
    }
    let scheme = document["scheme"].as_str().unwrap_or_default();
    (!unused.is_empty()).then(|| {
        format!(
            "these settings have no effect in the scheme {scheme}: {}",
            unused.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(text: &str) -> String {
        let settings = Settings::from_value(serde_json::from_str(text).unwrap()).unwrap();
        without_meaning(&settings).unwrap_or_default()
    }

    #[test]
    fn keys_without_effect_are_noted() {
        for quiet in [
            "{}",
            r#"{ "method": "auto", "guard": false, "activations": { "type": "i8" }, "tensors": { "x": { "type": "u8" } } }"#,
            r#"{ "scheme": "dynamic", "weights": { "type": "u8" }, "float": ["a"], "operators": ["MatMul"] }"#,
            r#"{ "scheme": "weights", "weights": { "type": "u8", "symmetric": true }, "by_node": { "a": { "float": true } } }"#,
            r#"{ "scheme": "blocks", "blocks": { "bits": 8 }, "by_node": { "a": { "blocks": { "size": 64 }, "float": false } } }"#,
            r#"{ "scheme": "float16", "keep_io": false }"#,
        ] {
            assert_eq!(note(quiet), "", "{quiet}");
        }
        for (text, keys) in [
            (r#"{ "blocks": { "bits": 8 } }"#, "`blocks.bits`"),
            (
                r#"{ "by_node": { "blocks.0": { "weights": { "type": "u8" }, "blocks": { "bits": 8 } } } }"#,
                "`by_node.blocks.0.blocks.bits`",
            ),
            (
                r#"{ "scheme": "blocks", "by_operator": { "MatMul": { "always": true } } }"#,
                "`by_operator (except float and blocks)`",
            ),
            (
                r#"{ "activations": { "per_channel": true, "method": "mse" }, "weights": { "method": "entropy", "per_channel": false } }"#,
                "`activations.per_channel`, `weights.method`",
            ),
            (
                r#"{ "by_operator": { "Conv": { "weights": { "method": "minmax", "type": "u8" } } } }"#,
                "`by_operator.Conv.weights.method`",
            ),
            (
                r#"{ "scheme": "dynamic", "method": "auto", "weights": { "symmetric": false } }"#,
                "`method`, `weights.symmetric`",
            ),
            (
                r#"{ "scheme": "float16", "weights": { "type": "u8" }, "guard": false }"#,
                "`guard`, `weights.type`",
            ),
            (
                r#"{ "scheme": "weights", "by_node": { "a": { "weights": { "type": "u8" } } } }"#,
                "`by_node (except float)`",
            ),
            (
                r#"{ "scheme": "blocks", "tensors": { "x": { "type": "u8" } } }"#,
                "`tensors`",
            ),
        ] {
            let note = note(text);
            assert!(note.ends_with(&format!(": {keys}")), "{note}");
        }
    }
}
