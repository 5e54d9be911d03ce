//! The method `mse`: the range of the least expected squared error, for any scale or for powers of
//! two.
//!
//! The cost of clipping and rounding is exact for the distribution ([`ExpectedError`]). The search
//! is heuristic, but it starts from the full range and accepts only improvements. It first tries
//! ranges that shrink by a fifth at a time from either or both ends, on groups of eight bins. Then
//! it moves each end in ever smaller steps, the last of them on single bins.

use super::super::distribution::BinnedDistribution;
use super::super::expected_error::{ExpectedError, Power};
use super::super::integer_range::{exponent_of, power_of_two};
use super::super::{IntegerRange, Range, TensorStatistics};

/// Factor by which an end shrinks, and number of times: down to 1/200 of the range.
const SHRINK: (f64, usize) = (0.8, 24);
/// Relative moves of the ends on grouped bins and on single bins.
const COARSE_MOVES: [f64; 3] = [0.1, 0.05, 0.025];
const FINE_MOVES: [f64; 2] = [0.02, 0.008];
/// Bins per group.
const TOGETHER: i32 = 8;
/// Maximum number of rounds per size of move.
const ROUNDS: usize = 4;

/// The range of the least expected squared error.
pub(super) fn range(stats: &TensorStatistics, target: &IntegerRange) -> Range {
    let Some(values) = BinnedDistribution::from_statistics(stats) else {
        return Range::new(0.0, 0.0);
    };
    let all = Range::new(stats.min().unwrap_or(0.0), stats.max().unwrap_or(0.0));
    let (coarse, fine) = (
        ExpectedError::new(&values.coarser(TOGETHER)),
        ExpectedError::new(&values),
    );
    if target.power_of_two.is_required() {
        return power_of_two_range(&coarse, &fine, target, all);
    }
    let mut search = Search::new(&coarse, target, all);
    search.shrink();
    COARSE_MOVES.iter().for_each(|&size| search.climb(size));
    let candidate = search.best;
    let mut search = Search::new(&fine, target, all);
    search.consider(candidate);
    FINE_MOVES.iter().for_each(|&size| search.climb(size));
    search.best
}

/// The best range so far.
struct Search<'a> {
    error: &'a ExpectedError,
    target: &'a IntegerRange,
    all: Range,
    best: Range,
    cost: f64,
}

impl Search<'_> {
    fn new<'a>(error: &'a ExpectedError, target: &'a IntegerRange, all: Range) -> Search<'a> {
        Search {
            error,
            target,
            all,
            best: all,
            cost: error.mean(target.grid(all), Power::Squared),
        }
    }

    /// Accepts the range if it is better, and returns whether it is.
    fn consider(&mut self, range: Range) -> bool {
        let range = range.within(self.all);
        if range == self.best {
            return false;
        }
        let cost = self.error.mean(self.target.grid(range), Power::Squared);
        let better = cost < self.cost;
        if better {
            (self.best, self.cost) = (range, cost);
        }
        better
    }

    /// Tries `from` with its ends scaled by these factors, mirrored if the range must be symmetric.
    fn scaled(&mut self, from: Range, lower: f64, upper: f64) -> bool {
        let (mut min, mut max) = (f64::from(from.min) * lower, f64::from(from.max) * upper);
        if self.target.symmetric {
            max = (f64::from(from.max).max(-f64::from(from.min))) * upper;
            min = -max;
        }
        self.consider(Range::new(min as f32, max as f32))
    }

    fn shrink(&mut self) {
        let both_sides = !self.target.symmetric && self.all.min < 0.0 && self.all.max > 0.0;
        let mut part = 1.0;
        for _ in 0..SHRINK.1 {
            part *= SHRINK.0;
            self.scaled(self.all, part, part);
            if both_sides {
                self.scaled(self.all, 1.0, part);
                self.scaled(self.all, part, 1.0);
            }
        }
    }

    /// Moves each end by the fraction `size` while this reduces the error.
    fn climb(&mut self, size: f64) {
        let (less, more) = (1.0 - size, 1.0 + size);
        let moves: &[(f64, f64)] = match self.target.symmetric {
            true => &[(less, less), (more, more)],
            false => &[(1.0, less), (1.0, more), (less, 1.0), (more, 1.0)],
        };
        for _ in 0..ROUNDS {
            let mut better = false;
            for &(lower, upper) in moves {
                better |= self.scaled(self.best, lower, upper);
            }
            if !better {
                return;
            }
        }
    }
}

