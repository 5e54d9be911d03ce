//! Constants of a planned model: computed in memory, or left to a conversion piece by piece.

use std::collections::{HashMap, HashSet};

use super::block_scheme::{blocks_entry, four_bit_floats_entry};
use super::float16;
use super::recipe::{
    IntegersPlan, PlannedRecipe, RecipeError, RecipeKind, RecipeSummary, run_in_memory,
};
use super::stays_float::StaysFloat;
use super::{QuantizationParameters, QuantizeError, Quantized, QuantizedTensor, TensorKind};

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

/// Computes all constants of a planned model. If one can't be computed, the model is planned again
/// without its recipe.
pub(super) fn in_memory(
    plan: &dyn Fn(&RefusedConstants) -> Result<PlannedModel, QuantizeError>,
) -> Result<Quantized, QuantizeError> {
    Ok(compute(plan, &mut RefusedConstants::default(), &|_| true)?.0)
}

/// Plans a model and computes the constants that are `wanted`; returns the other recipes. Constants
/// that can't be computed are added to `refused`.
pub(super) fn compute(
    plan: &dyn Fn(&RefusedConstants) -> Result<PlannedModel, QuantizeError>,
    refused: &mut RefusedConstants,
    wanted: &dyn Fn(&PlannedRecipe) -> bool,
) -> Result<PlannedModel, QuantizeError> {
    loop {
        let (mut quantized, recipes) = plan(refused)?;
        let mut failed = false;
        let mut left = Vec::new();
        for planned in recipes {
            if !wanted(&planned) {
                left.push(planned);
                continue;
            }
            let mut recipe = planned.start()?;
            let bytes = planned.source.float_bytes()?;
            match run_in_memory(recipe.as_mut(), &bytes) {
                Ok(results) => {
                    for constant in planned.constants(results)? {
                        quantized.model.graph.initializers.insert(constant);
                    }
                    let summary = recipe.summary();
                    quantized.tensors.extend(recipe_entry(&planned, &summary));
                    quantized.notes.extend(recipe_notes(&planned, &summary));
                }
                Err(error) => failed |= refused.add(&planned, &error),
            }
        }
        if !failed {
            return Ok((quantized, left));
        }
    }
}

/// The report's entry for the outcome of a recipe; `None` if it copied a constant.
pub fn recipe_entry(planned: &PlannedRecipe, summary: &RecipeSummary) -> Option<QuantizedTensor> {
    let name = planned.source.name.as_deref().unwrap_or_default();
    match &planned.kind {
        RecipeKind::Copy => None,
        RecipeKind::Half => Some(float16::report_entry(name)),
        RecipeKind::Blocks(matrix, settings, _) => {
            Some(blocks_entry(name, *matrix, settings, summary))
        }
        RecipeKind::FourBitFloats(matrix, _, block) => {
            Some(four_bit_floats_entry(name, *matrix, *block, summary))
        }
        RecipeKind::Integers(plan) => Some(integers_entry(name, plan, summary)),
    }
}

/// Notes on the outcome of a recipe, a sentence each.
pub fn recipe_notes(planned: &PlannedRecipe, summary: &RecipeSummary) -> Vec<String> {
    let name = planned.source.name.as_deref().unwrap_or_default();
    match planned.kind {
        RecipeKind::Half => float16::notes(name, summary),
        _ => Vec::new(),
    }
}

fn integers_entry(name: &str, plan: &IntegersPlan, summary: &RecipeSummary) -> QuantizedTensor {
    let largest = QuantizationParameters {
        element: plan.form.element.data_type(),
        axis: None,
        scales: vec![summary.scale],
        zero_points: vec![summary.zero_point as i32],
    };
    QuantizedTensor {
        scales: plan.channels(),
        ..QuantizedTensor::new(name, TensorKind::Weight, &largest)
    }
}
