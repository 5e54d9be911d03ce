//! Data of a report section, with the order of its keys.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::Serialize;

/// Plain data. Maps keep the order of their keys.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Value {
    Null,
    Bool(bool),
    Integer(i128),
    Number(f64),
    Text(String),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

impl Value {
    /// Converts data through its JSON. Data that cannot be JSON becomes `Null`.
    pub fn of(data: &impl Serialize) -> Value {
        // Through text, since a `serde_json::Value` would sort the keys.
        serde_json::to_string(data)
            .and_then(|text| serde_json::from_str(&text))
            .unwrap_or(Value::Null)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Json)
    }
}

struct Json;

impl<'de> Visitor<'de> for Json {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order_and_numbers_their_kind() {
        #[derive(serde::Serialize)]
        struct Data {
            z: u64,
            a: Option<f32>,
            m: Vec<(&'static str, bool)>,
            n: f64,
        }
        let value = Value::of(&Data {
            z: u64::MAX,
            a: Some(0.1),
            m: vec![("x", true)],
            n: f64::NAN,
        });
        let pair = Value::List(vec![Value::Text("x".into()), Value::Bool(true)]);
        let wanted = vec![
            ("z".into(), Value::Integer(u64::MAX.into())),
            ("a".into(), Value::Number(0.1)),
            ("m".into(), Value::List(vec![pair])),
            ("n".into(), Value::Null),
        ];
        assert_eq!(value, Value::Map(wanted));
    }
}
