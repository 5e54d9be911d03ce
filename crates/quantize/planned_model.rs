//! A model whose constants are still to be computed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Quantized;
use super::float16::far_activations;
use super::ranges::ActivationRanges;
use super::recipe::{PlannedRecipe, RecipeError};
use super::stays_float::StaysFloat;
use octet_graph::Model;

/// A model whose constants are still to be computed, and their recipes.
pub(super) type PlannedModel = (Quantized, Vec<PlannedRecipe>);

/// Constants that stay as they are because their recipes failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefusedConstants {
    /// Weights without integers, with the reason.
    weights: BTreeMap<String, RefusedWeight>,
    /// Constants with numbers beyond float16.
    halves: BTreeSet<String>,
    /// Activations that were beyond float16 on the samples, with their largest magnitude.
    far: BTreeMap<String, f32>,
    /// True if samples showed the activations.
    seen: bool,
}

/// A reason why a weight has no integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum RefusedWeight {
    NotFinite,
    TooLarge,
}

impl RefusedConstants {
    /// No constants yet, and the activations of a model that leave the range of float16.
    pub(super) fn with_activations(
        model: &Model,
        ranges: Option<ActivationRanges<'_>>,
    ) -> RefusedConstants {
        RefusedConstants {
            far: ranges.map_or_else(BTreeMap::new, |ranges| far_activations(model, ranges)),
            seen: ranges.is_some(),
            ..RefusedConstants::default()
        }
    }

    /// True if an activation was beyond float16 on the samples.
    pub(super) fn is_far_activation(&self, name: &str) -> bool {
        self.far.contains_key(name)
    }

    /// The activations beyond float16 on the samples, with their largest magnitude.
    pub(super) fn far_activations(&self) -> &BTreeMap<String, f32> {
        &self.far
    }

    /// Forgets an activation that is no longer beyond float16.
    pub(super) fn brought_near(&mut self, name: &str) {
        self.far.remove(name);
    }

    /// True if samples showed the activations.
    pub(super) fn saw_samples(&self) -> bool {
        self.seen
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
