//! The method `auto`: for each tensor the best range of several methods.
//!
//! By the mean squared error alone the best range is always that of `mse`, which clips outliers
//! even for a negligible gain. Outliers are often what a network depends on: the score of the only
//! box, the class with high confidence. Therefore the full range, percentiles and `mse` each
//! propose a range. Among those whose expected error is nearly the least, the widest is taken, so
//! outliers are clipped only for a real gain. If most values have enough integers even in the wider
//! range, its error may exceed the least by more. If there are enough integers beyond the observed
//! range as well, the range gets as much [`Headroom`] as further samples are expected to need.

use super::super::distribution::BinnedDistribution;
use super::super::expected_error::{ExpectedError, Power};
use super::super::{IntegerRange, Range, TensorStatistics};
use super::headroom::Headroom;
use super::{mse, percentile};

/// Percentiles among the candidates.
const PERCENTILES: [f64; 4] = [99.9, 99.99, 99.999, 99.9999];
/// Limit of the error relative to the least: 0.4 dB.
const NEARLY: f64 = 1.1;
/// The limit if half of the values have at least `PLENTY` integers: 1.8 dB. Chosen by the tasks of
/// the corpus (docs/accuracy.md).
const NEARLY_OF_PLENTY: f64 = 1.5;
const PLENTY: f64 = 20.0;
/// Headroom is not computed if it can save at most this fraction of the rounding error.
const NOT_WORTH: f64 = 0.01;

/// The widest of the proposed ranges whose expected squared error is nearly the least, with
/// headroom.
pub(super) fn range(stats: &TensorStatistics, target: &IntegerRange) -> Range {
    let all = Range::new(stats.min().unwrap_or(0.0), stats.max().unwrap_or(0.0));
    let Some(values) = BinnedDistribution::from_statistics(stats) else {
        return all;
    };
    let percentiles = percentile::ranges(stats, PERCENTILES, target);
    let any_scale = [all].into_iter().chain(percentiles);
    let proposed = any_scale
        .map(|range| match target.power_of_two.is_required() {
            true => target.power_of_two_range(range),
            false => range,
        })
        .chain([mse::range(stats, target)]);
    let error = ExpectedError::new(&values);
    let judged: Vec<(Range, f64)> = proposed
        .map(|range| (range, error.mean(target.grid(range), Power::Squared)))
        .collect();
    let least = judged
        .iter()
        .map(|&(_, cost)| cost)
        .fold(f64::INFINITY, f64::min);
    let width = |range: Range| {
        let (min, max) = target.covered(range);
        max - min
    };
    // Without a shortest half the values are a few points, and a wider range costs them no
    // integers.
    let half = stats
        .shortest_half()
        .map_or(f64::INFINITY, |half| half.width);
    let plenty = |range| half * target.steps() >= PLENTY * width(range);
    let nearly = |range| match plenty(range) {
        true => NEARLY_OF_PLENTY,
        false => NEARLY,
    };
    let mut best = all;
    let mut widest = -1.0;
    for (range, cost) in judged {
        if cost <= least * nearly(range) && width(range) > widest {
            (best, widest) = (range, width(range));
        }
    }
    // A symmetric range usually has headroom at one end, and a range with a power-of-two scale at
    // both.
    let headroom = match target.symmetric || target.power_of_two.is_required() {
        true => None,
        false => Headroom::new(stats),
    };
    let Some(headroom) = headroom else {
        return best;
    };
    let mut wider = headroom.wider(best).into_iter();
    let Some((_, beyond)) = wider.next() else {
        return best;
    };
    let rounding = error.mean(target.grid(best), Power::Squared);
    if beyond < NOT_WORTH * rounding {
        return best;
    }
    let mut lowest = rounding + beyond;
    for (range, beyond) in wider.filter(|&(range, _)| plenty(range)) {
        let cost = error.mean(target.grid(range), Power::Squared);
        if cost <= least * NEARLY_OF_PLENTY && cost + beyond < lowest {
            (best, lowest) = (range, cost + beyond);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(stats: &TensorStatistics, range: Range) -> f64 {
        let error = ExpectedError::new(&BinnedDistribution::from_statistics(stats).unwrap());
        error.mean(IntegerRange::default().grid(range), Power::Squared)
    }

    #[test]
    fn auto_is_nearly_as_good_as_the_best_and_no_narrower() {
        let values: Vec<f32> = (-3000..5000).map(|i| (i as f32 / 2000.0).powi(5)).collect();
        let stats = TensorStatistics::from_values(&values);
        let target = IntegerRange::default();
        let (actual, best) = (range(&stats, &target), mse::range(&stats, &target));
        assert!(cost(&stats, actual) <= cost(&stats, best) * NEARLY_OF_PLENTY);
        assert!(actual.max - actual.min >= best.max - best.min);
    }

    #[test]
    fn outliers_are_clipped_sooner_with_fewer_integers() {
        // One value at 1.2, the others within ±1. Steps of 2.2/255 instead of 2/255 cost (2.2/2)² =
        // 1.21 times as much, and clipping the outlier costs next to nothing.
        let whole = |factor: f32| {
            let even = (-200_000..200_000).map(|i| i as f32 / 200_000.0);
            let most = even.clone().map(|value| value * factor);
            let values = Vec::from_iter(even.step_by(10).chain(most).chain([1.2]));
            range(
                &TensorStatistics::from_values(&values),
                &IntegerRange::default(),
            )
            .max == 1.2
        };
        assert!(whole(1.0), "half of the values have 116 integers");
        assert!(!whole(0.1), "half of the values have 13 integers");
    }

    #[test]
    fn few_values_get_headroom_and_many_do_not() {
        // Ten uniform samples; their maximum is 1 in five of them and greater in the others.
        let actual = |values: usize| {
            let mut all = TensorStatistics::new();
            for sample in 0..10 {
                let end = 1.0 + (sample as f32 - 4.0).max(0.0) / 20.0;
                let even = (0..values).map(|i| i as f32 / values as f32);
                let mut stats = TensorStatistics::from_values(&Vec::from_iter(even.chain([end])));
                stats.end_sample();
                all.merge(&stats);
            }
            range(&all, &IntegerRange::default()).max
        };
        assert!(actual(100) > 1.26, "{}", actual(100));
        assert!(actual(100_000) <= 1.25, "{}", actual(100_000));
    }

    #[test]
    fn outliers_that_cost_little_are_not_clipped() {
        let values: Vec<f32> = (0..1000).map(|i| i as f32 / 1000.0).collect();
        let stats = TensorStatistics::from_values(&values);
        let all = Range::new(0.0, 0.999);
        assert_eq!(range(&stats, &IntegerRange::default()), all);
    }
}
