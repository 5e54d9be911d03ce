//! Scales that are powers of two, for hardware that shifts.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Which powers of two scales are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PowerOfTwo {
    /// Any scale.
    #[default]
    No,
    /// The least that is not below the scale, so that nothing is cut off.
    Covering,
    /// The nearest to the scale, which may cut off three tenths of the range: AMD Quark's.
    Nearest,
}

impl PowerOfTwo {
    /// Whether scales must be powers of two.
    pub fn is_asked(self) -> bool {
        self != PowerOfTwo::No
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Said {
    Whether(bool),
    Which(Which),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Which {
    Nearest,
}

impl Serialize for PowerOfTwo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let said = match self {
            PowerOfTwo::Nearest => Said::Which(Which::Nearest),
            other => Said::Whether(other.is_asked()),
        };
        said.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PowerOfTwo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PowerOfTwo, D::Error> {
        match Said::deserialize(deserializer) {
            Ok(Said::Whether(false)) => Ok(PowerOfTwo::No),
            Ok(Said::Whether(true)) => Ok(PowerOfTwo::Covering),
            Ok(Said::Which(Which::Nearest)) => Ok(PowerOfTwo::Nearest),
            Err(_) => Err(serde::de::Error::custom(
                "`power_of_two` must be true, false or nearest",
            )),
        }
    }
}
