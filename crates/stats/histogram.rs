//! A histogram that threads or machines fill in parts; any merge of the parts gives identical bits.
//!
//! Bins are `2^exponent` wide and aligned to zero: bin `i` holds the values of `[i·2^exponent,
//! (i+1)·2^exponent)`, for `i` in `-HALF..HALF`. If a value falls outside, the width doubles and
//! bins merge in pairs, `i → floor(i/2)`. This is lossless, because `floor(floor(x/w)/2) =
//! floor(x/2w)`. A histogram is therefore a function of the set of its values alone, and its
//! exponent is the least that holds them all. Merging is exact, associative and commutative, and
//! independent of the order and division of the data.

mod stored;

use octet_kernels::Extrema;
use serde::{Deserialize, Serialize};

/// Bins on each side of zero.
pub const HALF: usize = 2048;
/// `log2(HALF)`.
const HALF_BITS: i32 = 11;
/// Exponent of the narrowest bins: the step of the smallest f32 numbers.
const FINEST: i32 = -149;
/// Exponents for which the bin width, its inverse and all edges are normal f32 numbers.
const FAST: std::ops::RangeInclusive<i32> = -126..=115;

/// Counts of finite values in bins whose width doubles as the range grows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// `log2` of the bin width; meaningless while there are no counts.
    exponent: i32,
    /// Empty, or the bins from zero up, or the bins of `-HALF..HALF` after the first negative
    /// value.
    counts: Vec<u32>,
    /// Overflows of each count. Empty until one occurs, which is rare, to save memory.
    carries: Vec<u32>,
    /// Sum of all counts.
    total: u64,
}

/// The least exponent whose bins hold `value`, which is finite.
fn exponent_for(value: f32) -> i32 {
    if value == 0.0 {
        return FINEST;
    }
    // Every finite f32 except zero is a normal f64, so the bits hold its exponent and mantissa.
    let bits = f64::from(value).to_bits();
    let power = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let is_power_of_two = bits & ((1 << 52) - 1) == 0;
    // The last bin ends below HALF·width, and the first begins at -HALF·width.
    let bound = if value < 0.0 && is_power_of_two {
        power
    } else {
        power + 1
    };
    (bound - HALF_BITS).max(FINEST)
}

/// `2^power`, for the powers of bin widths and their inverses.
fn power_of_two(power: i32) -> f64 {
    f64::from_bits(((power + 1023) as u64) << 52)
}

/// The bins of a histogram without their counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinLayout {
    exponent: i32,
    count: usize,
}

impl Histogram {
    /// The layout of the bins, or `None` if the histogram is empty.
    pub fn layout(&self) -> Option<BinLayout> {
        let count = self.counts.len();
        (count > 0).then_some(BinLayout {
            exponent: self.exponent,
            count,
        })
    }

    /// Counts `values` and returns their statistics in one pass, if they all lie in the current
    /// bins. An empty histogram uses the bins of `expected`. Otherwise this counts nothing and
    /// returns `None`.
    ///
    /// Expected bins may be wider than these values need. The result of merging with the histogram
    /// that they come from does not change.
    pub(super) fn observe_within(
        &mut self,
        values: &[f32],
        expected: Option<BinLayout>,
    ) -> Option<Extrema> {
        let bins = self.layout().or(expected)?;
        let sure = self.total + values.len() as u64 <= u64::from(u32::MAX);
        if values.is_empty() || !sure || !FAST.contains(&bins.exponent) {
            return None;
        }
        let mut counts = std::mem::take(&mut self.counts);
        let new = counts.is_empty();
        counts.resize(bins.count, 0);
        let width = power_of_two(bins.exponent) as f32;
        let zero = zero_bin_among(bins.count);
        let ends = octet_kernels::count_within(&mut counts, values, width, zero);
        if ends.is_some() || !new {
            self.exponent = bins.exponent;
            self.counts = counts;
        }
        self.total += ends.as_ref().map_or(0, |_| values.len() as u64);
        ends
    }

