//! Mixed precision (the key `guard`): all rules, none, or a switch for each.

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The form in the document: a switch for all rules, or the rules.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
#[allow(dead_code)] // a schema only
pub(super) enum SwitchOrRules {
    Switch(bool),
    Rules(GuardSettings),
}

/// The rules of mixed precision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct GuardSettings {
    /// A range whose expected error is twice the least one is widened.
    pub ranges: bool,
    /// An activation with fewer than six integers for half of its values gets 16 bits.
    pub finer: bool,
    /// An activation stays float where 16 bits are not enough or not allowed.
    pub float: bool,
    /// A weight whose own error is ten times the median of all weights gets 16 bits.
    pub weights: bool,
    /// With the method `auto`, the logits at the end of a model get 16 bits.
    pub outputs: bool,
    /// The largest growth of the weights' bytes, as a fraction.
    pub budget: f64,
}

impl GuardSettings {
    /// All rules, with the default budget.
    pub const ALL: GuardSettings = GuardSettings {
        ranges: true,
        finer: true,
        float: true,
        weights: true,
        outputs: true,
        budget: 0.25,
    };

    /// No rule.
    pub const NONE: GuardSettings = GuardSettings {
        ranges: false,
        finer: false,
        float: false,
        weights: false,
        outputs: false,
        budget: 0.0,
    };
}

impl Default for GuardSettings {
    fn default() -> GuardSettings {
        GuardSettings::ALL
    }
}

impl Serialize for GuardSettings {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match *self {
            GuardSettings::ALL => to.serialize_bool(true),
            GuardSettings::NONE => to.serialize_bool(false),
            other => GuardSettings::serialize(&other, to),
        }
    }
}

impl<'de> Deserialize<'de> for GuardSettings {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<GuardSettings, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = GuardSettings;

            fn expecting(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
                to.write_str("true, false, or a switch for each rule")
            }

            fn visit_bool<E>(self, all: bool) -> Result<GuardSettings, E> {
                Ok(if all {
                    GuardSettings::ALL
                } else {
                    GuardSettings::NONE
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<GuardSettings, A::Error> {
                GuardSettings::deserialize(MapAccessDeserializer::new(map))
            }
        }

        from.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_serializes_to_a_boolean_where_that_is_enough() {
        let read = |text: &str| serde_json::from_str::<GuardSettings>(text);
        let written = |guard: GuardSettings| serde_json::to_string(&guard).unwrap();
        assert_eq!(read("true").unwrap(), GuardSettings::ALL);
        assert_eq!(read("{}").unwrap(), GuardSettings::ALL);
        assert_eq!(written(GuardSettings::ALL), "true");
        assert_eq!(written(read("false").unwrap()), "false");
        let some = read(r#"{ "float": false, "budget": 0.5 }"#).unwrap();
        assert_eq!((some.float, some.finer, some.budget), (false, true, 0.5));
        assert_eq!(read(&written(some)).unwrap(), some);
        for (text, says) in [
            ("3", "a switch for each rule"),
            (r#"{ "bugdet": 1 }"#, "unknown field `bugdet`"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
