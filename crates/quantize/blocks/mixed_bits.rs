//! The choice of weights that get eight bits.

use serde::{Deserialize, Serialize};

use crate::settings::UnsupportedSetting;

/// The choice of weights that get 8 bits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MixedBits {
    /// Those of onnxruntime-genai's rule: the head, and the value and down projections of the first
    /// and last eighth of the layers and of every third between.
    KQuantMixed,
    /// As many as fit, by importance, while all constants of the result take at most this many bytes.
    Bytes(u64),
    /// As many as fit, by importance, while the weights in blocks take at most this many bits each on
    /// average, with scales and zero points.
    AverageBits(f64),
}

impl MixedBits {
    pub(super) fn check(self) -> Result<(), UnsupportedSetting> {
        match self {
            MixedBits::AverageBits(bits) if !(2.0..=16.0).contains(&bits) => {
                Err(UnsupportedSetting::AverageBits(bits))
            }
            _ => Ok(()),
        }
    }
}
