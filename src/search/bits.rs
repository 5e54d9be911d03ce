//! The numbers of bits that a tensor may get.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number of bits, or float.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Bits {
    /// 4-bit integers.
    #[serde(rename = "4")]
    Four,
    /// 8-bit integers.
    #[serde(rename = "8")]
    Eight,
    /// 16-bit integers.
    #[serde(rename = "16")]
    Sixteen,
    /// 32-bit floats: the tensor is not quantized.
    #[serde(rename = "float")]
    Float,
}

impl Bits {
    /// All of them, from few bits to many.
    pub const ALL: [Bits; 4] = [Bits::Four, Bits::Eight, Bits::Sixteen, Bits::Float];

    /// Bits of one value in the file.
    pub fn count(self) -> usize {
        match self {
            Bits::Four => 4,
            Bits::Eight => 8,
            Bits::Sixteen => 16,
            Bits::Float => 32,
        }
    }

    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Bits::Four => "4",
            Bits::Eight => "8",
            Bits::Sixteen => "16",
            Bits::Float => "float",
        }
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that is no number of bits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a number of bits that a tensor may get: choose among 4, 8, 16 and float")]
pub struct UnknownBits(String);

impl FromStr for Bits {
    type Err = UnknownBits;

    fn from_str(text: &str) -> Result<Bits, UnknownBits> {
        let mut all = Bits::ALL.into_iter();
        let known = all.find(|bits| bits.name() == text.trim());
        known.ok_or_else(|| UnknownBits(text.trim().into()))
    }
}
