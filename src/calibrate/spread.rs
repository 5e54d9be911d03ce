//! How far the channels of a value vary: which of them a scale for all would leave nothing of.
//!
//! Each sample counts once, whatever its size. Sums are of whole multiples of a step, so that merging is exact, associative and
//! commutative.

use serde::{Deserialize, Serialize};

/// The step of a mean, and of a mean square, is 2^-48; what reaches 2^48 is none.
const STEPS: f64 = (1u64 << 48) as f64;

/// The first two moments of each channel of one value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Of each channel the sums of its means and of its mean squares, in steps.
    sums: Vec<[i128; 2]>,
    runs: u64,
    /// Whether something was seen that has no moments: not finite or too large, or samples whose channels differ in number.
    uneven: bool,
}

/// What is known of one channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Its mean square.
    pub square: f64,
    /// Its variance.
    pub variance: f64,
}

impl Spread {
    /// Bytes that it holds for each channel.
    pub const BYTES_EACH: u64 = size_of::<[i128; 2]>() as u64;

    /// Takes in the values of one run, whose channels lie along `axis`.
    pub(super) fn observe(&mut self, values: &[f32], shape: &[usize], axis: usize) {
        let channels = shape.get(axis).copied().unwrap_or(0);
        let inner: usize = shape.iter().skip(axis + 1).product();
        if values.is_empty() || channels == 0 || inner == 0 {
            return;
        }
        let mut found = vec![[0.0; 2]; channels];
        for (run, values) in values.chunks_exact(inner).enumerate() {
            let [sum, squares] = &mut found[run % channels];
            for value in values.iter().copied().map(f64::from) {
                *sum += value;
                *squares += value * value;
            }
        }
        let each = (values.len() / channels) as f64;
        let means = found.iter().flatten().map(|sum| sum / each);
        let uneven = means
            .clone()
            .any(|mean| mean.is_nan() || mean.abs() >= STEPS);
        let steps = |sum: f64| (sum / each * STEPS).round_ties_even() as i128;
        self.merge(&Spread {
            sums: found.into_iter().map(|both| both.map(steps)).collect(),
            runs: 1,
            uneven,
        });
    }

    /// Takes in all that `other` has seen.
    pub(super) fn merge(&mut self, other: &Spread) {
        let alike = self.sums.len() == other.sums.len();
        self.uneven |= other.uneven || (self.runs > 0 && other.runs > 0 && !alike);
        if self.uneven {
            // What is left must not depend on the order.
            self.sums = Vec::new();
        } else if self.runs == 0 {
            self.sums.clone_from(&other.sums);
        } else {
            for (all, more) in self.sums.iter_mut().zip(&other.sums) {
                (all[0], all[1]) = (all[0] + more[0], all[1] + more[1]);
            }
        }
        self.runs += other.runs;
    }

    /// What is known of each channel; nothing where there were none, or none that could be told.
    pub fn moments(&self) -> Vec<Moment> {
        let mean = |sum: i128| sum as f64 / STEPS / self.runs as f64;
        let moment = |&[sum, squares]: &[i128; 2]| Moment {
            square: mean(squares),
            variance: (mean(squares) - mean(sum).powi(2)).max(0.0),
        };
        self.sums.iter().map(moment).collect()
    }

    /// Bytes that it holds beyond itself.
    pub(super) fn bytes(&self) -> usize {
        self.sums.capacity() * Self::BYTES_EACH as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::merging::check_merging;
    use super::*;

    fn of(values: &[f32], shape: &[usize], axis: usize) -> Spread {
        let mut seen = Spread::default();
        seen.observe(values, shape, axis);
        seen
    }

    #[test]
    fn each_channel_has_its_moments_whichever_axis_it_lies_on() {
        let moment = |square, variance| Moment { square, variance };
        let values = [1.0, 3.0, 10.0, 20.0, 5.0, 7.0, 30.0, 60.0];
        let middle = of(&values, &[2, 2, 2], 1).moments();
        assert_eq!(middle, [moment(21.0, 5.0), moment(1250.0, 350.0)]);
        let last = of(&values[..4], &[2, 2], 1).moments();
        assert_eq!(last, [moment(50.5, 20.25), moment(204.5, 72.25)]);
    }

    #[test]
    fn each_sample_counts_once_and_the_order_leaves_no_trace() {
        let parts = [
            of(&[1.0, -2.0], &[1, 2], 1),
            of(&[3.0, 1.0, 3.0, 1.0, 3.0, 1.0], &[3, 2], 1),
            of(&[1.0, 2.0, 3.0], &[1, 3], 1),
            of(&[f32::INFINITY, 2.0], &[1, 2], 1),
            of(&[1e9, 2.0], &[1, 2], 1),
            of(&[1.0], &[], 1),
            Spread::default(),
        ];
        check_merging(&parts, Spread::merge);
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
