//! Every report conforms to `docs/report.schema.json`. This reads the part of JSON Schema that the
//! file uses. An unknown keyword fails, so that none is ignored.

use serde_json::Value;

/// Checks a report against the schema; `place` is part of the message.
pub fn check(report: &str) {
    let schema: Value =
        serde_json::from_str(include_str!("../../docs/report.schema.json")).unwrap();
    let report: Value = serde_yaml_ng::from_str(report).unwrap();
    matches(&report, &schema, &schema, "report").unwrap();
}

fn matches(value: &Value, schema: &Value, root: &Value, place: &str) -> Result<(), String> {
    let words = schema.as_object().unwrap();
    for (word, wanted) in words {
        match word.as_str() {
            "$schema" | "title" | "description" | "$defs" | "required" | "additionalProperties" => {
            }
            "$ref" => {
                let path = wanted.as_str().unwrap().trim_start_matches('#');
                matches(value, root.pointer(path).unwrap(), root, place)?;
            }
            "anyOf" => {
                let any = wanted.as_array().unwrap().iter();
                let mut tried = any.map(|one| matches(value, one, root, place));
                if !tried.any(|result| result.is_ok()) {
                    return Err(format!("{place}: {value} is none of {wanted}"));
                }
            }
            "type" => {
                let types = match wanted {
                    Value::Array(types) => types.clone(),
                    one => vec![one.clone()],
                };
                if !types.iter().any(|one| is(value, one.as_str().unwrap())) {
                    return Err(format!("{place}: {value} is no {wanted}"));
                }
            }
            "enum" => {
                if !wanted.as_array().unwrap().contains(value) {
                    return Err(format!("{place}: {value} is none of {wanted}"));
                }
            }
            "items" => {
                for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                    matches(item, wanted, root, &format!("{place}[{i}]"))?;
                }
            }
            "properties" => {
                let known = wanted.as_object().unwrap();
                let object = value.as_object().ok_or(format!("{place}: no object"))?;
                for key in words["required"].as_array().unwrap() {
                    if !object.contains_key(key.as_str().unwrap()) {
                        return Err(format!("{place}: {key} is missing"));
                    }
                }
                for (key, inner) in object {
                    match known.get(key) {
                        Some(schema) => matches(inner, schema, root, &format!("{place}.{key}"))?,
                        None if words["additionalProperties"] == false => {
                            return Err(format!("{place}: {key} is not known"));
                        }
                        None => {}
                    }
                }
            }
            other => panic!("the schema's word {other} is not known here"),
        }
    }
    Ok(())
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the schema's type {other} is not known here"),
    }
}

#[test]
fn what_is_not_in_the_schema_is_found() {
    let schema: Value =
        serde_json::from_str(include_str!("../../docs/report.schema.json")).unwrap();
    let spread = &schema["$defs"]["spread"];
    let check = |text: &str| matches(&serde_json::from_str(text).unwrap(), spread, &schema, "x");
    check(r#"{"median": 1, "p10": 1, "p90": 1.5, "mean": 1}"#).unwrap();
    for (wrong, said) in [
        (r#"{"median": 1, "p10": 1, "p90": 1}"#, "mean\" is missing"),
        (
            r#"{"median": 1, "p10": 1, "p90": 1, "mean": 1, "more": 2}"#,
            "more is not known",
        ),
        (r#"{"median": "1", "p10": 1, "p90": 1, "mean": 1}"#, "is no"),
    ] {
        let error = check(wrong).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}
