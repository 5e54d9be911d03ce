//! A model whose constants are still to be computed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Quantized;
use super::float16_numbers::{STANDS_FOR_INFINITY, TOO_LARGE};
use super::ranges::ActivationRanges;
use super::recipe::{PlannedRecipe, RecipeError};
use super::stays_float::StaysFloat;

/// A model whose constants are still to be computed, and their recipes.
pub(super) type PlannedModel = (Quantized, Vec<PlannedRecipe>);

/// Constants that stay as they are because their recipes failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefusedConstants {
    /// Weights without integers, with the reason.
    weights: BTreeMap<String, RefusedWeight>,
    /// Constants with numbers beyond float16.
    halves: BTreeSet<String>,
    /// Activations that were beyond float16 on the samples.
    activations: BTreeSet<String>,
}

/// A reason why a weight has no integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum RefusedWeight {
    NotFinite,
    TooLarge,
}

impl RefusedConstants {
    /// No constants yet, and the activations that leave the range of float16.
    pub(super) fn with_activations(ranges: Option<ActivationRanges<'_>>) -> RefusedConstants {
        let is_beyond = |min: f32, max: f32| {
            let size = min.abs().max(max.abs());
            size >= TOO_LARGE && size < STANDS_FOR_INFINITY
        };
        let activations: BTreeSet<String> = match ranges {
            None => BTreeSet::new(),
            Some(ActivationRanges::Provided(ranges)) => {
                let far = ranges.iter();
                let far = far.filter(|(_, range)| is_beyond(range.min, range.max));
                far.map(|(name, _)| name.clone()).collect()
            }
            Some(ActivationRanges::Observed(seen, _)) => {
                let far = seen.iter().filter(|(_, seen)| {
                    let ends = seen.min().zip(seen.max());
                    ends.is_some_and(|(min, max)| is_beyond(min, max))
                });
                far.map(|(name, _)| name.clone()).collect()
            }
        };
        RefusedConstants {
            activations,
            ..RefusedConstants::default()
        }
    }

    /// True if an activation was beyond float16 on the samples.
    pub(super) fn is_far_activation(&self, name: &str) -> bool {
        self.activations.contains(name)
    }

    /// Adds the constant of a recipe that failed. False if the failure does not depend on the
    /// constant.
    pub fn add(&mut self, planned: &PlannedRecipe, error: &RecipeError) -> bool {
        let name = planned.source.name.clone().unwrap_or_default();
        let reason = match error {
            RecipeError::NotFinite => RefusedWeight::NotFinite,
            RecipeError::Scale(_) => RefusedWeight::TooLarge,
            RecipeError::TooLarge => return self.halves.insert(name),
            RecipeError::Slice { .. } => return false,
        };
        self.weights.insert(name, reason).is_none()
    }

    /// The reason why a weight stays as it is.
    pub(super) fn weight(&self, name: &str) -> Option<StaysFloat> {
        self.weights.get(name).map(|refused| match refused {
            RefusedWeight::NotFinite => StaysFloat::WeightNotFinite,
            RefusedWeight::TooLarge => StaysFloat::WeightTooLarge,
        })
    }

    /// True if a constant has numbers beyond float16.
    pub(super) fn is_beyond_half(&self, name: &str) -> bool {
        self.halves.contains(name)
    }
}
