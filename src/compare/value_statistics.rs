//! Statistics of one value of the float model and of its counterparts.

use serde::{Deserialize, Serialize};

use super::difference::Difference;
use super::fake_quantization::FakeQuantization;

/// Accumulated differences and statistics of one value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ValueStatistics {
    pub(super) accumulated: Difference,
    pub(super) added: Difference,
    pub(super) weights: Difference,
    pub(super) activations: Difference,
    pub(super) count: u64,
    pub(super) outside: u64,
    #[serde(with = "end_bits")]
    pub(super) ends: Option<(f32, f32)>,
    /// True if the quantized model produced another number of elements, as a selection of boxes
    /// may.
    pub(super) unlike: bool,
}

impl ValueStatistics {
    /// Adds the statistics over other samples.
    pub(super) fn merge(&mut self, other: &ValueStatistics) {
        self.accumulated.merge(&other.accumulated);
        self.added.merge(&other.added);
        self.weights.merge(&other.weights);
        self.activations.merge(&other.activations);
        self.count = self.count.saturating_add(other.count);
        self.outside = self.outside.saturating_add(other.outside);
        self.ends = join_ends(self.ends, other.ends);
        self.unlike |= other.unlike;
    }

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

/// The stored form of ends: their bits, because JSON has no infinities.
pub(super) mod end_bits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(ends: &Option<(f32, f32)>, to: S) -> Result<S::Ok, S::Error> {
        ends.map(|(min, max)| [min.to_bits(), max.to_bits()])
            .serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<(f32, f32)>, D::Error> {
        let bits = Option::<[u32; 2]>::deserialize(from)?;
        Ok(bits.map(|[min, max]| (f32::from_bits(min), f32::from_bits(max))))
    }
}

/// The union of two intervals.
pub(super) fn join_ends(one: Option<(f32, f32)>, other: Option<(f32, f32)>) -> Option<(f32, f32)> {
    match (one, other) {
        (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
        (one, other) => one.or(other),
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
