//! Words of other quantizers in a settings document.
//!
//! A word that means the same as a key of ours becomes that key before the document is read. A word
//! that means something else is refused, with the nearest key. `docs/settings.md` has the table.

mod dtype;
#[cfg(test)]
mod tests;
mod words;

use serde_json::{Map, Value, json};

use dtype::take_dtype;
use words::Meaning::{self, Each, Keys, Opposite, Refused, Switch, Values};
use words::Tool::{self, OnnxRuntime};
use words::{OPTIONS, WORDS};

/// A word that can't be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum AliasError {
    #[error("settings: `{word}` of {tool} has no equal here; the nearest is {nearest}")]
    Refused {
        word: String,
        tool: &'static str,
        nearest: &'static str,
    },
    #[error("settings: `{word}` of {tool} means `{key}`, which is there too; remove one of them")]
    Twice {
        word: String,
        tool: &'static str,
        key: String,
    },
    #[error("settings: `{word}` of {tool} is {value}, which is not understood; give {expected}")]
    Value {
        word: String,
        tool: &'static str,
        value: String,
        expected: String,
    },
    #[error(
        "settings: `extra_options` has the word `{word}`, which neither ONNX Runtime nor AMD Quark is known to have{hint}"
    )]
    Unknown { word: String, hint: String },
}

/// The document with our keys in place of other tools' words.
pub(super) fn translated(document: Value) -> Result<Value, AliasError> {
    let Value::Object(mut document) = document else {
        return Ok(document);
    };
    for (word, tool, meaning) in WORDS {
        if let Some(value) = document.remove(*word) {
            take(&mut document, word, *tool, *meaning, &value)?;
        }
    }
    if let Some(dtype) = document.remove("dtype") {
        take_dtype(&mut document, &dtype)?;
    }
    match document.remove("extra_options") {
        Some(Value::Object(options)) => {
            for (word, value) in options {
                let known = OPTIONS.iter().find(|(name, ..)| *name == word);
                let Some((_, tool, meaning)) = known else {
                    let names = OPTIONS.iter().map(|(name, ..)| *name);
                    let hint = super::names::hint(&word, names);
                    return Err(AliasError::Unknown { word, hint });
                };
                take(&mut document, &word, *tool, *meaning, &value)?;
            }
        }
        Some(other) => {
            return Err(wrong(
                "extra_options",
                OnnxRuntime,
                &other,
                "a mapping of options",
            ));
        }
        None => {}
    }
    Ok(Value::Object(document))
}

fn wrong(word: &str, tool: Tool, value: &Value, expected: &str) -> AliasError {
    AliasError::Value {
        word: word.to_owned(),
        tool: tool.name(),
        value: value.to_string(),
        expected: expected.to_owned(),
    }
}

fn take(
    document: &mut Map<String, Value>,
    word: &str,
    tool: Tool,
    meaning: Meaning,
    value: &Value,
) -> Result<(), AliasError> {
    let mut set = |path: &[&str], value: Value| set(document, path, value, word, tool);
    match meaning {
        Refused(nearest) => {
            return Err(AliasError::Refused {
                word: word.to_owned(),
                tool: tool.name(),
                nearest,
            });
        }
        // ONNX Runtime's defaults are absent values.
        _ if value.is_null() => {}
        Keys(keys) => {
            for key in keys {
                set(&key.split('.').collect::<Vec<_>>(), value.clone())?;
            }
        }
        Opposite(key) => {
            let truth = value.as_bool();
            let truth = truth.ok_or_else(|| wrong(word, tool, value, "true or false"))?;
            set(&[key], json!(!truth))?;
        }
        Values(key, names) => {
            // Python prints the members of its enumerations as `QuantType.QInt8`.
            let name = value
                .as_str()
                .map(|name| name.rsplit('.').next().unwrap_or(name));
            let found = names.iter().find(|(theirs, _)| Some(*theirs) == name);
            let Some((_, ours)) = found else {
                let all: Vec<&str> = names.iter().map(|(theirs, _)| *theirs).collect();
                return Err(wrong(word, tool, value, &all.join(", ")));
            };
            set(&key.split('.').collect::<Vec<_>>(), json!(ours))?;
        }
        Each { group, key } => {
            let names = value
                .as_array()
                .filter(|names| names.iter().all(Value::is_string));
            let names = names.ok_or_else(|| wrong(word, tool, value, "a list of names"))?;
            for name in names.iter().filter_map(Value::as_str) {
                set(&[group, name, key], json!(true))?;
            }
        }
        Switch(written) => match value.as_bool() {
            Some(true) => set_all(&written(), &mut Vec::new(), &mut set)?,
            Some(false) => {}
            None => return Err(wrong(word, tool, value, "true or false")),
        },
    }
    Ok(())
}

/// Sets each leaf of a document.
fn set_all(
    value: &Value,
    path: &mut Vec<String>,
    set: &mut impl FnMut(&[&str], Value) -> Result<(), AliasError>,
) -> Result<(), AliasError> {
    let Some(keys) = value.as_object() else {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        return set(&names, value.clone());
    };
    for (key, value) in keys {
        path.push(key.clone());
        set_all(value, path, set)?;
        path.pop();
    }
    Ok(())
}

/// Sets a key; a key that is there already with another value is an error.
fn set(
    document: &mut Map<String, Value>,
    path: &[&str],
    value: Value,
    word: &str,
    tool: Tool,
) -> Result<(), AliasError> {
    let twice = || AliasError::Twice {
        word: word.to_owned(),
        tool: tool.name(),
        key: path.join("."),
    };
    let Some((last, groups)) = path.split_last() else {
        return Ok(());
    };
    let mut inside = document;
    for group in groups {
        let entry = inside.entry(*group).or_insert_with(|| json!({}));
        inside = entry.as_object_mut().ok_or_else(twice)?;
    }
    match inside.insert((*last).to_owned(), value.clone()) {
        Some(old) if old != value => Err(twice()),
        _ => Ok(()),
    }
}
