//! The distribution of a tensor's values according to its histogram: uniform within each bin, zeros
//! separate.
//!
//! Bins are clipped to the observed minimum and maximum. A bin of zero width is a point mass: after
//! a Clip, for example, the last bin holds the maximum alone. Exact zeros are a point mass of their
//! own. A Relu creates very many, and they round without error at every scale. Spread over their
//! bin they would look like small values that do have an error.

use super::{HALF, TensorStatistics};

/// Values between two ends, or at one point if the ends are equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bin {
    /// Index of the bin in the histogram; bin 0 begins at zero.
    pub(super) index: i32,
    pub(super) lower: f64,
    pub(super) upper: f64,
    pub(super) count: f64,
}

/// The finite values of one tensor, or their magnitudes.
#[derive(Clone, Debug)]
pub(super) struct BinnedDistribution {
    /// Non-empty bins in ascending order.
    pub(super) bins: Vec<Bin>,
    /// Number of values.
    pub(super) total: f64,
    /// Width of a full bin.
    pub(super) width: f64,
}

impl BinnedDistribution {
    /// The distribution of the observed values, or `None` if there are none.
    pub(super) fn from_statistics(stats: &TensorStatistics) -> Option<BinnedDistribution> {
        let ends = (f64::from(stats.min()?), f64::from(stats.max()?));
        let width = stats.histogram().width();
        let counts = stats
            .histogram()
            .bins()
            .map(|(lower, _, count)| ((lower / width) as i32, count));
        Some(BinnedDistribution::new(counts, width, stats.zeros(), ends))
    }

    /// The distribution of the magnitudes, or `None` if there are no values. Bin -1-i mirrors bin
    /// i.
    pub(super) fn from_magnitudes(stats: &TensorStatistics) -> Option<BinnedDistribution> {
        let greatest = f64::from(stats.max()?.abs()).max(f64::from(stats.min()?.abs()));
        let ends = (f64::from(stats.least_magnitude()?), greatest);
        let width = stats.histogram().width();
        let mut folded = vec![0; HALF];
        for (lower, _, count) in stats.histogram().bins() {
            let index = (lower / width) as i32;
            folded[if index < 0 { -1 - index } else { index } as usize] += count;
        }
        let counts = (0..).zip(folded).filter(|&(_, count)| count > 0);
        Some(BinnedDistribution::new(counts, width, stats.zeros(), ends))
    }

    fn new(
        counts: impl Iterator<Item = (i32, u64)>,
        width: f64,
        zeros: u64,
        (min, max): (f64, f64),
    ) -> BinnedDistribution {
        let mut bins = Vec::new();
        let mut total = 0.0;
        let mut push = |index, lower, upper, count: u64| {
            total += count as f64;
            bins.push(Bin {
                index,
                lower,
                upper,
                count: count as f64,
            });
        };
        for (index, mut count) in counts {
            if index == 0 && zeros > 0 {
                push(index, 0.0, 0.0, zeros);
                count -= zeros;
            }
            if count > 0 {
                let lower = f64::from(index) * width;
                // The greatest magnitude may be the upper end of the bin that counts it.
                push(
                    index,
                    lower.max(min),
                    (lower + width).min(max).max(min),
                    count,
                );
            }
        }
        BinnedDistribution { bins, total, width }
    }

    /// Merges every `factor` bins into one, which is less exact and faster to evaluate. Point
    /// masses stay.
    pub(super) fn coarser(&self, factor: i32) -> BinnedDistribution {
        let mut bins: Vec<Bin> = Vec::with_capacity(self.bins.len() / factor as usize + 3);
        for bin in &self.bins {
            match bins.last_mut() {
                Some(last)
                    if last.index.div_euclid(factor) == bin.index.div_euclid(factor)
                        && last.upper > last.lower
                        && bin.upper > bin.lower =>
                {
                    last.upper = bin.upper;
                    last.count += bin.count;
                }
                _ => bins.push(*bin),
            }
        }
        BinnedDistribution {
            bins,
            total: self.total,
            width: self.width * f64::from(factor),
        }
    }

