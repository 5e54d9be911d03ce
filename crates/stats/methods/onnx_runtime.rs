//! ONNX Runtime's own percentile and entropy calibration, for exact comparisons with it.
//!
//! These follow `onnxruntime.quantization` 1.31 with all samples collected at once, over the
//! histograms of [`NumpyHistogram`]. Percentile gives identical bits. Entropy follows the same
//! steps in the same precision, including numpy's pairwise order of sums. Only the logarithm
//! differs: here it is correctly rounded, there it is within a few units of the last place,
//! depending on the processor. Candidates that agree to seven digits may therefore swap places.

use octet_kernels::log2;

use super::super::{NumpyHistogram, Range};

/// ONNX Runtime's `compute_percentile` with magnitudes.
pub(super) fn percentile(counted: &NumpyHistogram, percent: f64, all: Range) -> Range {
    let total = counted.total() as f64;
    let mut share = 0.0;
    let bin = counted.counts().iter().position(|&count| {
        share += count as f64 / total;
        share >= percent / 100.0
    });
    // There is one more edge than bins.
    let bin = bin.unwrap_or(counted.counts().len());
    match counted.edges().get(bin) {
        Some(&edge) => clamped(-edge, edge, all),
        None => all,
    }
}

/// Clamps each end on its own side only, as ONNX Runtime does. If no value is near zero, the lower
/// end may then exceed the upper end. Every range is later extended to zero, so both ends become
/// the one nearer to zero.
fn clamped(min: f32, max: f32, all: Range) -> Range {
    let (min, max) = (min.max(all.min), max.min(all.max));
    if min <= max {
        Range::new(min, max)
    } else if min.abs() < max.abs() {
        Range::new(min, min)
    } else {
        Range::new(max, max)
    }
}

/// ONNX Runtime's `get_entropy_threshold`. Of all ranges around the middle bin it takes the one
/// with the least divergence after merging into `levels` groups.
pub(super) fn entropy(counted: &NumpyHistogram, levels: usize, all: Range) -> Range {
    let (counts, edges) = (counted.counts(), counted.edges());
    if edges.is_empty() {
        return all;
    }
    let (bins, middle) = (counts.len(), counts.len() / 2);
    let mut best: Option<(f32, usize, usize)> = None;
    for half in levels / 2..=middle {
        let (start, end) = (middle - half, (middle + half + 1).min(bins));
        let divergence = divergence(counts, start, end, levels);
        if best.is_none_or(|(least, _, _)| divergence < least) {
            best = Some((divergence, start, end));
        }
    }
    match best {
        Some((_, start, end)) => clamped(edges[start], edges[end], all),
        None => all,
    }
}

fn divergence(counts: &[u64], start: usize, end: usize, levels: usize) -> f32 {
    let inside = &counts[start..end];
    let mut p = inside.to_vec();
    let last = p.len() - 1;
    p[0] += counts[..start].iter().sum::<u64>();
    p[last] += counts[end..].iter().sum::<u64>();
    // Every level has the same number of bins. Leftover bins count in the last level but get no
    // part of Q.
    let merged = inside.len() / levels;
    let mut q = vec![0u64; p.len()];
    for level in 0..levels {
        let (from, to) = (level * merged, (level + 1) * merged);
        let upto = if level + 1 == levels {
            inside.len()
        } else {
            to
        };
        let content: u64 = inside[from..upto].iter().sum();
        let filled = p[from..to].iter().filter(|&&count| count > 0).count();
        if filled > 0 {
            // Integers: the fraction is truncated.
            q[from..to].fill((content as f64 / filled as f64) as u64);
        }
    }
    match (smoothed(&p), smoothed(&q)) {
        (Some(p), Some(q)) => relative_entropy(&p, &q),
        _ => f32::INFINITY,
    }
}

