//! TypeScript declarations of all values that cross between Rust and JavaScript.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

const HEAD: &str = "\
/*
 * Values that cross between Rust and JavaScript. Generated from the Rust types by `make contracts`:
 * change the types and their doc comments there. Shapes of JavaScript alone are in api.d.ts.
 */

export * from './api.js';
";

/// All declarations, in the order of their names.
pub fn declarations() -> String {
    let mut all = Map::new();
    let mut read = SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator();
    add::<octet::quantize::Settings>(&mut read);
    add::<octet::samples::SampleSettings>(&mut read);
    add::<octet::samples::TextSettings>(&mut read);
    add::<octet::session::Export>(&mut read);
    all.extend(read.take_definitions(true));
    let mut written = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    add_written(&mut written);
    for (name, schema) in written.take_definitions(true) {
        // Types that go both ways have the form that JavaScript may write.
        all.entry(name).or_insert(schema);
    }
    let declared = all.iter().map(|(name, schema)| declaration(name, schema));
    HEAD.to_string() + &declared.collect::<String>()
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    let _: Schema = generator.subschema_for::<T>();
}

/// The types that Rust hands to JavaScript.
fn add_written(generator: &mut SchemaGenerator) {
    add::<octet::session::ModelSummary>(generator);
    add::<octet::session::StreamedPlan>(generator);
    add::<octet::session::StreamedOutcome>(generator);
    add::<octet::session::UnusableSample>(generator);
    add::<octet::session::Forecast>(generator);
    add::<octet::session::CalibrationSummary>(generator);
    add::<octet::session::QuantizationSummary>(generator);
    add::<octet::session::GraphView>(generator);
    add::<octet::session::ValueDistribution>(generator);
    add::<octet::session::ChannelRanges>(generator);
    add::<octet::compare::Comparison>(generator);
    add::<octet::profile::LayerTable>(generator);
    add::<octet::profile::memory::Memory>(generator);
    add::<octet::samples::Preview>(generator);
    add::<octet::samples::SampleRef>(generator);
    add::<octet::search::SearchResult>(generator);
    add::<octet::shards::SharedStatistics>(generator);
    add::<octet::exchange::RangeFileSummary>(generator);
    add::<octet::search::SearchProgress>(generator);
    add::<octet::tune::TuningSummary>(generator);
}

/// An interface for an object, else an alias.
fn declaration(name: &str, schema: &Value) -> String {
    let comment = comment(schema, "");
    match schema["properties"].as_object() {
        Some(_) => format!(
            "\n{comment}export interface {name} {}\n",
            object(schema, "")
        ),
        None => format!("\n{comment}export type {name} = {};\n", type_of(schema, "")),
    }
}

fn comment(schema: &Value, indent: &str) -> String {
    let mut text = schema["description"]
        .as_str()
        .unwrap_or_default()
        .to_string();
    let values = schema["oneOf"].as_array().into_iter().flatten();
    for value in values.filter(|value| value["description"].is_string()) {
        let meaning = value["description"].as_str().unwrap_or_default();
        // A choice with values of its own is an object with one key, or with a key for its name.
        let keys = || value["properties"].as_object().into_iter().flatten();
        let named = keys().find_map(|(_, one)| one.get("const"));
        let name = match (named, keys().next()) {
            (Some(name), _) => name.to_string(),
            (None, Some((key, _))) => format!("{key:?}"),
            (None, None) => value["const"].to_string(),
        };
        text += &format!("\n- {name}: {meaning}");
    }
    let lines: Vec<&str> = text.lines().collect();
    match lines.as_slice() {
        [] => String::new(),
        [line] => format!("{indent}/** {line} */\n"),
        lines => {
            let lines = lines
                .iter()
                .map(|line| format!("{indent} * {line}\n").replace(" \n", "\n"));
            format!("{indent}/**\n{}{indent} */\n", lines.collect::<String>())
        }
    }
}

fn object(schema: &Value, indent: &str) -> String {
    let inner = format!("{indent}  ");
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut text = String::from("{\n");
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let optional = if required.contains(&key.as_str()) {
            ""
        } else {
            "?"
        };
        text += &comment(property, &inner);
        let mut value = type_of(property, &inner);
        // A key that may be absent is `undefined`; `null` in its place is read too, but not promised.
        if !optional.is_empty() {
            value = value.trim_end_matches(" | null").into();
        }
        text += &format!("{inner}{key}{optional}: {value};\n");
    }
    text + indent + "}"
}

fn type_of(schema: &Value, indent: &str) -> String {
    if let Some(path) = schema["$ref"].as_str() {
        return path.rsplit('/').next().unwrap_or(path).into();
    }
    if let Some(value) = schema.get("const") {
        return literal(value);
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(literal).collect::<Vec<_>>().join(" | ");
    }
    for union in ["oneOf", "anyOf"] {
        if let Some(forms) = schema[union].as_array() {
            return joined(forms.iter().map(|form| type_of(form, indent)));
        }
    }
    match &schema["type"] {
        Value::String(name) => plain(name, schema, indent),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            joined(names.map(|name| plain(name, schema, indent)))
        }
        _ => "unknown".into(),
    }
}

/// A union without doubles.
fn joined(types: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for one in types {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all.join(" | ")
}

fn plain(name: &str, schema: &Value, indent: &str) -> String {
    match name {
        "integer" => "number".into(),
        "array" => array(schema, indent),
        "object" if schema.get("properties").is_some() => object(schema, indent),
        "object" => match schema.get("additionalProperties") {
            Some(value) if value.is_object() => {
                format!("Record<string, {}>", type_of(value, indent))
            }
            _ => "Record<string, unknown>".into(),
        },
        other => other.into(),
    }
}

fn array(schema: &Value, indent: &str) -> String {
    if let Some(items) = schema["prefixItems"].as_array() {
        let items: Vec<String> = items.iter().map(|item| type_of(item, indent)).collect();
        return format!("[{}]", items.join(", "));
    }
    let item = schema
        .get("items")
        .map_or("unknown".into(), |items| type_of(items, indent));
    match (schema["minItems"].as_u64(), schema["maxItems"].as_u64()) {
        (Some(least), Some(most)) if least == most && most <= 4 => {
            format!("[{}]", vec![item; most as usize].join(", "))
        }
        _ if item.contains('|') => format!("({item})[]"),
        _ => format!("{item}[]"),
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{text}'"),
        other => other.to_string(),
    }
}
