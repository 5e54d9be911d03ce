//! Which keys mean something for which scheme.

use serde_json::Value;

use super::{Scheme, Settings};

/// Parts of the document whose keys count one by one.
const PARTS: [&str; 3] = ["activations", "weights", "blocks"];
const LAYERS: [&str; 3] = ["by_operator", "by_name", "by_node"];

/// Whether what is said at the end of a path of weights is for activations only, or the other way round: a weight reaches as
/// far as its numbers do, or where its error is least, and an activation has one scale.
fn of_the_other_kind(path: &str, said: &Value) -> bool {
    let method = path.ends_with("weights.method") && said != "mse";
    method || path.ends_with("activations.per_channel")
}

/// Whether a key of the document, or of one of its parts, means something for a scheme.
fn means_something(scheme: Scheme, key: &str, said: &Value) -> bool {
    let always = ["scheme", "operators", "float", "images"].contains(&key);
    always
        || match scheme {
            Scheme::Static => {
                let of_blocks = key.rsplit('.').nth(1) == Some("blocks");
                key != "keep_io" && !of_blocks && !of_the_other_kind(key, said)
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
            Scheme::Blocks => key.starts_with("blocks."),
            Scheme::Float16 => key == "keep_io",
        }
}

/// What the settings say that means nothing for their scheme, in a sentence; `None` where all of it does.
pub(in crate::quantize) fn without_meaning(settings: &Settings) -> Option<String> {
    let written = |settings: &Settings| serde_json::to_value(settings).unwrap_or_default();
    let (said, usual) = (written(settings), written(&Settings::default()));
    let mut idle: Vec<String> = Vec::new();
    let mut ask = |key: String, said: &Value, usual: Option<&Value>| {
        if Some(said) != usual && !means_something(settings.scheme, &key, said) {
            idle.push(format!("`{key}`"));
        }
    };
    for (key, said) in said.as_object().into_iter().flatten() {
        let usual = usual.get(key);
        if PARTS.contains(&key.as_str()) {
            for (inner, said) in said.as_object().into_iter().flatten() {
                ask(
                    format!("{key}.{inner}"),
                    said,
                    usual.and_then(|part| part.get(inner)),
                );
            }
        } else if LAYERS.contains(&key.as_str()) {
            // Of a layer only `float` means something for every scheme, and blocks for those of theirs.
            let own: &[&str] = match settings.scheme {
                Scheme::Blocks => &["float", "blocks"],
                _ => &["float"],
            };
            let layers = said.as_object().into_iter().flatten();
            let more = layers.flat_map(|(_, layer)| layer.as_object().into_iter().flatten());
            let is_said = |(key, said): (&String, &Value)| {
                !own.contains(&key.as_str())
                    && said.as_object().is_none_or(|inner| !inner.is_empty())
            };
            if settings.scheme != Scheme::Static && more.into_iter().any(is_said) {
                ask(format!("{key} (but for {})", own.join(" and ")), said, None);
            }
            let layers = said.as_object().into_iter().flatten();
            for (name, layer) in layers.filter(|_| settings.scheme == Scheme::Static) {
                for part in PARTS {
                    let inner = layer.get(part).and_then(Value::as_object);
                    for (inner, said) in inner.into_iter().flatten() {
                        ask(format!("{key}.{name}.{part}.{inner}"), said, None);
                    }
                }
            }
        } else {
            ask(key.clone(), said, usual);
        }
    }
    let scheme = said["scheme"].as_str().unwrap_or_default();
    (!idle.is_empty()).then(|| {
        format!(
            "for the scheme {scheme} these settings mean nothing and had no effect: {}",
            idle.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let settings = Settings::from_value(serde_json::from_str(text).unwrap()).unwrap();
        without_meaning(&settings).unwrap_or_default()
    }

    #[test]
    fn what_means_nothing_for_a_scheme_is_said() {
        for quiet in [
            "{}",
            r#"{ "method": "auto", "guard": false, "activations": { "type": "i8" }, "tensors": { "x": { "type": "u8" } } }"#,
            r#"{ "scheme": "dynamic", "weights": { "type": "u8" }, "float": ["a"], "operators": ["MatMul"] }"#,
            r#"{ "scheme": "weights", "weights": { "type": "u8", "symmetric": true }, "by_node": { "a": { "float": true } } }"#,
            r#"{ "scheme": "blocks", "blocks": { "bits": 8 }, "by_node": { "a": { "blocks": { "size": 64 }, "float": false } } }"#,
            r#"{ "scheme": "float16", "keep_io": false }"#,
        ] {
            assert_eq!(said(quiet), "", "{quiet}");
        }
        for (text, keys) in [
            (r#"{ "blocks": { "bits": 8 } }"#, "`blocks.bits`"),
            (
                r#"{ "by_node": { "blocks.0": { "weights": { "type": "u8" }, "blocks": { "bits": 8 } } } }"#,
                "`by_node.blocks.0.blocks.bits`",
            ),
            (
                r#"{ "scheme": "blocks", "by_operator": { "MatMul": { "always": true } } }"#,
                "`by_operator (but for float and blocks)`",
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
                "`by_node (but for float)`",
            ),
            (
                r#"{ "scheme": "blocks", "tensors": { "x": { "type": "u8" } } }"#,
                "`tensors`",
            ),
        ] {
            let said = said(text);
            assert!(said.ends_with(&format!("had no effect: {keys}")), "{said}");
        }
    }
}
