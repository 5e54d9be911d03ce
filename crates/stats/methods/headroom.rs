//! Headroom: the expected values of further samples beyond the observed range, and the cost of
//! clipping them.
//!
//! Each of N samples has a maximum. If the maxima have an exponential tail, the greatest of N lies
//! β·ln N above the mean of one (Gumbel). Hence β = (greatest - mean of the maxima) / ln N. A
//! further sample exceeds the observed range by more than u with a probability of about e^(-u/β) /
//! N. It then exceeds u by β in the mean, and the mean square of the clipped part is 2β². Divided
//! among all V values of a sample this is 2β²·e^(-u/β) / (N·V) per value. It is negligible for a
//! large image, but exceeds the rounding error for the hundred values of a network's last layers.

use octet_kernels::log2;

use super::super::{Range, TensorStatistics};

/// Expected values beyond the ends of the observed range.
pub(super) struct Headroom {
    observed: Range,
    /// Distance of the observed maximum from the mean maximum of a sample.
    above: f64,
    below: f64,
    /// `1 / ln N`.
    per_logarithm: f64,
    /// `N^(-1/STEPS)`.
    root: f64,
    /// `N·V`.
    values: f64,
}

/// Number of steps in which an end moves outwards. The last step moves it by its distance from the
/// mean, β·ln N, as far as N times as many samples would. After k steps e^(-u/β) is N^(-k/STEPS).
/// Three square roots compute this root, so the bits are the same on every machine.
const STEPS: i32 = 8;

impl Headroom {
    /// Returns `None` for fewer than two samples, which have no distance to a mean.
    pub(super) fn new(stats: &TensorStatistics) -> Option<Headroom> {
        let mean = stats.mean_ends().filter(|_| stats.samples() > 1)?;
        let all = Range::new(stats.min()?, stats.max()?);
        let samples = stats.samples() as f64;
        Some(Headroom {
            observed: all,
            above: f64::from(all.max) - f64::from(mean.max),
            below: f64::from(mean.min) - f64::from(all.min),
            per_logarithm: 1.0 / (log2(samples) * std::f64::consts::LN_2),
            root: 1.0 / samples.sqrt().sqrt().sqrt(),
            values: stats.finite_count() as f64,
        })
    }

    /// `range` and wider ranges, at ends where nothing was clipped. Each comes with the expected
    /// mean squared error of further samples that exceed it.
    pub(super) fn wider(&self, range: Range) -> Vec<(Range, f64)> {
        let part = |step: i32, spread: f64| spread * f64::from(step) / f64::from(STEPS);
        let upper = |step| (f64::from(self.observed.max) + part(step, self.above)) as f32;
        let lower = |step| (f64::from(self.observed.min) - part(step, self.below)) as f32;
        // Zero always has an integer, so an end at zero has nothing to gain.
        let upwards = range.max >= self.observed.max && range.max > 0.0 && self.above > 0.0;
        let downwards = range.min <= self.observed.min && range.min < 0.0 && self.below > 0.0;
        let mut candidates = Vec::new();
        for up in 0..=if upwards { STEPS } else { 0 } {
            for down in 0..=if downwards { STEPS } else { 0 } {
                let max = if up > 0 { upper(up) } else { range.max };
                let min = if down > 0 { lower(down) } else { range.min };
                if min.is_finite() && max.is_finite() {
                    let cost = self.cost(self.above, up) + self.cost(self.below, down);
                    candidates.push((Range::new(min, max), cost));
                }
            }
        }
        candidates
    }

    /// Expected cost beyond an end after this number of steps outwards.
    fn cost(&self, spread: f64, steps: i32) -> f64 {
        let typical = spread.max(0.0) * self.per_logarithm;
        let share = (0..steps).fold(1.0, |share, _| share * self.root);
        2.0 * typical * typical * share / self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(of: impl IntoIterator<Item = Vec<f32>>) -> TensorStatistics {
        let mut all = TensorStatistics::new();
        for values in of {
            let mut stats = TensorStatistics::from_values(&values);
            stats.end_sample();
            all.merge(&stats);
        }
        all
    }

    #[test]
    fn the_last_step_divides_the_cost_by_the_number_of_samples() {
        // The maxima 1 and 3 have the mean 2, so β = 1 / ln 2, and the last step moves the end by
        // 1.
        let headroom = Headroom::new(&samples([vec![0.0, 1.0], vec![0.0, 3.0]])).unwrap();
        let candidates = headroom.wider(Range::new(0.0, 3.0));
        let (first, last) = (candidates[0], candidates[STEPS as usize]);
        let typical = 1.0 / std::f64::consts::LN_2;
        assert_eq!((first.0.max, last.0.max), (3.0, 4.0));
        assert!((first.1 - 2.0 * typical * typical / 4.0).abs() < 1e-12);
        assert!((first.1 / last.1 - 2.0).abs() < 1e-12);
    }

    #[test]
    fn constant_ends_have_no_headroom() {
        let clipped = samples([vec![0.0, 1.0, 6.0], vec![0.0, 2.0, 6.0]]);
        let range = Range::new(0.0, 6.0);
        assert_eq!(
            Headroom::new(&clipped).unwrap().wider(range),
            [(range, 0.0)]
        );
        assert!(Headroom::new(&samples([vec![1.0, 2.0]])).is_none());
    }

    #[test]
    fn a_clipped_end_gets_no_headroom() {
        let headroom = Headroom::new(&samples([vec![-1.0, 1.0], vec![-2.0, 3.0]])).unwrap();
        let candidates = headroom.wider(Range::new(-2.0, 2.5));
        assert!(candidates.iter().all(|(range, _)| range.max == 2.5));
        assert_eq!(candidates.len(), STEPS as usize + 1);
        assert_eq!(candidates.last().map(|(range, _)| range.min), Some(-2.5));
    }
}
