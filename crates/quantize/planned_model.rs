//! A model whose constants are still to be computed.

use std::collections::{HashMap, HashSet};

use super::Quantized;
use super::recipe::{PlannedRecipe, RecipeError};
use super::stays_float::StaysFloat;

/// A model whose constants are still to be computed, and their recipes.
pub(super) type PlannedModel = (Quantized, Vec<PlannedRecipe>);

/// Constants that stay as they are because their recipes failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedConstants {
    /// Weights without integers, with the reason.
    weights: HashMap<String, StaysFloat>,
    /// Constants with numbers beyond float16.
    halves: HashSet<String>,
}

impl RefusedConstants {
    /// Adds the constant of a recipe that failed. False if the failure does not depend on the
    /// constant.
    pub fn add(&mut self, planned: &PlannedRecipe, error: &RecipeError) -> bool {
        let name = planned.source.name.clone().unwrap_or_default();
        let reason = match error {
            RecipeError::NotFinite => StaysFloat::WeightNotFinite,
            RecipeError::Scale(_) => StaysFloat::WeightTooLarge,
            RecipeError::TooLarge => return self.halves.insert(name),
            RecipeError::Slice { .. } => return false,
        };
        self.weights.insert(name, reason).is_none()
    }

    /// The reason why a weight stays as it is.
    pub(super) fn weight(&self, name: &str) -> Option<StaysFloat> {
        self.weights.get(name).copied()
    }

    /// True if a constant has numbers beyond float16.
    pub(super) fn is_beyond_half(&self, name: &str) -> bool {
        self.halves.contains(name)
    }
}
