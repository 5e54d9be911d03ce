//! Help and values of options that set one key of the settings document, from its JSON schema.

use std::sync::OnceLock;

use octet::quantize::Settings;
use octet::stats::METHODS;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Failure;
use super::images::one_of;

/// The schema of the settings document.
fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| schemars::schema_for!(Settings).to_value())
}

/// The schema of a key, such as `scheme` or `weights.type`, with its definition in place of a
/// reference.
fn property(key: &str) -> (&'static Value, &'static Value) {
    let mut property = schema();
    let mut definition = property;
    for part in key.split('.') {
        property = &definition["properties"][part];
        definition = match property["$ref"]
            .as_str()
            .and_then(|path| path.strip_prefix('#'))
        {
            Some(path) => schema().pointer(path).unwrap_or(property),
            None => property,
        };
    }
    (property, definition)
}

/// The names that a key takes, with their meanings.
fn values(definition: &'static Value) -> Vec<(&'static str, &'static str)> {
    let described = definition["oneOf"].as_array().into_iter().flatten();
    let described = described.filter_map(|value| {
        Some((
            value["const"].as_str()?,
            value["description"].as_str().unwrap_or_default(),
        ))
    });
    let plain = definition["enum"].as_array().into_iter().flatten();
    let plain = plain.filter_map(|value| Some((value.as_str()?, "")));
    described.chain(plain).collect()
}

/// The help of an option that sets this key.
pub fn help(key: &str) -> String {
    let (property, definition) = property(key);
    let sentence = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        text.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .replace('`', "")
    };
    let mut help = sentence(&property["description"]);
    for (value, meaning) in values(definition)
        .into_iter()
        .filter(|(_, meaning)| !meaning.is_empty())
    {
        help += &format!("\n- {value}: {}", sentence(&meaning.into()));
    }
    match &property["default"] {
        Value::String(default) => help + &format!("\n[default: {default}]"),
        _ => help,
    }
}

/// The help of an option for an integer type.
pub fn type_help(of: &str, default: &str) -> String {
    let names: Vec<&str> = values(property("weights.type").1)
        .iter()
        .map(|(value, _)| *value)
        .collect();
    format!(
        "The integer type of {of}: {} [default: {default}]",
        names.join(", ")
    )
}

/// The help of `--method`, with all methods.
pub fn method_help() -> String {
    let methods = METHODS
        .iter()
        .map(|entry| format!("\n- {}: {}", entry.name, entry.meaning.replace('`', "")));
    help("method") + &methods.collect::<String>()
}

/// Parses the value of an option that sets this key.
pub fn parse<T: DeserializeOwned>(option: &str, text: &str, key: &str) -> Result<T, Failure> {
    serde_json::from_value(text.into()).map_err(|_| {
        let values = values(property(key).1);
        let names: Vec<&str> = values.iter().map(|(value, _)| *value).collect();
        one_of(option, text, &names)
    })
}

#[cfg(test)]
mod tests {
    use octet::quantize::{ElementType, Scheme};

    use super::*;

    #[test]
    fn help_comes_from_the_settings() {
        let help = help("scheme");
        assert!(help.contains("- float16: Half-precision floats"), "{help}");
        assert!(help.ends_with("[default: static]"), "{help}");
        assert!(method_help().contains("- ort-entropy: "));
        let types = type_help("weights", "i8");
        assert_eq!(
            types,
            "The integer type of weights: u8, i8, u16, i16, u4, i4 [default: i8]"
        );
    }

    #[test]
    fn values_are_those_of_the_settings() {
        let element: ElementType = parse("--weights", "i4", "weights.type").ok().unwrap();
        assert_eq!(element, ElementType::I4);
        let Err(error) = parse::<Scheme>("--scheme", "statik", "scheme") else {
            panic!("an unknown scheme was parsed");
        };
        let message = error.line;
        assert!(
            message.contains("static, dynamic, weights, blocks, float16"),
            "{message}"
        );
    }
}
