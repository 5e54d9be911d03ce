//! The shortest half of a tensor's values: the narrowest interval that holds half of them, a
//! measure of scale that outliers do not move.
//!
//! A range that holds every value can be so wide that most values fall on a few integers. Examples:
//! attention scores beside a mask of -10,000, a channel a hundred times larger than the others,
//! boxes concatenated with probabilities. A sum over all values does not show this, because the few
//! large values dominate it.

use super::TensorStatistics;
use super::distribution::{Bin, BinnedDistribution};

/// The narrowest interval that holds half of the values, point masses excluded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShortestHalf {
    /// Width of the interval, at least the width of one bin of the histogram.
    pub width: f64,
    /// True if the interval spans more than a few bins. Otherwise its true width may be smaller.
    pub resolved: bool,
}

/// Minimum number of values for a result.
const FEWEST: f64 = 64.0;
/// Bins that an interval must span before its width counts as exact.
const RESOLVED: usize = 2;

impl TensorStatistics {
    /// Returns the shortest half of the values, or `None` if too few values differ. Zeros and the
    /// values at the ends of a Clip are excluded, because one integer holds all of them.
    pub fn shortest_half(&self) -> Option<ShortestHalf> {
        let distribution = BinnedDistribution::from_statistics(self)?;
        let bins: Vec<&Bin> = distribution
            .bins
            .iter()
            .filter(|bin| bin.upper > bin.lower)
            .collect();
        let total: f64 = bins.iter().map(|bin| bin.count).sum();
        if total < FEWEST || total < 0.01 * distribution.total {
            return None;
        }
        let mut best: Option<ShortestHalf> = None;
        let (mut first, mut inside) = (0, 0.0);
        for last in 0..bins.len() {
            inside += bins[last].count;
            while inside - bins[first].count >= 0.5 * total {
                inside -= bins[first].count;
                first += 1;
            }
            let width = bins[last].upper - bins[first].lower;
            if inside >= 0.5 * total && best.is_none_or(|shortest| width < shortest.width) {
                let resolved = last - first >= RESOLVED;
                best = Some(ShortestHalf { width, resolved });
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(values: impl IntoIterator<Item = f32>) -> TensorStatistics {
        TensorStatistics::from_values(&Vec::from_iter(values))
    }

    fn even(count: usize, low: f32, high: f32) -> impl Iterator<Item = f32> {
        (0..count).map(move |i| low + (high - low) * (i as f32 + 0.5) / count as f32)
    }

    #[test]
    fn uniform_values_give_half_of_their_range() {
        let half = observed(even(10_000, -1.0, 3.0)).shortest_half().unwrap();
        assert!((half.width - 2.0).abs() < 0.01 && half.resolved, "{half:?}");
    }

    #[test]
    fn outliers_do_not_change_the_width() {
        let far = even(1000, 0.0, 1.0).chain(even(400, 900.0, 1000.0));
        let half = observed(far).shortest_half().unwrap();
        assert!(half.width <= 1.0 && !half.resolved, "{half:?}");
        // Nearly half of the values are a mask beside scores, and the width does not grow.
        let mask = even(1000, -5.0, 5.0).chain(std::iter::repeat_n(-10_000.0, 900));
        assert!(observed(mask).shortest_half().unwrap().width < 40.0);
    }

    #[test]
    fn zeros_and_the_ends_of_a_clip_are_excluded() {
        let clipped = even(1000, 0.0, 6.0)
            .chain(std::iter::repeat_n(0.0, 5000))
            .chain(std::iter::repeat_n(6.0, 3000));
        let half = observed(clipped).shortest_half().unwrap();
        assert!((half.width - 3.0).abs() < 0.02, "{half:?}");
        assert_eq!(
            observed(std::iter::repeat_n(0.0, 500)).shortest_half(),
            None
        );
        assert_eq!(observed(even(20, 0.0, 1.0)).shortest_half(), None);
    }
}
