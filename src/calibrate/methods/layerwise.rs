//! The method `layerwise-percentile`: the best of three percentiles for each tensor, as in AMD
//! Quark.

use super::super::distribution::Distribution;
use super::super::expected_error::{ExpectedError, Power};
use super::super::{Observation, Range, Target};
use super::{Measure, percentile};

/// Candidates.
const PERCENTILES: [f64; 3] = [99.99, 99.999, 99.99999];

/// The candidate with the least expected error; ties go to the first.
pub(super) fn range(seen: &Observation, measure: Measure, target: &Target) -> Range {
    let power = match measure {
        Measure::Mae => Power::Absolute,
        Measure::Mse => Power::Squared,
    };
    let candidates = percentile::ranges(seen, PERCENTILES, target);
    let Some(values) = Distribution::of(seen) else {
        return Range::new(0.0, 0.0);
    };
    let error = ExpectedError::of(&values);
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
    fn a_lone_outlier_is_cut_by_the_absolute_error_and_kept_by_the_squared_one() {
        // A million values up to 1 and thirty at 20: clipping them makes the steps of all others 20
        // times finer.
        let mut values: Vec<f32> = (0..1_000_000).map(|i| i as f32 * 1e-6).collect();
        values.extend([20.0; 30]);
        let seen = Observation::of(&values);
        let found = |measure| range(&seen, measure, &Target::default()).max;
        assert!(found(Measure::Mae) < 1.01, "{}", found(Measure::Mae));
        assert_eq!(found(Measure::Mse), 20.0);
    }
}