/// The best range among those whose scale is a power of two. It tries eight scales, the coarsest of
/// which clips nothing, and for each scale the zero points.
fn power_of_two_range(
    coarse: &ExpectedError,
    fine: &ExpectedError,
    target: &IntegerRange,
    all: Range,
) -> Range {
    let whole = target.power_of_two_range(all);
    let Some(grid) = target.grid(whole) else {
        return all;
    };
    let mut best = (whole, fine.mean(Some(grid), Power::Squared));
    let widest = exponent_of(grid.scale);
    for exponent in (widest - 7).max(-126)..=widest {
        let (min, max) = target.covered(all);
        let scale = power_of_two(exponent);
        // In steps: the ends of the observed values, and the excess over the integers.
        let (min, max) = (
            (min / scale).round_ties_even(),
            (max / scale).round_ties_even(),
        );
        let over = (max - min - target.steps()).max(0.0);
        let cost = |lowest: f64, error: &ExpectedError| {
            let range = target.range_at(exponent, lowest)?;
            Some((range, error.mean(target.grid(range), Power::Squared)))
        };
        // Zero is always among the integers.
        let places = (min.max(-target.steps()), (min + over).min(0.0));
        // Starts with the excess clipped from both ends in proportion, then moves in ever smaller
        // steps.
        let proportional = (min + over * (min / (min - max).min(-1.0))).round_ties_even();
        let mut lowest = proportional.max(places.0).min(places.1);
        let mut least = cost(lowest, coarse).map_or(f64::INFINITY, |(_, cost)| cost);
        let mut size = if target.symmetric {
            0.0
        } else {
            (over / 2.0).min(64.0).floor()
        };
        while size >= 1.0 {
            for moved in [lowest - size, lowest + size] {
                let moved = moved.max(places.0).min(places.1);
                if let Some((_, candidate)) = cost(moved, coarse)
                    && candidate < least
                {
                    (lowest, least) = (moved, candidate);
                }
            }
            size = (size / 2.0).floor();
        }
        if let Some(candidate) = cost(lowest, fine)
            && candidate.1 < best.1
        {
            best = candidate;
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PowerOfTwo;

    fn cost(stats: &TensorStatistics, target: &IntegerRange, range: Range) -> f64 {
        ExpectedError::new(&BinnedDistribution::from_statistics(stats).unwrap())
            .mean(target.grid(range), Power::Squared)
    }

    #[test]
    fn an_outlier_among_many_values_is_clipped() {
        // 2^20 values up to 1, one at 2. Steps of 2/255 cost (2/255)²/12 = 5.1e-6 in the mean, and
        // steps of 1/255 a quarter of that. Clipping the outlier to 1 costs 1/2^20 = 1e-6.
        let mut values: Vec<f32> = (0..1 << 20).map(|i| i as f32 / 1_048_576.0).collect();
        values.push(2.0);
        let actual = range(
            &TensorStatistics::from_values(&values),
            &IntegerRange::default(),
        );
        assert!(
            actual.min == 0.0 && (actual.max - 1.0).abs() < 0.08,
            "{actual:?}"
        );
    }

    #[test]
    fn uniform_values_are_not_clipped() {
        let values: Vec<f32> = (0..10_000).map(|i| i as f32 / 5_000.0 - 1.0).collect();
        let actual = range(
            &TensorStatistics::from_values(&values),
            &IntegerRange::default(),
        );
        assert!(actual.min < -0.985 && actual.max > 0.985, "{actual:?}");
    }

    #[test]
    fn scales_are_powers_of_two_if_required() {
        let values: Vec<f32> = (0..10_000)
            .map(|i| (i as f32 / 5_000.0 - 1.0).powi(5) * 3.0)
            .collect();
        for target in [
            IntegerRange::default(),
            IntegerRange::new(-127, 127, true),
            IntegerRange::new(-128, 127, false),
        ] {
            let target = IntegerRange {
                power_of_two: PowerOfTwo::Covering,
                ..target
            };
            let scale = target
                .grid(range(&TensorStatistics::from_values(&values), &target))
                .unwrap()
                .scale;
            assert_eq!(scale, power_of_two(exponent_of(scale)), "{target:?}");
        }
        // Zero stays among the integers for values of one sign.
        let target = IntegerRange {
            power_of_two: PowerOfTwo::Covering,
            ..IntegerRange::default()
        };
        let positive: Vec<f32> = values.iter().map(|v| v.abs()).collect();
        let negative: Vec<f32> = values.iter().map(|v| -v.abs()).collect();
        assert_eq!(
            range(&TensorStatistics::from_values(&positive), &target).min,
            0.0
        );
        assert!(range(&TensorStatistics::from_values(&negative), &target).max >= 0.0);
    }

    #[cfg(not(target_family = "wasm"))]
    mod laws {
        use super::*;
        use proptest::prelude::*;

        fn long_tailed(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f32>> {
            (
                proptest::collection::vec(-1f32..1.0, count),
                1i32..8,
                -20f32..20.0,
                any::<bool>(),
            )
                .prop_map(|(values, power, factor, relu)| {
                    let value = |v: f32| v.abs().powi(power) * v.signum() * factor;
                    values
                        .into_iter()
                        .map(|v| if relu { value(v).max(0.0) } else { value(v) })
                        .collect()
                })
        }

        proptest! {
            #[test]
            fn mse_is_never_worse_nor_wider_than_min_max(
                values in long_tailed(1..400), symmetric: bool,
            ) {
                let stats = TensorStatistics::from_values(&values);
                let target = if symmetric { IntegerRange::new(-127, 127, true) } else { IntegerRange::default() };
                let all = Range::new(stats.min().unwrap(), stats.max().unwrap());
                let actual = range(&stats, &target);
                prop_assert_eq!(actual.within(all), actual);
                prop_assert!(cost(&stats, &target, actual) <= cost(&stats, &target, all));
                let target = IntegerRange { power_of_two: PowerOfTwo::Covering, ..target };
                let (actual, whole) = (range(&stats, &target), target.power_of_two_range(all));
                prop_assert!(cost(&stats, &target, actual) <= cost(&stats, &target, whole));
            }

            // With few values in few bins, the cost changes abruptly from range to range.
            #[test]
            fn mse_is_close_to_an_exhaustive_search(values in long_tailed(100..400)) {
                let stats = TensorStatistics::from_values(&values);
                let target = IntegerRange::new(-127, 127, true);
                let end = f64::from(stats.max().unwrap()).max(-f64::from(stats.min().unwrap()));
                let least = (1..=400)
                    .map(|i| (end * f64::from(i) / 400.0) as f32)
                    .map(|end| cost(&stats, &target, Range::new(-end, end)))
                    .fold(f64::INFINITY, f64::min);
                prop_assert!(cost(&stats, &target, range(&stats, &target)) <= least * 1.5 + 1e-300);
            }
        }
    }
}
