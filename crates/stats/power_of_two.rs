//! Scales that are powers of two, for hardware that rescales by shifts.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Restriction of scales to powers of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PowerOfTwo {
    /// No restriction.
    #[default]
    No,
    /// The least power of two that is not below the scale, so nothing is clipped.
    Covering,
    /// The power of two nearest to the scale, as in AMD Quark; it may clip three tenths of the
    /// range.
    Nearest,
}

impl PowerOfTwo {
    /// Returns true if scales must be powers of two.
    pub fn is_required(self) -> bool {
        self != PowerOfTwo::No
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PowerOfTwoSetting {
    Switch(bool),
    Rule(Rule),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Rule {
    Nearest,
}

impl Serialize for PowerOfTwo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let setting = match self {
            PowerOfTwo::Nearest => PowerOfTwoSetting::Rule(Rule::Nearest),
            other => PowerOfTwoSetting::Switch(other.is_required()),
        };
        setting.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PowerOfTwo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PowerOfTwo, D::Error> {
        match PowerOfTwoSetting::deserialize(deserializer) {
            Ok(PowerOfTwoSetting::Switch(false)) => Ok(PowerOfTwo::No),
            Ok(PowerOfTwoSetting::Switch(true)) => Ok(PowerOfTwo::Covering),
            Ok(PowerOfTwoSetting::Rule(Rule::Nearest)) => Ok(PowerOfTwo::Nearest),
            Err(_) => Err(serde::de::Error::custom(
                "`power_of_two` must be true, false or nearest",
            )),
        }
    }
}
