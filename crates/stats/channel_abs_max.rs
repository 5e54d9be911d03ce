//! Greatest magnitudes of the channels of a value, for equalization.

mod stored;

use serde::{Deserialize, Serialize};

/// Greatest finite magnitude of each channel of one value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChannelAbsMax {
    greatest: Vec<f32>,
    /// True after samples with different numbers of channels.
    uneven: bool,
}

impl ChannelAbsMax {
    /// Adds the values of one run; channels lie along `axis`.
    pub(super) fn observe(&mut self, values: &[f32], shape: &[usize], axis: usize) {
        let Some(&channels) = shape.get(axis) else {
            return self.give_up();
        };
        if values.is_empty() || channels == 0 {
            return;
        }
        let mut greatest = vec![0.0; channels];
        let inner = shape[axis + 1..].iter().product();
        octet_kernels::raise_magnitudes(&mut greatest, values, inner);
        self.merge(&ChannelAbsMax {
            greatest,
            uneven: false,
        });
    }

    /// Merges the statistics of `other`.
    pub(super) fn merge(&mut self, other: &ChannelAbsMax) {
        let (own, others) = (self.greatest.len(), other.greatest.len());
        if other.uneven || self.uneven || (own > 0 && others > 0 && own != others) {
            return self.give_up();
        }
        if own == 0 {
            return self.greatest.clone_from(&other.greatest);
        }
        for (all, one) in self.greatest.iter_mut().zip(&other.greatest) {
            *all = all.max(*one);
        }
    }

    /// Greatest magnitude of each channel; empty if nothing was observed or the number of channels
    /// varies.
    pub fn greatest(&self) -> &[f32] {
        &self.greatest
    }

    fn give_up(&mut self) {
        // Cleared, so that the result does not depend on the order of merging.
        self.greatest = Vec::new();
        self.uneven = true;
    }
}

#[cfg(test)]
mod tests {
    use super::super::merging::check_merging;
    use super::*;

    fn observed(values: &[f32], shape: &[usize], axis: usize) -> ChannelAbsMax {
        let mut stats = ChannelAbsMax::default();
        stats.observe(values, shape, axis);
        stats
    }

    #[test]
    fn each_channel_has_its_greatest_magnitude() {
        let values = [1.0, -3.0, 10.0, 20.0, 5.0, 2.0, -30.0, f32::INFINITY];
        assert_eq!(observed(&values, &[2, 2, 2], 1).greatest(), [5.0, 30.0]);
        assert_eq!(observed(&values, &[4, 2], 1).greatest(), [30.0, 20.0]);
        assert_eq!(
            observed(&[f32::NAN, 0.0], &[1, 2], 1).greatest(),
            [0.0, 0.0]
        );
    }

    #[test]
    fn the_result_does_not_depend_on_the_order() {
        let parts = [
            observed(&[1.0, -2.0], &[1, 2], 1),
            observed(&[-3.0, 1.0], &[1, 2], 1),
            observed(&[1.0, 2.0, 3.0], &[1, 3], 1),
            observed(&[1.0], &[], 1),
            ChannelAbsMax::default(),
        ];
        check_merging(&parts, ChannelAbsMax::merge);
        let mut both = parts[0].clone();
        both.merge(&parts[1]);
        assert_eq!(both.greatest(), [3.0, 2.0]);
        both.merge(&parts[2]);
        both.merge(&parts[0]);
        assert!(both.greatest().is_empty());
    }
}
