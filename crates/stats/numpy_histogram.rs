//! The histogram of `numpy.histogram` for f32 values, as ONNX Runtime's calibrators use it.
//!
//! Its edges depend on the minimum and maximum of all values, so an extra pass over the samples
//! fills it. Edges and indices are computed in f32 with the operations of numpy 2 in their order.
//! Edges and counts are therefore identical to the bit. Counts over equal edges merge exactly.

mod stored;

use serde::{Deserialize, Serialize};

use super::TensorStatistics;

/// Domain and number of bins of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramLayout {
    /// Number of bins.
    pub bins: usize,
    /// If true, magnitudes from the least to the greatest. Otherwise values from minus to plus the
    /// greatest magnitude.
    pub magnitudes: bool,
}

/// Counts between evenly spaced edges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NumpyHistogram {
    layout: HistogramLayout,
    first: f32,
    last: f32,
    counts: Vec<u64>,
    /// Edges, one more than bins; empty if numpy rejects the range.
    edges: Vec<f32>,
}

impl NumpyHistogram {
    /// An empty histogram with edges from the statistics of the first pass.
    pub fn new(layout: HistogramLayout, stats: &TensorStatistics) -> NumpyHistogram {
        let (min, max) = (stats.min().unwrap_or(0.0), stats.max().unwrap_or(0.0));
        let greatest = min.abs().max(max.abs());
        let (mut first, mut last) = match layout.magnitudes {
            true => (stats.least_magnitude().unwrap_or(0.0), greatest),
            false => (-greatest, greatest),
        };
        if first == last {
            first -= 0.5;
            last += 0.5;
        }
        let edges = edges(first, last, layout.bins);
        NumpyHistogram {
            layout,
            first,
            last,
            counts: vec![0; layout.bins],
            edges,
        }
    }

    /// An empty histogram with the same edges.
    pub fn emptied(&self) -> NumpyHistogram {
        NumpyHistogram {
            counts: vec![0; self.layout.bins],
            ..self.clone()
        }
    }

    /// Counts values. Ignores those that are not finite or outside the range of the first pass.
    pub fn count(&mut self, values: &[f32]) {
        if self.edges.is_empty() {
            return;
        }
        let bins = self.layout.bins;
        let width = self.last - self.first;
        for &value in values {
            let value = if self.layout.magnitudes {
                value.abs()
            } else {
                value
            };
            if !(value >= self.first && value <= self.last) {
                continue;
            }
            let place = (value - self.first) / width * bins as f32;
            let mut bin = (place as usize).min(bins - 1);
            // The index may be off by one next to an edge. As in numpy, the edges decide.
            if value < self.edges[bin] {
                bin -= 1;
            } else if value >= self.edges[bin + 1] && bin != bins - 1 {
                bin += 1;
            }
            self.counts[bin] += 1;
        }
    }

    /// True if the edges of both are the same.
    pub fn has_edges_of(&self, other: &NumpyHistogram) -> bool {
        let ends = |one: &NumpyHistogram| [one.first.to_bits(), one.last.to_bits()];
        self.layout == other.layout && ends(self) == ends(other)
    }

    /// Adds the counts of a histogram with the same edges.
    pub fn merge(&mut self, other: &NumpyHistogram) {
        for (all, &more) in self.counts.iter_mut().zip(&other.counts) {
            *all += more;
        }
    }

    /// Domain and number of bins.
    pub fn layout(&self) -> HistogramLayout {
        self.layout
    }

    /// Number of values per bin.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Edges, one more than bins; empty if f32 cannot separate so many edges, as numpy rejects such
    /// a range.
    pub fn edges(&self) -> &[f32] {
        &self.edges
    }

    /// Number of values counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// `numpy.linspace(first, last, bins + 1)` in f32; empty if two edges would be equal.
fn edges(first: f32, last: f32, bins: usize) -> Vec<f32> {
    let width = last - first;
    let step = width / bins as f32;
    if !step.is_finite() {
        return Vec::new();
    }
    let inner = (0..bins).map(|i| {
        let i = i as f32;
        let offset = if step == 0.0 {
            i / bins as f32 * width
        } else {
            i * step
        };
        offset + first
    });
    let edges: Vec<f32> = inner.chain([last]).collect();
    let rising = edges.windows(2).all(|pair| pair[0] < pair[1]);
    if rising { edges } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(values: &[f32], layout: HistogramLayout) -> NumpyHistogram {
        let stats = TensorStatistics::from_values(values);
        let mut histogram = NumpyHistogram::new(layout, &stats);
        histogram.count(values);
        histogram
    }

    #[test]
    fn counts_and_edges_equal_those_of_numpy() {
        // Expected: numpy.histogram(abs(a), bins=4) and numpy.histogram(a, 4, range=(-2, 2)), numpy
        // 2.4.
        let values = [-2.0, -1.0, 0.0, 0.5, 1.0, 1.5];
        let magnitudes = observed(
            &values,
            HistogramLayout {
                bins: 4,
                magnitudes: true,
            },
        );
        assert_eq!(magnitudes.edges(), [0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!(magnitudes.counts(), [1, 1, 2, 2]);
        let both = observed(
            &values,
            HistogramLayout {
                bins: 4,
                magnitudes: false,
            },
        );
        assert_eq!(both.edges(), [-2.0, -1.0, 0.0, 1.0, 2.0]);
        assert_eq!(both.counts(), [1, 1, 2, 2]);
        // A range of zero width is widened by 0.5 on each side.
        let one = observed(
            &[3.0, 3.0],
            HistogramLayout {
                bins: 2,
                magnitudes: true,
            },
        );
        assert_eq!(
            (one.edges(), one.counts()),
            (&[2.5, 3.0, 3.5][..], &[0, 2][..])
        );
    }

    #[test]
    fn a_range_too_narrow_for_the_bins_counts_nothing() {
        let narrow = observed(
            &[1e8, 1e8 + 8.0],
            HistogramLayout {
                bins: 2048,
                magnitudes: true,
            },
        );
        assert!(narrow.edges().is_empty());
        assert_eq!(narrow.total(), 0);
    }

    #[test]
    fn merged_parts_equal_the_whole() {
        let values: Vec<f32> = (0..1000).map(|i| ((i * 37 % 1000) as f32).sin()).collect();
        let layout = HistogramLayout {
            bins: 128,
            magnitudes: false,
        };
        let whole = observed(&values, layout);
        let mut merged = whole.emptied();
        for part in values.chunks(77).rev() {
            let mut counted = whole.emptied();
            counted.count(part);
            merged.merge(&counted);
        }
        assert_eq!(merged, whole);
        assert_eq!(merged.total(), 1000);
    }
}