/// Replaces zeros by 0.0001, subtracted from the other counts. Returns `None` if all are zero.
fn smoothed(counts: &[u64]) -> Option<Vec<f32>> {
    const EPSILON: f64 = 0.0001;
    let zeros = counts.iter().filter(|&&count| count == 0).count();
    let others = counts.len() - zeros;
    if others == 0 {
        return None;
    }
    let taken = (EPSILON * zeros as f64 / others as f64) as f32;
    let smooth = |&count: &u64| match count {
        0 => EPSILON as f32,
        _ => count as f32 - taken,
    };
    Some(counts.iter().map(smooth).collect())
}

fn relative_entropy(p: &[f32], q: &[f32]) -> f32 {
    let (all_p, all_q) = (pairwise_sum(p), pairwise_sum(q));
    let term = |(&p, &q): (&f32, &f32)| {
        let (p, q) = (p / all_p, q / all_q);
        p * logarithm(p / q)
    };
    let terms: Vec<f32> = p.iter().zip(q).map(term).collect();
    pairwise_sum(&terms)
}

/// The natural logarithm of a positive f32, correctly rounded to f32.
fn logarithm(x: f32) -> f32 {
    (log2(f64::from(x)) * std::f64::consts::LN_2) as f32
}

/// The sum in numpy's order: eight running sums over up to 128 numbers, halves for more.
fn pairwise_sum(values: &[f32]) -> f32 {
    let count = values.len();
    if count < 8 {
        return values.iter().fold(0.0, |sum, &value| sum + value);
    }
    if count > 128 {
        let half = count / 2 / 8 * 8;
        return pairwise_sum(&values[..half]) + pairwise_sum(&values[half..]);
    }
    let mut sums = [0.0f32; 8];
    let blocks = values.chunks_exact(8);
    let rest = blocks.remainder();
    for block in blocks {
        for (sum, &value) in sums.iter_mut().zip(block) {
            *sum += value;
        }
    }
    let [a, b, c, d, e, f, g, h] = sums;
    rest.iter()
        .fold(((a + b) + (c + d)) + ((e + f) + (g + h)), |sum, &value| {
            sum + value
        })
}

#[cfg(test)]
mod tests {
    use super::super::super::{HistogramLayout, TensorStatistics};
    use super::*;

    fn counted(values: &[f32], bins: usize, magnitudes: bool) -> (NumpyHistogram, Range) {
        let stats = TensorStatistics::from_values(values);
        let mut counted = NumpyHistogram::new(HistogramLayout { bins, magnitudes }, &stats);
        counted.count(values);
        (
            counted,
            Range::new(stats.min().unwrap(), stats.max().unwrap()),
        )
    }

    #[test]
    fn a_percentile_is_the_lower_edge_of_its_bin_on_both_sides() {
        // Magnitudes 0 to 8 in 8 bins: 1, 1, …, 1, 2. The fifth bin reaches 50 %.
        let values = [0.0, -1.0, 2.0, 3.0, -4.0, 5.0, 6.0, 7.0, 8.0];
        let (counted, all) = counted(&values, 8, true);
        assert_eq!(percentile(&counted, 50.0, all), Range::new(-4.0, 4.0));
        assert_eq!(percentile(&counted, 99.0, all), Range::new(-4.0, 7.0));
    }

    #[test]
    fn ends_that_cross_become_the_one_nearer_to_zero() {
        assert_eq!(
            clamped(-1.0, 1.0, Range::new(5.0, 6.0)),
            Range::new(1.0, 1.0)
        );
        assert_eq!(
            clamped(-1.0, 1.0, Range::new(-6.0, -5.0)),
            Range::new(-1.0, -1.0)
        );
        assert_eq!(
            clamped(-1.0, 1.0, Range::new(0.0, 0.5)),
            Range::new(0.0, 0.5)
        );
    }

    #[test]
    fn one_candidate_is_the_full_range() {
        let values: Vec<f32> = (0..1000).map(|i| i as f32 / 300.0 - 1.0).collect();
        let (counted, all) = counted(&values, 128, false);
        assert_eq!(entropy(&counted, 128, all), all);
    }
}
