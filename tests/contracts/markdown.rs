//! Tables of settings keys for `docs/settings.md`, from the JSON schema.
//!
//! A table stands between a line such as `<!-- keys: NAME -->` or `<!-- values: NAME -->` and the
//! line `<!-- end -->`. NAME is a definition of the schema, or `Settings` for the document itself.
//! `<!-- methods: all -->` is the table of calibration methods.

use serde_json::Value;

const END: &str = "<!-- end -->";

/// The document with all its tables replaced by generated ones.
pub fn with_tables(document: &str, schema: &Value) -> String {
    let mut lines = Vec::new();
    let mut old_table = false;
    for line in document.lines() {
        if old_table && line != END {
            continue;
        }
        old_table = false;
        lines.push(line.to_string());
        let marker = line
            .strip_prefix("<!-- ")
            .and_then(|l| l.strip_suffix(" -->"));
        if let Some((kind, name)) = marker.and_then(|marker| marker.split_once(": ")) {
            lines.push(String::new());
            lines.extend(match kind {
                "keys" => keys(name, schema),
                "values" => values(name, schema),
                "methods" => methods(),
                other => panic!("{line}: no table is called {other}"),
            });
            lines.push(String::new());
            old_table = true;
        }
    }
    assert!(!old_table, "a table of docs/settings.md has no {END}");
    lines.join("\n") + "\n"
}

fn definition<'a>(name: &str, schema: &'a Value) -> &'a Value {
    match name {
        "Settings" => schema,
        name => schema
            .pointer(&format!("/$defs/{name}"))
            .unwrap_or_else(|| panic!("the schema of the settings has no definition {name}")),
    }
}

/// One row for each key: its values and its meaning.
fn keys(name: &str, schema: &Value) -> Vec<String> {
    let mut definition = definition(name, schema);
    // A switch or keys: the keys.
    let forms = definition["anyOf"].as_array().into_iter().flatten();
    if let Some(keyed) = forms
        .into_iter()
        .find(|form| form.get("properties").is_some())
    {
        definition = keyed;
    }
    let mut lines = vec!["| key | values | meaning |".into(), "|---|---|---|".into()];
    for (key, property) in definition["properties"].as_object().expect("keys") {
        let mut meaning = one_line(&property["description"]);
        if let Some(default) = property.get("default").and_then(default) {
            meaning += &format!(" Default: `{default}`.");
        }
        lines.push(format!(
            "| `{key}` | {} | {meaning} |",
            allowed(property, schema)
        ));
    }
    lines
}

/// One row for each value of an enumeration.
fn values(name: &str, schema: &Value) -> Vec<String> {
    let mut lines = vec!["| value | meaning |".into(), "|---|---|".into()];
    for value in definition(name, schema)["oneOf"]
        .as_array()
        .expect("values")
    {
        let literal = value["const"].as_str().expect("a value");
        lines.push(format!(
            "| `{literal}` | {} |",
            one_line(&value["description"])
        ));
    }
    lines
}

/// One row for each calibration method.
fn methods() -> Vec<String> {
    let rows = octet::stats::METHODS
        .iter()
        .map(|entry| format!("| `{}` | {} |", entry.name, entry.meaning));
    let head = ["| method | range |".to_string(), "|---|---|".to_string()];
    head.into_iter().chain(rows).collect()
}

/// A default that is worth a word: neither `null` nor an empty object or list.
fn default(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Object(keys) if !keys.is_empty() => None,
        Value::Object(_) | Value::Array(_) => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// A description in one line; a table cell can't hold a bare `|`.
fn one_line(text: &Value) -> String {
    let text = text.as_str().unwrap_or_default();
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

/// The values that a key takes, in words.
fn allowed(schema: &Value, root: &Value) -> String {
    if let Some(name) = reference(schema) {
        if name == "Method" {
            return "a [method](#methods)".into();
        }
        let target = definition(name, root);
        return match target.get("properties").is_some() {
            true => format!("keys of [{name}](#{})", name.to_lowercase()),
            false => allowed(target, root),
        };
    }
    if let Some(value) = schema.get("const") {
        return literal(value);
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(literal).collect::<Vec<_>>().join(", ");
    }
    for union in ["oneOf", "anyOf"] {
        if let Some(forms) = schema[union].as_array() {
            let forms = forms.iter().filter(|form| form["type"] != "null");
            return forms
                .map(|form| allowed(form, root))
                .collect::<Vec<_>>()
                .join(", ");
        }
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let plain = types
        .into_iter()
        .filter(|&name| name != "null")
        .map(|name| match name {
            "boolean" => "`true`, `false`".to_string(),
            "array" => list(schema, root),
            "object" => mapping(schema, root),
            "string" => "text".to_string(),
            number => number.to_string(),
        });
    plain.collect::<Vec<_>>().join(", ")
}

fn list(schema: &Value, root: &Value) -> String {
    let item = schema
        .get("items")
        .map_or("values".into(), |items| allowed(items, root));
    match (schema["minItems"].as_u64(), schema["maxItems"].as_u64()) {
        (Some(least), Some(most)) if least == most => format!("{most} values: {item}"),
        _ => format!("list of {item}"),
    }
}

fn mapping(schema: &Value, root: &Value) -> String {
    match schema.get("additionalProperties") {
        Some(value) if value.is_object() => format!("name → {}", allowed(value, root)),
        _ => {
            let properties = schema["properties"].as_object();
            match properties.map(|all| all.iter().collect::<Vec<_>>()) {
                Some(one) if one.len() == 1 => {
                    format!("`{{{}: {}}}`", one[0].0, allowed(one[0].1, root))
                }
                _ => "keys".into(),
            }
        }
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

/// The definition that a schema refers to, also where `null` is allowed beside it.
fn reference(schema: &Value) -> Option<&str> {
    let direct = schema["$ref"].as_str();
    let optional = schema["anyOf"]
        .as_array()
        .and_then(|forms| match forms.as_slice() {
            [form, null] if null["type"] == "null" => form["$ref"].as_str(),
            _ => None,
        });
    direct.or(optional)?.strip_prefix("#/$defs/")
}
