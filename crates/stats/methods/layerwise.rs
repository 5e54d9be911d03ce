//! The method `layerwise-percentile`: the best of three percentiles for each tensor, as in AMD
//! Quark.

use super::super::distribution::BinnedDistribution;
use super::super::expected_error::{ExpectedError, Power};
use super::super::{IntegerRange, Range, TensorStatistics};
use super::{Measure, percentile};

/// Candidates.
const PERCENTILES: [f64; 3] = [99.99, 99.999, 99.99999];

/// The candidate with the least expected error; ties go to the first.
pub(super) fn range(stats: &TensorStatistics, measure: Measure, target: &IntegerRange) -> Range {
    let power = match measure {
        Measure::Mae => Power::Absolute,
        Measure::Mse => Power::Squared,
    };
    let candidates = percentile::ranges(stats, PERCENTILES, target);
    let Some(values) = BinnedDistribution::from_statistics(stats) else {
        return Range::new(0.0, 0.0);
    };
    let error = ExpectedError::new(&values);
    let mut best: Option<(Range, f64)> = None;
    for range in candidates {
        let cost = error.mean(target.grid(range), power);
        if best.is_none_or(|(_, least)| cost < least) {
            best = Some((range, cost));
        }
    }
    best.map_or(Range::new(0.0, 0.0), |(range, _)| range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_absolute_error_clips_an_outlier_that_the_squared_error_does_not() {
        // A million values up to 1 and thirty at 20: clipping them makes the steps of all others 20
        // times finer.
        let mut values: Vec<f32> = (0..1_000_000).map(|i| i as f32 * 1e-6).collect();
        values.extend([20.0; 30]);
        let stats = TensorStatistics::from_values(&values);
        let actual = |measure| range(&stats, measure, &IntegerRange::default()).max;
        assert!(actual(Measure::Mae) < 1.01, "{}", actual(Measure::Mae));
        assert_eq!(actual(Measure::Mse), 20.0);
    }
}
