//! The method `entropy`: the range that preserves the distribution of the values best.
//!
//! The method of TensorRT. For each candidate range, P is the distribution over the bins inside,
//! with the outliers added to the outermost bins. Q is P after quantization: the bins are merged
//! into one group per integer, and each group's count is spread evenly over its non-empty bins. The
//! range with the least Kullback-Leibler divergence Σ P·log(P/Q) is taken.
//!
//! Let c be the count of a bin: P = c/N and Q = g/(k·M). Here g is the count of the bin's group, k
//! the number of non-empty bins in the group, and M the count inside. The divergence is then (Σ
//! c·log c - Σ g·log(g/k))/N + log M - log N. With running sums of c, k and c·log c a candidate
//! costs one logarithm per group.
//!
//! Counts are samples of a smooth distribution, and merging bins also removes their random
//! unevenness. This adds (bins - groups)/2N to the expected divergence if no group is empty (Miller
//! and Madow). In a tensor of few values this bias dominates, and the range would shrink to one bin
//! per level. It is subtracted.
//!
//! Exact zeros are excluded. They are exact in every range, and after a Relu they would dominate
//! the distribution.

use octet_kernels::{PrefixSums, log2};

#[cfg(test)]
use super::super::distribution::Bin;
use super::super::distribution::BinnedDistribution;
use super::super::{IntegerRange, Range, TensorStatistics};

/// `1 / (2·ln 2)`: one half, in bits.
const HALF_IN_BITS: f64 = 0.5 * std::f64::consts::LOG2_E;

/// The range with the least divergence.
pub(super) fn range(stats: &TensorStatistics, target: &IntegerRange) -> Range {
    let all = Range::new(stats.min().unwrap_or(0.0), stats.max().unwrap_or(0.0));
    let values = match target.symmetric {
        true => BinnedDistribution::from_magnitudes(stats),
        false => BinnedDistribution::from_statistics(stats),
    };
    let Some(bins) = values.as_ref().and_then(BinSums::new) else {
        return all;
    };
    let candidate = if target.symmetric {
        // Magnitudes use the integers on one side of zero.
        let levels = (target.steps() / 2.0).floor() as usize + 1;
        let (_, end) = bins.best_upper(0, levels);
        let end = bins.edge(end);
        Range::new(-end as f32, end as f32)
    } else {
        let levels = target.steps() as usize + 1;
        let (mut least, mut upper) = bins.best_upper(0, levels);
        let mut lower = 0;
        if all.min < 0.0 && all.max > 0.0 {
            // Optimizes one end at a time, with the best other end so far.
            let (cost, end) = bins.best_lower(upper, levels);
            if cost < least {
                (least, lower) = (cost, end);
                let (cost, end) = bins.best_upper(lower, levels);
                if cost < least {
                    upper = end;
                }
            }
        }
        Range::new(bins.edge(lower) as f32, bins.edge(upper) as f32)
    };
    candidate.within(all)
}

/// Consecutive bins with running sums: entry i sums the bins before bin i.
struct BinSums {
    counts: Vec<f64>,
    mass: Vec<f64>,
    filled: Vec<f64>,
    /// Running sum of count·log count.
    information: Vec<f64>,
    first: f64,
    width: f64,
}

impl BinSums {
    /// The bins from the first to the last that hold nonzero values, or `None` if all values are
    /// zero.
    fn new(values: &BinnedDistribution) -> Option<BinSums> {
        let nonzero = || {
            values
                .bins
                .iter()
                .filter(|bin| (bin.lower, bin.upper) != (0.0, 0.0))
        };
        let (first, last) = (nonzero().next()?.index, nonzero().next_back()?.index);
        let mut counts = vec![0.0; (last - first) as usize + 1];
        for bin in nonzero() {
            counts[(bin.index - first) as usize] += bin.count;
        }
        let running = |term: &dyn Fn(f64) -> f64| {
            let mut sum = 0.0;
            let sums = counts.iter().map(|&count| {
                sum += if count > 0.0 { term(count) } else { 0.0 };
                sum
            });
            std::iter::once(0.0).chain(sums).collect()
        };
        Some(BinSums {
            mass: running(&|count| count),
            filled: running(&|_| 1.0),
            information: running(&|count| count * log2(count)),
            counts,
            first: f64::from(first),
            width: values.width,
        })
    }