    /// Counts `values` and ignores those that are not finite. `min` and `max` are the ends of the
    /// finite values; `all_finite` tells that there are no others.
    pub(super) fn observe(&mut self, values: &[f32], min: f32, max: f32, all_finite: bool) {
        self.widen_to(exponent_for(min).max(exponent_for(max)), min < 0.0);
        for values in values.chunks(1 << 31) {
            if self.total + values.len() as u64 <= u64::from(u32::MAX) {
                let mut counts = std::mem::take(&mut self.counts);
                self.total += self.count(&mut counts, values, all_finite);
                self.counts = counts;
            } else {
                let mut counts = vec![0; self.counts.len()];
                self.count(&mut counts, values, all_finite);
                for (bin, count) in counts.into_iter().enumerate() {
                    self.add(bin, count.into());
                }
            }
        }
    }

    /// Counts into `counts`, which stay below 2^32. Returns the number of values counted.
    fn count(&self, counts: &mut [u32], values: &[f32], all_finite: bool) -> u64 {
        if all_finite && FAST.contains(&self.exponent) {
            let width = power_of_two(self.exponent) as f32;
            octet_kernels::count(counts, values, width, zero_bin_among(counts.len()));
            return values.len() as u64;
        }
        self.count_any(counts, values)
    }

    /// Counts values one by one, for any values and any exponent.
    fn count_any(&self, counts: &mut [u32], values: &[f32]) -> u64 {
        // Exact: the product of a power of two and an f32 is an f64 without rounding.
        let per_width = power_of_two(-self.exponent);
        let zero = zero_bin_among(counts.len()) as i32;
        let mut counted = 0;
        for &value in values.iter().filter(|value| value.is_finite()) {
            let bin = (f64::from(value) * per_width).floor() as i32;
            counts[(bin + zero) as usize] += 1;
            counted += 1;
        }
        counted
    }

    fn add(&mut self, bin: usize, count: u64) {
        let sum = u64::from(self.counts[bin]) + count;
        self.counts[bin] = sum as u32;
        self.total += count;
        let over = (sum >> 32) as u32;
        if over > 0 {
            self.carries.resize(self.counts.len(), 0);
            self.carries[bin] += over;
        }
    }

    /// All counts, including empty bins.
    fn all_counts(&self) -> impl Iterator<Item = u64> {
        let over = |bin: usize| u64::from(self.carries.get(bin).copied().unwrap_or(0)) << 32;
        let counts = self.counts.iter().enumerate();
        counts.map(move |(bin, &count)| over(bin) + u64::from(count))
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if other.counts.is_empty() {
            return;
        }
        self.widen_to(other.exponent, other.zero_bin() > 0);
        self.add_all(other);
    }

    /// Adds the counts of `other`, whose bins are no wider and extend no further below zero.
    fn add_all(&mut self, other: &Histogram) {
        let shift = self.exponent - other.exponent;
        let (to, from) = (self.zero_bin() as i64, other.zero_bin() as i64);
        for (bin, count) in other.all_counts().enumerate().filter(|&(_, c)| c > 0) {
            self.add((halved(bin as i64 - from, shift) + to) as usize, count);
        }
    }

    /// Returns true if nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Number of values counted.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Bytes of the counts.
    pub(super) fn bytes(&self) -> usize {
        (self.counts.capacity() + self.carries.capacity()) * size_of::<u32>()
    }

    /// Width of a bin.
    pub(super) fn width(&self) -> f64 {
        power_of_two(self.exponent)
    }

    /// The non-empty bins in ascending order: (lower edge, upper edge, count).
    pub fn bins(&self) -> impl Iterator<Item = (f64, f64, u64)> {
        let (zero, width) = (self.zero_bin() as f64, self.width());
        self.all_counts()
            .enumerate()
            .filter(|&(_, count)| count > 0)
            .map(move |(bin, count)| {
                let lower = (bin as f64 - zero) * width;
                (lower, lower + width, count)
            })
    }

    /// Index of the bin that begins at zero.
    fn zero_bin(&self) -> usize {
        zero_bin_among(self.counts.len())
    }