    /// The variance of the values. A uniform bin from a to b has the mean (a + b)/2 and the mean
    /// square (a² + ab + b²)/3. Both are taken from the middle of the range, to avoid cancellation
    /// where the values are large and their variance is small.
    fn variance(&self) -> f64 {
        let (Some(first), Some(last)) = (self.bins.first(), self.bins.last()) else {
            return 0.0;
        };
        let middle = 0.5 * (first.lower + last.upper);
        let (mut sum, mut squares) = (0.0, 0.0);
        for bin in &self.bins {
            let (a, b) = (bin.lower - middle, bin.upper - middle);
            sum += bin.count * 0.5 * (a + b);
            squares += bin.count * (a * a + a * b + b * b) / 3.0;
        }
        let mean = sum / self.total;
        (squares / self.total - mean * mean).max(0.0)
    }

    /// The value that has `count` values above it.
    pub(super) fn cut_above(&self, count: f64) -> f64 {
        let mut left = count.max(0.0);
        for bin in self.bins.iter().rev() {
            if left < bin.count {
                return bin.upper - (bin.upper - bin.lower) * (left / bin.count);
            }
            left -= bin.count;
        }
        self.bins.first().map_or(0.0, |bin| bin.lower)
    }

    /// The value that has `count` values below it.
    pub(super) fn cut_below(&self, count: f64) -> f64 {
        let mut left = count.max(0.0);
        for bin in &self.bins {
            if left < bin.count {
                return bin.lower + (bin.upper - bin.lower) * (left / bin.count);
            }
            left -= bin.count;
        }
        self.bins.last().map_or(0.0, |bin| bin.upper)
    }
}

impl TensorStatistics {
    /// Variance of the finite values according to the histogram, or `None` if there are none.
    pub fn variance(&self) -> Option<f64> {
        BinnedDistribution::from_statistics(self).map(|values| values.variance())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variance_matches_the_values() {
        let even = Vec::from_iter((0..10_000).map(|i| 7.0 + i as f32 / 10_000.0));
        let actual = TensorStatistics::from_values(&even).variance().unwrap();
        assert!((actual * 12.0 - 1.0).abs() < 1e-3, "{actual}");
        // Two points at the ends of the range: the variance is a quarter of their squared distance.
        let actual = TensorStatistics::from_values(&[0.0, 0.0, 6.0, 6.0]).variance();
        assert_eq!(actual, Some(9.0));
        assert_eq!(TensorStatistics::from_values(&[f32::NAN]).variance(), None);
    }

    #[test]
    fn zeros_and_a_maximum_on_an_edge_are_point_masses() {
        // Bins are 1/256 wide for values from 4 up to 8, so 6 begins a bin.
        let actual = BinnedDistribution::from_statistics(&TensorStatistics::from_values(&[
            0.0, -0.0, 0.001, 6.0, 6.0,
        ]))
        .unwrap();
        let ends: Vec<_> = actual
            .bins
            .iter()
            .map(|b| (b.lower, b.upper, b.count))
            .collect();
        assert_eq!(
            ends,
            [(0.0, 0.0, 2.0), (0.0, 1.0 / 256.0, 1.0), (6.0, 6.0, 2.0)]
        );
        assert_eq!(actual.total, 5.0);
        assert!(
            BinnedDistribution::from_statistics(&TensorStatistics::from_values(&[f32::NAN]))
                .is_none()
        );
    }

    #[test]
    fn magnitudes_combine_both_signs() {
        let actual = BinnedDistribution::from_magnitudes(&TensorStatistics::from_values(&[
            -3.0, 3.0, -0.5, 1.0, 0.0,
        ]))
        .unwrap();
        assert_eq!(actual.total, 5.0);
        assert_eq!(actual.bins.last().map(|b| b.upper), Some(3.0));
        assert_eq!(actual.cut_above(0.0), 3.0);
        assert!((actual.cut_above(2.5) - 1.0).abs() < actual.width);
    }

    #[test]
    fn cuts_interpolate_within_a_bin() {
        // Two values share one bin of width 1/1024, which is clipped to the maximum.
        let stats = TensorStatistics::from_values(&[1.0, 1.0 + 1.0 / 2048.0]);
        let actual = BinnedDistribution::from_statistics(&stats).unwrap();
        assert_eq!(actual.cut_above(0.0), 1.0 + 1.0 / 2048.0);
        assert_eq!(actual.cut_above(1.0), 1.0 + 1.0 / 4096.0);
        assert_eq!(actual.cut_below(0.0), 1.0);
        assert_eq!(actual.cut_below(9.0), 1.0 + 1.0 / 2048.0);
    }
}
