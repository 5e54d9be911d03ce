//! What the guard may do: all of it, nothing, or each thing by itself.

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What may be changed of what the settings say in general, so that nothing is ruined.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct GuardSettings {
    /// Ranges that cut off too much become wider.
    pub ranges: bool,
    /// Activations whose integers would be too coarse get 16 bits.
    pub finer: bool,
    /// Activations that 16 bits are too few for, or that may not have them, stay float.
    pub float: bool,
    /// Weights whose own error is out of line with the others' get 16 bits.
    pub weights: bool,
    /// With the method `auto`, the scores that a model ends in get 16 bits.
    pub outputs: bool,
    /// By how much of their bytes the integers of all weights may grow by this.
    pub budget: f64,
}

impl GuardSettings {
    /// All of it.
    pub const ALL: GuardSettings = GuardSettings {
        ranges: true,
        finer: true,
        float: true,
        weights: true,
        outputs: true,
        budget: 0.25,
    };

    /// Nothing.
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
        struct Said;

        impl<'de> Visitor<'de> for Said {
            type Value = GuardSettings;

            fn expecting(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
                to.write_str("true, false, or what the guard may do")
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

        from.deserialize_any(Said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_briefly_as_it_is_meant() {
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
            ("3", "what the guard may do"),
            (r#"{ "bugdet": 1 }"#, "unknown field `bugdet`"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