    /// Widens the bins to at least `exponent`, and adds bins below zero if `negative`.
    fn widen_to(&mut self, exponent: i32, negative: bool) {
        if self.counts.is_empty() {
            self.exponent = exponent;
            self.counts = vec![0; if negative { 2 * HALF } else { HALF }];
            return;
        }
        let below = negative && self.zero_bin() == 0;
        if !below && exponent <= self.exponent {
            return;
        }
        let size = if below { 2 * HALF } else { self.counts.len() };
        let mut wide = Histogram {
            exponent: exponent.max(self.exponent),
            counts: vec![0; size],
            ..Histogram::default()
        };
        wide.add_all(self);
        *self = wide;
    }
}

/// Index of the bin that begins at zero, among this number of bins.
fn zero_bin_among(bins: usize) -> usize {
    if bins > HALF { HALF } else { 0 }
}

/// `floor(bin / 2^times)`.
fn halved(bin: i64, times: i32) -> i64 {
    bin >> times.min(63)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(values: &[f32]) -> Histogram {
        let finite = || values.iter().copied().filter(|v| v.is_finite());
        let mut histogram = Histogram::default();
        if finite().next().is_some() {
            let min = finite().fold(f32::INFINITY, f32::min);
            let max = finite().fold(f32::NEG_INFINITY, f32::max);
            histogram.observe(values, min, max, values.iter().all(|v| v.is_finite()));
        }
        histogram
    }

    #[test]
    fn every_value_is_in_its_bin() {
        let values = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.75,
            3.4e38,
            -3.4e38,
            f32::MIN,
            f32::MAX,
            1e-45,
            -1e-45,
            1e-38,
            -8.0,
        ];
        for value in values {
            let histogram = observed(&[value]);
            let bins: Vec<_> = histogram.bins().collect();
            assert_eq!(bins.len(), 1, "{value}");
            let (lower, upper, count) = bins[0];
            assert_eq!(count, 1);
            assert!(
                lower <= f64::from(value) && f64::from(value) < upper,
                "{value} in {lower}..{upper}"
            );
        }
        let all = observed(&values);
        assert_eq!(all.bins().map(|b| b.2).sum::<u64>(), values.len() as u64);
    }

    #[test]
    fn bins_are_as_narrow_as_the_range_allows() {
        for (values, width) in [
            (&[1.0f32][..], 1.0 / 1024.0),
            (&[0.999][..], 1.0 / 2048.0),
            (&[-1.0][..], 1.0 / 2048.0),
            (&[-1.001, 0.5][..], 1.0 / 1024.0),
        ] {
            let (lower, upper, _) = observed(values).bins().next().unwrap();
            assert_eq!(upper - lower, width, "{values:?}");
        }
    }

    #[test]
    fn counts_exceed_32_bits() {
        let mut many = observed(&[1.0, 1.0, 0.25]);
        for _ in 0..31 {
            many.merge(&many.clone());
        }
        let counts = |histogram: &Histogram| histogram.bins().map(|bin| bin.2).collect::<Vec<_>>();
        assert_eq!(counts(&many), [1 << 31, 1 << 32]);
        // Counts, merges and widens from this state on.
        many.observe(&[0.25, 1.0, 1.0], 0.25, 1.0, true);
        many.merge(&observed(&[-5000.0, 1.0]));
        assert_eq!(counts(&many), [1, (1 << 31) + (1 << 32) + 4]);
        let mut other = observed(&[-5000.0, 0.25, 1.0, 1.0, 1.0]);
        let mut first = observed(&[1.0, 1.0, 0.25]);
        for _ in 0..31 {
            first.merge(&first.clone());
        }
        other.merge(&first);
        assert_eq!(many, other);
    }

    #[test]
    fn values_that_are_not_finite_are_ignored() {
        let odd = observed(&[
            f32::NAN,
            1.0,
            f32::INFINITY,
            -2.0,
            f32::NEG_INFINITY,
            f32::NAN,
        ]);
        assert_eq!(odd, observed(&[1.0, -2.0]));
        assert_eq!(observed(&[f32::NAN]), Histogram::default());
    }
}
