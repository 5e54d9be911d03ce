//! Means of the channels of a value. Bias correction needs them to compute the error that rounded
//! weights add to a layer's output.
//!
//! Each sample counts once, whatever its size. Means are added as integer multiples of a fixed
//! step, so merging is exact, associative and commutative. A value can have hundreds of thousands
//! of channels, so each sum is one number.

mod stored;

use serde::{Deserialize, Serialize};

/// Steps per unit. The step 2^-48 is far below the resolution of a bias; means of 2^48 and more are
/// rejected.
const STEPS: f64 = (1u64 << 48) as f64;

/// Channel means of one value over all samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChannelMeans {
    /// Sum of the means of each channel, in steps. It holds 2^31 samples.
    sums: Vec<i128>,
    /// Sum of the extents of each axis.
    extents: Vec<u64>,
    runs: u64,
    /// True after a mean that is not finite or too large, or after samples with different channel
    /// or axis counts.
    uneven: bool,
}

impl ChannelMeans {
    /// Bytes held per channel.
    pub const BYTES_EACH: u64 = size_of::<i128>() as u64;

    /// Adds the values of one run, whose channels lie along `axis`.
    pub fn observe(&mut self, values: &[f32], shape: &[usize], axis: usize) {
        let Some(&channels) = shape.get(axis) else {
            return self.merge(&ChannelMeans {
                uneven: true,
                ..ChannelMeans::default()
            });
        };
        if values.is_empty() || channels == 0 {
            return;
        }
        let sums = sums(values, channels, shape[axis + 1..].iter().product());
        let each = (values.len() / channels) as f64;
        let means = sums.into_iter().map(|sum| sum / each);
        let stats = ChannelMeans::from_means(means, shape);
        // Usually a sample is one run, so its means need no copy.
        match *self == ChannelMeans::default() && !stats.uneven {
            true => *self = stats,
            false => self.merge(&stats),
        }
    }

    /// The statistics of one run whose channels have these means.
    pub(super) fn from_means(means: impl Iterator<Item = f64>, shape: &[usize]) -> ChannelMeans {
        let mut stats = ChannelMeans {
            sums: Vec::with_capacity(means.size_hint().0),
            extents: shape.iter().map(|&extent| extent as u64).collect(),
            runs: 1,
            uneven: false,
        };
        for mean in means {
            // This also detects NaN.
            stats.uneven |= mean.is_nan() || mean.abs() >= STEPS;
            stats.sums.push((mean * STEPS).round_ties_even() as i128);
        }
        stats
    }

    /// Merges the statistics of `other`.
    pub(super) fn merge(&mut self, other: &ChannelMeans) {
        let alike =
            self.sums.len() == other.sums.len() && self.extents.len() == other.extents.len();
        self.uneven |= other.uneven || (self.runs > 0 && other.runs > 0 && !alike);
        if self.uneven {
            // No means are reported for such values. The sums are cleared, so that the result does
            // not depend on the order of merging.
            (self.sums, self.extents) = Default::default();
        } else if self.runs == 0 {
            (self.sums, self.extents) = (other.sums.clone(), other.extents.clone());
        } else if other.runs > 0 {
            for (all, sum) in self.sums.iter_mut().zip(&other.sums) {
                *all += sum;
            }
            for (all, extent) in self.extents.iter_mut().zip(&other.extents) {
                *all += extent;
            }
        }
        self.runs += other.runs;
    }

    /// The mean of each channel, or `None` if there is none.
    pub fn means(&self) -> Option<Vec<f64>> {
        let mean = |&sum: &i128| sum as f64 / STEPS / self.runs as f64;
        (self.runs > 0 && !self.uneven).then(|| self.sums.iter().map(mean).collect())
    }

    /// The mean extent of each axis, rounded.
    pub fn extents(&self) -> Vec<usize> {
        let mean = |&sum: &u64| ((sum + self.runs / 2) / self.runs.max(1)) as usize;
        self.extents.iter().map(mean).collect()
    }

    /// Heap bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.sums.capacity() * Self::BYTES_EACH as usize
            + self.extents.capacity() * size_of::<u64>()
    }
}

/// The sum of each channel. `inner` is the number of consecutive values of one channel.
fn sums(values: &[f32], channels: usize, inner: usize) -> Vec<f64> {
    let mut sums = vec![0.0; channels];
    match inner {
        // Channels are the last axis: a row has one value per channel.
        1 => {
            for row in values.chunks_exact(channels) {
                for (sum, &value) in sums.iter_mut().zip(row) {
                    *sum += f64::from(value);
                }
            }
        }
        _ => {
            for (run, values) in values.chunks_exact(inner).enumerate() {
                sums[run % channels] += octet_kernels::sum(values);
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::super::merging::check_merging;
    use super::*;

    fn observed(values: &[f32], shape: &[usize], axis: usize) -> ChannelMeans {
        let mut stats = ChannelMeans::default();
        stats.observe(values, shape, axis);
        stats
    }

    #[test]
    fn channel_means_are_correct_for_any_axis() {
        let values = [1.0, 3.0, 10.0, 20.0, 5.0, 7.0, 30.0, 60.0];
        assert_eq!(
            observed(&values, &[2, 2, 2], 1).means(),
            Some(vec![4.0, 30.0])
        );
        assert_eq!(
            observed(&values, &[4, 2], 1).means(),
            Some(vec![11.5, 22.5])
        );
        assert_eq!(
            observed(&values, &[8], 0).means().map(|means| means.len()),
            Some(8)
        );
    }

    #[test]
    fn samples_of_any_size_have_equal_weight() {
        let mut stats = observed(&[1.0, 1.0, 1.0, 1.0], &[1, 1, 4], 1);
        stats.merge(&observed(&[4.0, 4.0], &[1, 1, 2], 1));
        assert_eq!(stats.means(), Some(vec![2.5]));
        assert_eq!(stats.extents(), [1, 1, 3]);
    }

    #[test]
    fn values_without_a_mean_give_none_in_any_order() {
        let parts = [
            observed(&[1.0, 2.0], &[1, 2, 1], 1),
            observed(&[1.0, 2.0, 3.0], &[1, 3, 1], 1),
            observed(&[f32::NAN, 2.0], &[1, 2, 1], 1),
            observed(&[1.0, 2.5], &[1, 2], 1),
            ChannelMeans::default(),
            observed(&[1.0], &[], 1),
        ];
        check_merging(&parts, ChannelMeans::merge);
        let mut mixed = parts[0].clone();
        mixed.merge(&parts[1]);
        assert_eq!(mixed.means(), None);
        assert_eq!(parts[2].means(), None);
        assert_eq!(observed(&[1.0], &[], 1).means(), None);
    }
}
