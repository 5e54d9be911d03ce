//! How it is said that channels are made alike.

use serde::{Deserialize, Deserializer};

/// What `equalize: true` stands for: half of what there is to even out is left to the weights.
pub const USUAL: f32 = 0.5;

/// Either yes or no, or how much.
#[derive(Deserialize)]
#[serde(untagged)]
enum Said {
    Whether(bool),
    Strength(f32),
}

/// A strength between 0 and 1; `None` where it isn't wanted.
pub(super) fn strength<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f32>, D::Error> {
    let wrong = "`equalize` must be true, false or a number from 0 to 1";
    match Option::<Said>::deserialize(deserializer) {
        Ok(None | Some(Said::Whether(false))) => Ok(None),
        Ok(Some(Said::Whether(true))) => Ok(Some(USUAL)),
        Ok(Some(Said::Strength(strength))) if (0.0..=1.0).contains(&strength) => Ok(Some(strength)),
        _ => Err(serde::de::Error::custom(wrong)),
    }
}
