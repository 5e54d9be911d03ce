//! The method `percentile`: a given percentage of the values is inside, so a few outliers do not
//! coarsen the scale.

use super::super::distribution::BinnedDistribution;
use super::super::{IntegerRange, Range, TensorStatistics};

/// The range that holds `percent` percent of the values. Half of the others are clipped on each
/// side. A symmetric target clips those of the greatest magnitude. Values are uniform within a bin.
pub(super) fn range(stats: &TensorStatistics, percent: f64, target: &IntegerRange) -> Range {
    let [range] = ranges(stats, [percent], target);
    range
}

/// The ranges for several percentages, from one distribution.
pub(super) fn ranges<const N: usize>(
    stats: &TensorStatistics,
    percents: [f64; N],
    target: &IntegerRange,
) -> [Range; N] {
    let all = Range::new(stats.min().unwrap_or(0.0), stats.max().unwrap_or(0.0));
    let values = match target.symmetric {
        true => BinnedDistribution::from_magnitudes(stats),
        false => BinnedDistribution::from_statistics(stats),
    };
    percents.map(|percent| {
        let outside = (1.0 - percent / 100.0).max(0.0);
        let candidate = values
            .as_ref()
            .map_or(all, |values| match target.symmetric {
                true => {
                    let end = values.cut_above(outside * values.total) as f32;
                    Range::new(-end, end)
                }
                false => {
                    let cut = outside * values.total / 2.0;
                    Range::new(values.cut_below(cut) as f32, values.cut_above(cut) as f32)
                }
            });
        let candidate = candidate.within(all);
        // If most values are outside, the ends may cross within one bin.
        Range::new(candidate.min.min(candidate.max), candidate.max)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_outside_is_clipped_on_each_side() {
        // 1000 values, at most one per bin: 1 % outside are 5 below and 5 above.
        let values: Vec<f32> = (0..1000).map(|i| i as f32 - 400.0).collect();
        let stats = TensorStatistics::from_values(&values);
        let actual = range(&stats, 99.0, &IntegerRange::default());
        assert!(
            (actual.min + 395.0).abs() <= 0.5 && (actual.max - 594.0).abs() <= 1.0,
            "{actual:?}"
        );
        // Symmetric: all ten are clipped at the greatest magnitudes, which are positive.
        let actual = range(&stats, 99.0, &IntegerRange::new(-127, 127, true));
        assert!(
            actual.min == -400.0 && (actual.max - 589.0).abs() <= 1.0,
            "{actual:?}"
        );
    }

    #[test]
    fn zeros_count_as_values_but_not_as_small_ones() {
        let mut values = vec![0.0f32; 990];
        values.extend((1..=10).map(|i| i as f32));
        let actual = range(
            &TensorStatistics::from_values(&values),
            99.0,
            &IntegerRange::default(),
        );
        assert!(
            actual.min == 0.0 && (actual.max - 5.0).abs() < 0.01,
            "{actual:?}"
        );
        // The smallest nonzero value would be reached at 98 %.
        assert_eq!(
            range(
                &TensorStatistics::from_values(&values),
                97.0,
                &IntegerRange::default()
            ),
            Range::new(0.0, 0.0)
        );
    }

    #[cfg(not(target_family = "wasm"))]
    mod laws {
        use super::*;
        use proptest::prelude::*;

        proptest! {
            #[test]
            fn a_higher_percentile_contains_the_lower_and_100_contains_all(
                values in proptest::collection::vec(-10f32..20.0, 1..200),
                a in 1e-3f64..=100.0, b in 1e-3f64..=100.0, symmetric: bool,
            ) {
                let stats = TensorStatistics::from_values(&values);
                let target = IntegerRange { symmetric, ..IntegerRange::default() };
                let (less, more) = (range(&stats, a.min(b), &target), range(&stats, a.max(b), &target));
                // The lower end moves only where the ends cross, below 50 %.
                if a.min(b) >= 50.0 {
                    prop_assert!(more.min <= less.min, "{less:?} {more:?}");
                }
                prop_assert!(less.max <= more.max, "{less:?} {more:?}");
                let all = Range::new(stats.min().unwrap(), stats.max().unwrap());
                prop_assert_eq!(more.within(all), more);
                if !symmetric {
                    prop_assert_eq!(range(&stats, 100.0, &target), all);
                }
            }
        }
    }
}
