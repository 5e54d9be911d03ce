//! A document as it was written, before anybody asks what it means.

use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A value in which no key stands twice: readers of JSON and YAML take the last of two, and say nothing.
#[derive(Debug)]
pub struct Document(pub Value);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Document, D::Error> {
        from.deserialize_any(Written)
    }
}

struct Written;

impl<'de> Visitor<'de> for Written {
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
        let mut found = Vec::new();
        while let Some(Document(value)) = list.next_element()? {
            found.push(value);
        }
        Ok(Document(found.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut found = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if found.contains_key(&key) {
                let twice = format!("the key `{key}` stands twice; leave one out");
                return Err(A::Error::custom(twice));
            }
            let Document(value) = map.next_value()?;
            found.insert(key, value);
        }
        Ok(Document(found.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_once_is_read_as_it_is() {
        let text = r#"{ "a": [1, -2, 0.5, "b", null, true], "c": { "d": {}, "e": { "d": 3 } } }"#;
        let Document(found) = serde_json::from_str(text).unwrap();
        assert_eq!(found, serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_at_any_depth() {
        for text in [
            r#"{ "a": 1, "a": 1 }"#,
            r#"{ "b": [{ "c": { "a": 1, "d": 2, "a": 3 } }] }"#,
        ] {
            let error = serde_json::from_str::<Document>(text).unwrap_err();
            assert!(error.to_string().contains("`a` stands twice"), "{error}");
        }
    }
}
