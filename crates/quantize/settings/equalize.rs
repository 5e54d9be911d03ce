//! The key `equalize`: a boolean or a strength.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::Settings;

/// A switch, or a strength from 0 to 1.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(super) enum Equalize {
    Switch(bool),
    Strength(#[schemars(range(min = 0.0, max = 1.0))] f32),
}

impl Settings {
    /// The strength of `equalize: true`: half of the differences moves to the weights.
    pub const USUAL_STRENGTH: f32 = 0.5;

    /// True for a valid strength.
    pub fn is_strength(number: f32) -> bool {
        (0.0..=1.0).contains(&number)
    }
}

/// Reads a strength; `None` for false.
pub(super) fn strength<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f32>, D::Error> {
    let wrong = "`equalize` must be true, false or a number from 0 to 1";
    match Option::<Equalize>::deserialize(deserializer) {
        Ok(None | Some(Equalize::Switch(false))) => Ok(None),
        Ok(Some(Equalize::Switch(true))) => Ok(Some(Settings::USUAL_STRENGTH)),
        Ok(Some(Equalize::Strength(number))) if Settings::is_strength(number) => Ok(Some(number)),
        _ => Err(serde::de::Error::custom(wrong)),
    }
}
