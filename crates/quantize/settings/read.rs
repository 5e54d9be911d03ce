//! Reading and validating the settings document.

use serde_json::Value;

use super::aliases::{AliasError, translated};
use super::names::hint;
use super::{LayerSettings, Settings, TensorSettings};
use octet_samples::{ImageSettings, ImageSettingsError};

/// An invalid settings document.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SettingsError {
    #[error("the settings can't be read: {detail}{hint}; docs/settings.md has every key")]
    Syntax { detail: String, hint: String },
    #[error(
        "settings, {place}: `{key}` applies to a single tensor only; put it under `tensors` and the tensor's name"
    )]
    TensorOnly { place: String, key: &'static str },
    #[error(transparent)]
    Alias(#[from] AliasError),
    #[error(transparent)]
    Target(#[from] super::fit_target::TargetConflict),
    #[error("settings, {place}: {reason}")]
    Value { place: String, reason: InvalidValue },
}

/// Reason why a value is refused that its type allows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum InvalidValue {
    #[error("expected a mapping of keys to values, not a list")]
    List,
    #[error("its budget must be zero or more; 0.25 lets the weights grow by a quarter")]
    Budget,
    #[error("the minimum range must be zero or more")]
    MinimumRange,
    #[error("its scale must be a positive number")]
    Scale,
    #[error("it has both a range and a scale; remove one")]
    RangeAndScale,
    #[error("a zero point needs a scale; give both")]
    ZeroPointWithoutScale,
    #[error("its range must be two numbers, the smaller first")]
    Range,
    #[error(transparent)]
    Images(#[from] ImageSettingsError),
}

impl Settings {
    /// Reads the document from a JSON value.
    pub fn from_value(value: Value) -> Result<Settings, SettingsError> {
        refuse_lists(&value)?;
        let value = translated(value)?;
        let settings: Settings =
            serde_json::from_value(value).map_err(|error| syntax(&error.to_string()))?;
        settings.check()?;
        settings.for_target()
    }

    /// Checks values that the types allow and the quantizer does not.
    fn check(&self) -> Result<(), SettingsError> {
        if !(self.guard.budget >= 0.0 && self.guard.budget.is_finite()) {
            return Err(SettingsError::Value {
                place: "guard".into(),
                reason: InvalidValue::Budget,
            });
        }
        if let Some(images) = &self.images {
            let read = images.over(&ImageSettings::default());
            read.map_err(|error| SettingsError::Value {
                place: "images".into(),
                reason: error.into(),
            })?;
        }
        not_of_a_tensor("activations", &self.activations)?;
        not_of_a_tensor("weights", &self.weights)?;
        for (group, layers) in [
            ("by_operator", &self.by_operator),
            ("by_name", &self.by_name),
            ("by_node", &self.by_node),
        ] {
            for (
                name,
                LayerSettings {
                    activations,
                    weights,
                    ..
                },
            ) in layers
            {
                not_of_a_tensor(&format!("{group} `{name}`, activations"), activations)?;
                not_of_a_tensor(&format!("{group} `{name}`, weights"), weights)?;
            }
        }
        for (name, tensor) in &self.tensors {
            check_tensor(name, tensor)?;
        }
        Ok(())
    }
}

/// Refuses a list in place of a mapping: the parser would assign its values to the fields in order.
fn refuse_lists(value: &Value) -> Result<(), SettingsError> {
    let keys = |place: String, value: &Value| match value {
        Value::Array(_) => Err(SettingsError::Value {
            place,
            reason: InvalidValue::List,
        }),
        _ => Ok(()),
    };
    let inside = |value: &Value, key: &str| value.get(key).cloned().unwrap_or_default();
    keys("at the top".into(), value)?;
    for part in ["activations", "weights", "blocks", "images"] {
        keys(part.into(), &inside(value, part))?;
    }
    for group in ["by_operator", "by_name", "by_node", "tensors"] {
        for (name, layer) in inside(value, group).as_object().into_iter().flatten() {
            let place = format!("{group} `{name}`");
            keys(place.clone(), layer)?;
            for part in ["activations", "weights", "blocks"] {
                keys(format!("{place}, {part}"), &inside(layer, part))?;
            }
        }
    }
    Ok(())
}

/// The parser's error, with a suggestion for an unknown key.
fn syntax(detail: &str) -> SettingsError {
    let mut quoted = detail.split('`').skip(1).step_by(2);
    let unknown = detail
        .starts_with("unknown")
        .then(|| quoted.next())
        .flatten();
    let hint = unknown.map_or(String::new(), |key| hint(key, quoted));
    SettingsError::Syntax {
        detail: detail.into(),
        hint,
    }
}

fn check_minimum_range(place: &str, settings: &TensorSettings) -> Result<(), SettingsError> {
    match settings.minimum_range {
        Some(range) if !(range.is_finite() && range >= 0.0) => Err(SettingsError::Value {
            place: place.into(),
            reason: InvalidValue::MinimumRange,
        }),
        _ => Ok(()),
    }
}

fn not_of_a_tensor(place: &str, settings: &TensorSettings) -> Result<(), SettingsError> {
    check_minimum_range(place, settings)?;
    let only = [
        ("range", settings.range.is_some()),
        ("scale", settings.scale.is_some()),
        ("zero_point", settings.zero_point.is_some()),
        ("float", settings.float.is_some()),
    ];
    match only.into_iter().find(|(_, present)| *present) {
        Some((key, _)) => Err(SettingsError::TensorOnly {
            place: place.into(),
            key,
        }),
        None => Ok(()),
    }
}

fn check_tensor(name: &str, tensor: &TensorSettings) -> Result<(), SettingsError> {
    check_minimum_range(&format!("tensor `{name}`"), tensor)?;
    let wrong = |reason| {
        Err(SettingsError::Value {
            place: format!("tensor `{name}`"),
            reason,
        })
    };
    if tensor
        .scale
        .is_some_and(|scale| !(scale.is_finite() && scale >= f32::MIN_POSITIVE))
    {
        return wrong(InvalidValue::Scale);
    }
    if tensor.scale.is_some() && tensor.range.is_some() {
        return wrong(InvalidValue::RangeAndScale);
    }
    if tensor.zero_point.is_some() && tensor.scale.is_none() {
        return wrong(InvalidValue::ZeroPointWithoutScale);
    }
    match tensor.range {
        Some(range)
            if !(range.min.is_finite() && range.max.is_finite() && range.min <= range.max) =>
        {
            wrong(InvalidValue::Range)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings, SettingsError> {
        Settings::from_value(serde_json::from_str(text).unwrap())
    }

    fn error(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn a_document_reads_back_as_it_was_written() {
        let text = r#"{
            "method": "minmax",
            "activations": { "type": "u16" },
            "weights": { "per_channel": false },
            "operators": ["Conv"],
            "float": ["head.*"],
            "by_operator": { "MatMul": { "activations": { "type": "i16" } } },
            "tensors": { "x": { "range": [-1, 1] } }
        }"#;
        let settings = read(text).unwrap();
        let again = serde_json::to_string(&settings).unwrap();
        assert_eq!(read(&again).unwrap(), settings);
        assert_eq!(read("{}").unwrap(), Settings::default());
        let names = read(r#"{ "operators": "onnxruntime" }"#).unwrap();
        assert_eq!(names.operators, super::super::Operators::OnnxRuntime);
    }

    #[test]
    fn unknown_keys_are_refused_with_a_suggestion() {
        assert!(error(r#"{ "metod": "minmax" }"#).contains("did you mean `method`?"));
        assert!(
            error(r#"{ "weights": { "per_chanel": true } }"#)
                .contains("did you mean `per_channel`?")
        );
        assert!(error(r#"{ "weights": { "type": "i9" } }"#).contains("did you mean `i"));
    }

    #[test]
    fn a_list_in_place_of_a_mapping_is_refused() {
        for (text, place) in [
            ("[]", "at the top"),
            (r#"{ "weights": ["i8"] }"#, "weights"),
            (r#"{ "blocks": [] }"#, "blocks"),
            (r#"{ "by_node": { "n": [] } }"#, "by_node `n`"),
            (
                r#"{ "by_name": { "n": { "activations": [] } } }"#,
                "by_name `n`, activations",
            ),
            (r#"{ "tensors": { "x": ["u8"] } }"#, "tensors `x`"),
        ] {
            let error = error(text);
            assert!(
                error.contains(place) && error.contains("not a list"),
                "{error}"
            );
        }
    }

    #[test]
    fn invalid_values_are_refused() {
        assert!(error(r#"{ "activations": { "range": [0, 1] } }"#).contains("`range`"));
        assert!(error(r#"{ "weights": { "float": true } }"#).contains("`float`"));
        for scale in ["0", "-0.5", "1e39", "1e-45"] {
            let text = format!(r#"{{ "tensors": {{ "x": {{ "scale": {scale} }} }} }}"#);
            assert!(error(&text).contains("positive"), "{scale}");
        }
        assert!(error(r#"{ "tensors": { "x": { "zero_point": 3 } } }"#).contains("needs a scale"));
        assert!(error(r#"{ "weights": { "minimum_range": -1 } }"#).contains("zero or more"));
        assert!(error(r#"{ "guard": { "budget": -1 } }"#).contains("zero or more"));
        assert!(error(r#"{ "tensors": { "x": { "range": [2, 1] } } }"#).contains("smaller first"));
        assert!(
            error(r#"{ "tensors": { "x": { "range": [0, 1], "scale": 1 } } }"#)
                .contains("remove one")
        );
    }
}
