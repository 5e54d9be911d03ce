//! Reading a settings document as plain JSON values, with duplicate keys refused.

use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A value without duplicate keys. Parsers of JSON and YAML silently take the last of two.
#[derive(Debug)]
pub struct Document(pub Value);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Document, D::Error> {
        from.deserialize_any(UniqueKeys)
    }
}

struct UniqueKeys;

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = Document;

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("keys with values")
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(Document(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
        Ok(Document(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Document, E> {
        Ok(Document(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Document, E> {
        Ok(Document(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Document, E> {
        Ok(Document(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Document, E> {
        Ok(Document(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Document, A::Error> {
        let mut values = Vec::new();
        while let Some(Document(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Document(values.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut values = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if values.contains_key(&key) {
                let message = format!("the key `{key}` is there twice; remove one");
                return Err(A::Error::custom(message));
            }
            let Document(value) = map.next_value()?;
            values.insert(key, value);
        }
        Ok(Document(values.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_without_duplicates_is_read_unchanged() {
        let text = r#"{ "a": [1, -2, 0.5, "b", null, true], "c": { "d": {}, "e": { "d": 3 } } }"#;
        let Document(value) = serde_json::from_str(text).unwrap();
        assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn duplicate_keys_are_refused_at_any_depth() {
        for text in [
            r#"{ "a": 1, "a": 1 }"#,
            r#"{ "b": [{ "c": { "a": 1, "d": 2, "a": 3 } }] }"#,
        ] {
            let error = serde_json::from_str::<Document>(text).unwrap_err();
            assert!(error.to_string().contains("`a` is there twice"), "{error}");
        }
    }
}
