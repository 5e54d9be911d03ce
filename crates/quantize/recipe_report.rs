//! The report's entries and notes for constants that recipes computed.

use super::blocks::BlockSettings;
use super::float16::numbers::{LARGEST, SMALLEST};
use super::gptq::decibels;
use super::recipe::{IntegersPlan, MatrixLayout, PlannedRecipe, RecipeKind, RecipeSummary};
use super::scale::integer_bounds;
use super::{QuantizationParameters, QuantizedTensor, TensorKind};
use octet_onnx::schema::DataType;

/// The report's entry for the outcome of a recipe; `None` if it copied a constant.
pub fn recipe_entry(planned: &PlannedRecipe, summary: &RecipeSummary) -> Option<QuantizedTensor> {
    let name = planned.source.name.as_deref().unwrap_or_default();
    match &planned.kind {
        RecipeKind::Copy => None,
        RecipeKind::Half => Some(half_entry(name)),
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
        RecipeKind::Half => half_notes(name, summary),
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

/// The parameters of a block-wise weight that the report shows.
pub(super) struct BlockSummary {
    /// Number of scales.
    pub(super) scales: usize,
    /// The scale of largest magnitude.
    pub(super) scale: f32,
    /// Its zero point.
    pub(super) zero_point: f32,
    /// With GPTQ, the factor by which the output error is lower.
    pub(super) error_reduction: Option<f64>,
}

/// The report's entry for a block-wise weight.
pub(super) fn block_entry(
    name: &str,
    element: DataType,
    summary: &BlockSummary,
    settings: &BlockSettings,
) -> QuantizedTensor {
    let (low, high) = match element {
        DataType::Int4 => (-8, 7),
        DataType::Int8 | DataType::Uint8 => {
            let whole = integer_bounds(element, false, false);
            (whole.low, whole.high)
        }
        _ => (0, (1 << settings.bits) - 1),
    };
    // Signed integers are stored with the middle subtracted.
    let middle = if low < 0 { 1 << (settings.bits - 1) } else { 0 };
    let scale = summary.scale;
    let zero_point = summary.zero_point.round() as i32 - middle;
    let ends = [low, high].map(|integer: i32| (integer - zero_point) as f32 * scale);
    QuantizedTensor {
        name: name.to_owned(),
        kind: TensorKind::Weight,
        element,
        scales: summary.scales,
        scale,
        zero_point,
        min: ends[0].min(ends[1]),
        max: ends[0].max(ends[1]),
        block: Some(settings.size),
        corrected: None,
        compensated: summary.error_reduction.map(decibels),
    }
}

/// The report's entry for a weight in blocks that a recipe computed.
fn blocks_entry(
    name: &str,
    matrix: MatrixLayout,
    settings: &BlockSettings,
    outcome: &RecipeSummary,
) -> QuantizedTensor {
    let summary = BlockSummary {
        scales: matrix.columns * matrix.rows.div_ceil(settings.size),
        scale: outcome.scale,
        zero_point: outcome.zero_point,
        error_reduction: None,
    };
    block_entry(name, DataType::Uint8, &summary, settings)
}

/// The report's entry for a weight of 4-bit floats.
fn four_bit_floats_entry(
    name: &str,
    matrix: MatrixLayout,
    block: usize,
    summary: &RecipeSummary,
) -> QuantizedTensor {
    QuantizedTensor {
        name: name.to_owned(),
        kind: TensorKind::Weight,
        element: DataType::Uint8,
        scales: (matrix.rows * matrix.columns).div_ceil(block),
        scale: summary.scale,
        zero_point: 0,
        min: -summary.scale,
        max: summary.scale,
        block: Some(block),
        corrected: None,
        compensated: None,
    }
}

/// The report's entry for a float16 constant, which has no scale.
fn half_entry(name: &str) -> QuantizedTensor {
    QuantizedTensor {
        name: name.to_owned(),
        kind: TensorKind::Weight,
        element: DataType::Float16,
        scales: 0,
        scale: 1.0,
        zero_point: 0,
        min: -LARGEST,
        max: LARGEST,
        block: None,
        corrected: None,
        compensated: None,
    }
}

/// Notes on a constant with numbers that changed.
fn half_notes(name: &str, summary: &RecipeSummary) -> Vec<String> {
    let numbers = |count| match count {
        1 => "1 number is".to_owned(),
        _ => format!("{count} numbers are"),
    };
    let mut notes = Vec::new();
    if summary.too_large > 0 {
        notes.push(format!(
            "`{name}`: {} too large for float16 and became ±{LARGEST}",
            numbers(summary.too_large)
        ));
    }
    if summary.too_small > 0 {
        notes.push(format!(
            "`{name}`: {} too close to zero for float16 and became ±{SMALLEST:e}",
            numbers(summary.too_small)
        ));
    }
    notes
}
