//! Variance of the channels of a value: it shows the channels that a common scale would round away.

mod stored;

use serde::{Deserialize, Serialize};

use super::ChannelMeans;

/// Mean and mean square of each channel of one value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChannelVariance {
    means: ChannelMeans,
    squares: ChannelMeans,
}

/// Moments of one channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelMoments {
    /// Mean square.
    pub square: f64,
    /// Variance.
    pub variance: f64,
}

impl ChannelVariance {
    /// Bytes held per channel.
    pub const BYTES_EACH: u64 = 2 * ChannelMeans::BYTES_EACH;

    /// Adds the values of one run; channels lie along `axis`.
    pub fn observe(&mut self, values: &[f32], shape: &[usize], axis: usize) {
        let channels = shape.get(axis).copied().unwrap_or(0);
        let inner: usize = shape.iter().skip(axis + 1).product();
        if values.is_empty() || channels == 0 || inner == 0 {
            return;
        }
        let mut sums = vec![[0.0; 2]; channels];
        for (run, values) in values.chunks_exact(inner).enumerate() {
            let [sum, squares] = &mut sums[run % channels];
            for value in values.iter().copied().map(f64::from) {
                *sum += value;
                *squares += value * value;
            }
        }
        let each = (values.len() / channels) as f64;
        let mean = |of: usize| sums.iter().map(move |both| both[of] / each);
        self.means.merge(&ChannelMeans::from_means(mean(0), shape));
        self.squares
            .merge(&ChannelMeans::from_means(mean(1), shape));
    }

    /// Merges the statistics of `other`.
    pub(super) fn merge(&mut self, other: &ChannelVariance) {
        self.means.merge(&other.means);
        self.squares.merge(&other.squares);
    }

    /// Moments of each channel; empty if there are no channels or no means.
    pub fn moments(&self) -> Vec<ChannelMoments> {
        let (means, squares) = (self.means.means(), self.squares.means());
        let both = means.iter().flatten().zip(squares.iter().flatten());
        let moment = |(mean, &square): (&f64, &f64)| ChannelMoments {
            square,
            variance: (square - mean * mean).max(0.0),
        };
        both.map(moment).collect()
    }

    /// Heap bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.means.bytes() + self.squares.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::merging::check_merging;
    use super::*;

    fn observed(values: &[f32], shape: &[usize], axis: usize) -> ChannelVariance {
        let mut stats = ChannelVariance::default();
        stats.observe(values, shape, axis);
        stats
    }

    #[test]
    fn channel_moments_are_correct_for_any_axis() {
        let moment = |square, variance| ChannelMoments { square, variance };
        let values = [1.0, 3.0, 10.0, 20.0, 5.0, 7.0, 30.0, 60.0];
        let middle = observed(&values, &[2, 2, 2], 1).moments();
        assert_eq!(middle, [moment(21.0, 5.0), moment(1250.0, 350.0)]);
        let last = observed(&values[..4], &[2, 2], 1).moments();
        assert_eq!(last, [moment(50.5, 20.25), moment(204.5, 72.25)]);
    }

    #[test]
    fn samples_have_equal_weight_in_any_order() {
        let parts = [
            observed(&[1.0, -2.0], &[1, 2], 1),
            observed(&[3.0, 1.0, 3.0, 1.0, 3.0, 1.0], &[3, 2], 1),
            observed(&[1.0, 2.0, 3.0], &[1, 3], 1),
            observed(&[f32::INFINITY, 2.0], &[1, 2], 1),
            observed(&[1e9, 2.0], &[1, 2], 1),
            observed(&[1.0], &[], 1),
            ChannelVariance::default(),
        ];
        check_merging(&parts, ChannelVariance::merge);
        let mut both = parts[0].clone();
        both.merge(&parts[1]);
        let known = both.moments();
        assert_eq!((known[0].square, known[0].variance), (5.0, 1.0));
        for other in &parts[2..5] {
            let mut mixed = both.clone();
            mixed.merge(other);
            assert!(mixed.moments().is_empty());
        }
    }
}