    fn len(&self) -> usize {
        self.counts.len()
    }

    /// Lower edge of a bin, which is the upper edge of the previous bin.
    fn edge(&self, bin: usize) -> f64 {
        (self.first + bin as f64) * self.width
    }

    /// Bias-corrected divergence of keeping the bins `start..end`, in `levels` groups. The
    /// outermost bins must not be empty.
    fn divergence(&self, start: usize, end: usize, levels: usize) -> f64 {
        let (head, tail) = (self.counts[start], self.counts[end - 1]);
        let all = self.mass[self.len()];
        let (below, inside) = (self.mass[start], self.mass[end] - self.mass[start]);
        let above = all - self.mass[end];
        let with =
            |count: f64, more: f64| (count + more) * log2(count + more) - count * log2(count);
        let mut sum = self.information[end] - self.information[start];
        sum += if end - start == 1 {
            with(head, below + above)
        } else {
            with(head, below) + with(tail, above)
        };
        let width = end - start;
        let groups = levels.min(width);
        let running = PrefixSums {
            mass: &self.mass,
            filled: &self.filled,
        };
        let (sum, filled_groups) = running.less_groups(sum, start..end, groups, [below, above]);
        let by_chance = (self.filled[end] - self.filled[start] - filled_groups) * HALF_IN_BITS;
        (sum - by_chance) / all + log2(inside) - log2(all)
    }

    /// Returns true if most values are inside. A distribution clipped to very few bins cannot
    /// differ any more and would appear to lose nothing.
    fn contains_most(&self, start: usize, end: usize) -> bool {
        2.0 * (self.mass[end] - self.mass[start]) >= self.mass[self.len()]
    }

    /// The upper end with the least divergence, and that divergence. Ties go to the widest range.
    fn best_upper(&self, start: usize, levels: usize) -> (f64, usize) {
        let ends = (start + 1..=self.len()).rev();
        let filled =
            ends.filter(|&end| self.counts[end - 1] > 0.0 && self.contains_most(start, end));
        let ends = down_to(levels, filled, |end| end - start);
        best(ends, |end| self.divergence(start, end, levels))
    }

    /// The lower end with the least divergence, and that divergence. Ties go to the widest range.
    fn best_lower(&self, end: usize, levels: usize) -> (f64, usize) {
        let starts = 0..end;
        let filled =
            starts.filter(|&start| self.counts[start] > 0.0 && self.contains_most(start, end));
        let starts = down_to(levels, filled, |start| end - start);
        best(starts, |start| self.divergence(start, end, levels))
    }
}

/// The candidates that leave at least `levels` bins, and the first that leaves fewer. Candidates
/// that end in empty bins equal the one at the last non-empty bin, and finer ranges never win.
fn down_to(
    levels: usize,
    places: impl Iterator<Item = usize>,
    width: impl Fn(usize) -> usize,
) -> Vec<usize> {
    let mut nonzero = Vec::new();
    for place in places {
        nonzero.push(place);
        if width(place) <= levels {
            break;
        }
    }
    nonzero
}

