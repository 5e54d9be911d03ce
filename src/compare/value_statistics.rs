//! Statistics of one value of the float model and of its counterparts.

use super::difference::Difference;
use super::fake_quantization::FakeQuantization;

/// Accumulated differences and statistics of one value.
#[derive(Default)]
pub(super) struct ValueStatistics {
    pub(super) accumulated: Difference,
    pub(super) added: Difference,
    pub(super) weights: Difference,
    pub(super) activations: Difference,
    pub(super) count: u64,
    pub(super) outside: u64,
    pub(super) ends: Option<(f32, f32)>,
    /// True if the quantized model produced another number of elements, as a selection of boxes
    /// may.
    pub(super) unlike: bool,
}

impl ValueStatistics {
    /// Updates the statistics of the float values.
    pub(super) fn observe(&mut self, values: &[f32], rounding: Option<&FakeQuantization>) {
        let (mut min, mut max) = self.ends.unwrap_or((f32::INFINITY, f32::NEG_INFINITY));
        for &value in values {
            min = min.min(value);
            max = max.max(value);
        }
        self.ends = (min <= max).then_some((min, max));
        self.count += values.len() as u64;
        if let Some(outside) = rounding.map(FakeQuantization::outside) {
            self.outside += values.iter().filter(|&&value| outside(value)).count() as u64;
        }
    }
}

/// The values clamped to a range; NaN stays.
pub(super) fn clamp_all(values: &[&[f32]], (low, high): (f32, f32)) -> Vec<Vec<f32>> {
    let clamp = |&value: &f32| match value {
        value if value < low => low,
        value if value > high => high,
        value => value,
    };
    let each = values
        .iter()
        .map(|values| values.iter().map(clamp).collect());
    each.collect()
}
