//! How it is said that channels are made alike.

use serde::{Deserialize, Deserializer};

use super::Settings;

/// Either yes or no, or how much.
#[derive(Deserialize)]
#[serde(untagged)]
enum Said {
    Whether(bool),
    Strength(f32),
}

impl Settings {
    /// What `equalize: true` stands for: half of what there is to even out is left to the weights.
    pub const USUAL_STRENGTH: f32 = 0.5;

    /// Whether a number says by how much channels are made alike.
    pub fn is_strength(number: f32) -> bool {
        (0.0..=1.0).contains(&number)
    }
}

/// A strength between 0 and 1; `None` where it isn't wanted.
pub(super) fn strength<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f32>, D::Error> {
    let wrong = "`equalize` must be true, false or a number from 0 to 1";
    match Option::<Said>::deserialize(deserializer) {
        Ok(None | Some(Said::Whether(false))) => Ok(None),
        Ok(Some(Said::Whether(true))) => Ok(Some(Settings::USUAL_STRENGTH)),
        Ok(Some(Said::Strength(number))) if Settings::is_strength(number) => Ok(Some(number)),
        _ => Err(serde::de::Error::custom(wrong)),
    }
}