/// Returns the least cost and its candidate; ties go to the first. About 64 evenly spaced
/// candidates are tried first. Each round then tries those near the best at an eight times finer
/// spacing, until the spacing is one.
fn best(places: Vec<usize>, cost: impl Fn(usize) -> f64) -> (f64, usize) {
    let mut step = (places.len() / 64).max(1);
    let (mut from, mut to) = (0, places.len());
    let mut best = (f64::INFINITY, 0);
    loop {
        for at in (from..to).step_by(step) {
            let value = cost(places[at]);
            if value < best.0 {
                best = (value, at);
            }
        }
        if step == 1 {
            return (best.0, places.get(best.1).copied().unwrap_or(0));
        }
        (from, to) = (
            best.1.saturating_sub(step),
            (best.1 + step + 1).min(places.len()),
        );
        step = (step / 8).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bins(counts: &[f64]) -> BinSums {
        let bins = (0..).zip(counts).filter(|&(_, &count)| count > 0.0);
        let bins = bins.map(|(index, &count)| Bin {
            index,
            lower: f64::from(index),
            upper: f64::from(index) + 1.0,
            count,
        });
        let values = BinnedDistribution {
            bins: bins.collect(),
            total: counts.iter().sum(),
            width: 1.0,
        };
        BinSums::new(&values).unwrap()
    }

    /// The divergence by its definition.
    fn defined(counts: &[f64], start: usize, end: usize, levels: usize) -> f64 {
        let mut p = counts[start..end].to_vec();
        let last = p.len() - 1;
        p[0] += counts[..start].iter().sum::<f64>();
        p[last] += counts[end..].iter().sum::<f64>();
        let groups = levels.min(end - start);
        let mut q = vec![0.0; p.len()];
        for group in 0..groups {
            let (from, to) = (group * p.len() / groups, (group + 1) * p.len() / groups);
            let inside = &counts[start + from..start + to];
            let filled = inside.iter().filter(|&&count| count > 0.0).count() as f64;
            for at in from..to {
                if counts[start + at] > 0.0 {
                    q[at] = inside.iter().sum::<f64>() / filled;
                }
            }
        }
        let (all_p, all_q) = (p.iter().sum::<f64>(), q.iter().sum::<f64>());
        let term = |(p, q): (&f64, &f64)| match *p > 0.0 {
            true => p / all_p * ((p / all_p) / (q / all_q)).log2(),
            false => 0.0,
        };
        let filled = counts[start..end]
            .iter()
            .filter(|&&count| count > 0.0)
            .count();
        let group =
            |g: usize| start + g * (end - start) / groups..start + (g + 1) * (end - start) / groups;
        let filled_groups = (0..groups)
            .filter(|&g| counts[group(g)].iter().any(|&c| c > 0.0))
            .count();
        let by_chance = (filled - filled_groups) as f64 / (2.0 * all_p * std::f64::consts::LN_2);
        p.iter().zip(&q).map(term).sum::<f64>() - by_chance
    }

    #[test]
    fn the_divergence_matches_its_definition() {
        let counts = [3.0, 0.0, 5.0, 1.0, 8.0, 8.0, 0.0, 2.0, 1.0, 4.0];
        let bins = bins(&counts);
        for (start, end, levels) in [
            (0, 10, 3),
            (0, 10, 10),
            (2, 6, 2),
            (0, 1, 4),
            (3, 8, 4),
            (4, 9, 3),
        ] {
            let (actual, defined) = (
                bins.divergence(start, end, levels),
                defined(&counts, start, end, levels),
            );
            assert!(
                (actual - defined).abs() < 1e-12,
                "{start}..{end}: {actual} for {defined}"
            );
        }
        // One bin per level and no outliers: nothing is lost.
        assert!(bins.divergence(0, 10, 10).abs() < 1e-12);
    }

    #[test]
    fn a_long_thin_tail_is_clipped() {
        // A bell curve with one outlier: the loss inside the bell outweighs the outlier.
        let mut values = Vec::new();
        for i in -400..=400 {
            let x = i as f32 / 100.0;
            let copies = (2000.0 * (-x * x / 2.0).exp()) as usize;
            values.extend(std::iter::repeat_n(x, copies));
        }
        values.push(80.0);
        let actual = range(
            &TensorStatistics::from_values(&values),
            &IntegerRange::default(),
        );
        assert!(actual.max > 2.0 && actual.max < 40.0, "{actual:?}");
        let mirrored = range(
            &TensorStatistics::from_values(&values),
            &IntegerRange::new(-127, 127, true),
        );
        assert!(mirrored.max > 2.0 && mirrored.max < 40.0, "{mirrored:?}");
    }

    #[test]
    fn outliers_on_both_sides_are_clipped() {
        let mut values: Vec<f32> = (-1000..1000).map(|i| i as f32 / 1000.0).collect();
        values.extend([-40.0, 50.0]);
        let actual = range(
            &TensorStatistics::from_values(&values),
            &IntegerRange::default(),
        );
        assert!(actual.min <= -0.99 && actual.max >= 0.99, "{actual:?}");
    }

    #[test]
    fn zeros_do_not_change_the_range() {
        let values: Vec<f32> = (1..5000).map(|i| (i as f32 / 500.0).powi(2)).collect();
        let mut more = values.clone();
        more.extend([0.0; 100_000]);
        let target = IntegerRange::default();
        assert_eq!(
            range(&TensorStatistics::from_values(&more), &target).max,
            range(&TensorStatistics::from_values(&values), &target).max
        );
    }
}
