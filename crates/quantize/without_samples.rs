//! The schemes without samples on a model in memory: the model is planned, and its recipes are run.

use super::block_scheme::{blocks_entry, four_bit_floats_entry, plan_blocks, quantize_dequantized};
use super::bodies::with_bodies;
use super::dynamic::{DynamicSettings, plan_dynamic};
use super::float16::{self, Float16Settings, plan_float16};
use super::planned_model::{PlannedModel, RefusedConstants};
use super::recipe::{IntegersPlan, PlannedRecipe, RecipeKind, RecipeSummary, run_in_memory};
use super::weight_only::{WeightSettings, plan_weights};
use super::{
    BlockForm, BlockSettings, QuantizationParameters, QuantizeError, Quantized, QuantizedTensor,
    TensorKind,
};
use octet_graph::{Model, Node};
use octet_stats::CalibrationStatistics;

/// Quantizes the weights of a prepared model in blocks.
///
/// `settings` decide the representation; `of` returns the other settings of a node. Nodes in
/// `keep_float` stay float, and so do other operators than `operators`, if given. `seen` has the
/// Gram matrices for the method `gptq`.
pub fn quantize_blocks(
    model: &Model,
    settings: &BlockSettings,
    of: &dyn Fn(&Node) -> BlockSettings,
    keep_float: &[String],
    operators: Option<&[String]>,
    seen: Option<&CalibrationStatistics>,
) -> Result<Quantized, QuantizeError> {
    settings.check()?;
    match settings.form {
        BlockForm::MatMulNBits | BlockForm::MatMulBnb4 => in_memory(&|refused| {
            with_bodies(model, false, &|flat| {
                plan_blocks(flat, of, keep_float, operators, refused, seen)
            })
        }),
        BlockForm::Dequantize => {
            let planned = with_bodies(model, false, &|flat| {
                let quantized = quantize_dequantized(flat, of, keep_float, operators, seen)?;
                Ok((quantized, Vec::new()))
            })?;
            Ok(planned.0)
        }
    }
}

/// Quantizes a prepared model, whose values all have types, dynamically.
pub fn quantize_dynamic(
    model: &Model,
    settings: &DynamicSettings,
) -> Result<Quantized, QuantizeError> {
    in_memory(&|refused| with_bodies(model, true, &|flat| plan_dynamic(flat, settings, refused)))
}

/// The form of a prepared model whose weights are 8-bit integers.
pub fn quantize_weights(
    model: &Model,
    settings: &WeightSettings,
) -> Result<Quantized, QuantizeError> {
    in_memory(&|refused| with_bodies(model, true, &|flat| plan_weights(flat, settings, refused)))
}

/// Converts a prepared model, whose values all have types, to float16.
pub fn quantize_float16(
    model: &Model,
    settings: &Float16Settings,
) -> Result<Quantized, QuantizeError> {
    in_memory(&|refused| with_bodies(model, true, &|flat| plan_float16(flat, settings, refused)))
}

/// Computes all constants of a planned model. If one can't be computed, the model is planned again
/// without its recipe.
pub(super) fn in_memory(
    plan: &dyn Fn(&RefusedConstants) -> Result<PlannedModel, QuantizeError>,
) -> Result<Quantized, QuantizeError> {
    in_memory_without(RefusedConstants::default(), plan)
}

/// Computes all constants of a planned model without those that are refused from the start.
pub(super) fn in_memory_without(
    mut refused: RefusedConstants,
    plan: &dyn Fn(&RefusedConstants) -> Result<PlannedModel, QuantizeError>,
) -> Result<Quantized, QuantizeError> {
    Ok(compute(plan, &mut refused, &|_| true)?.0)
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
        let mut computed = Vec::new();
        for planned in recipes {
            if !wanted(&planned) {
                left.push(planned);
                continue;
            }
            let mut recipe = planned.start()?;
            let bytes = planned.source.float_bytes()?;
            match run_in_memory(recipe.as_mut(), &bytes) {
                Ok(results) => {
                    computed.extend(planned.constants(results)?);
                    let summary = recipe.summary();
                    quantized.tensors.extend(recipe_entry(&planned, &summary));
                    quantized.notes.extend(recipe_notes(&planned, &summary));
                }
                Err(error) => failed |= refused.add(&planned, &error),
            }
        }
        if !failed {
            quantized.model.graph.fill_constants(computed);
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
