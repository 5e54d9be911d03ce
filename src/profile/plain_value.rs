//! Data of a report section, with the order of its keys.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::Serialize;

/// Plain data. Maps keep the order of their keys.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum PlainValue {
    Null,
    Bool(bool),
    Integer(i128),
    Number(f64),
    Text(String),
    List(Vec<PlainValue>),
    Map(Vec<(String, PlainValue)>),
}

impl PlainValue {
    /// Converts data through its JSON. Data that cannot be JSON becomes `Null`.
    pub fn from_data(data: &impl Serialize) -> PlainValue {
        // Through text, since a `serde_json::Value` would sort the keys.
        serde_json::to_string(data)
            .and_then(|text| serde_json::from_str(&text))
            .unwrap_or(PlainValue::Null)
    }
}

impl<'de> Deserialize<'de> for PlainValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PlainValue, D::Error> {
        deserializer.deserialize_any(Json)
    }
}

struct Json;

impl<'de> Visitor<'de> for Json {
    type Value = PlainValue;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<PlainValue, E> {
        Ok(PlainValue::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<PlainValue, E> {
        Ok(PlainValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<PlainValue, E> {
        Ok(PlainValue::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<PlainValue, E> {
        Ok(PlainValue::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<PlainValue, E> {
        Ok(PlainValue::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<PlainValue, E> {
        Ok(PlainValue::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<PlainValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(PlainValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<PlainValue, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(PlainValue::Map(map))
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
        let value = PlainValue::from_data(&Data {
            z: u64::MAX,
            a: Some(0.1),
            m: vec![("x", true)],
            n: f64::NAN,
        });
        let pair = PlainValue::List(vec![PlainValue::Text("x".into()), PlainValue::Bool(true)]);
        let wanted = vec![
            ("z".into(), PlainValue::Integer(u64::MAX.into())),
            ("a".into(), PlainValue::Number(0.1)),
            ("m".into(), PlainValue::List(vec![pair])),
            ("n".into(), PlainValue::Null),
        ];
        assert_eq!(value, PlainValue::Map(wanted));
    }
}
