//! Headroom: what further samples may bring beyond all that was seen, and what it would cost to cut it off.
//!
//! Of N samples each has a greatest value. Where these thin out exponentially, the greatest of N lies β·ln N above
//! that of one in the mean (Gumbel), so what was seen tells β = (greatest - mean of the greatest) / ln N. A further
//! sample reaches more than u beyond all with a probability of about e^(-u/β) / N, and then by β more in the mean;
//! the square of what it is cut off by has the mean 2β². Shared by all V values of a sample, that is
//! 2β²·e^(-u/β) / (N·V) to each: next to nothing for a large image, more than all rounding for the hundred
//! values that a network's last layers hold.

use octet_kernels::log2;

use super::super::{Observation, Range};

/// What is expected beyond the ends of what was seen.
pub(super) struct Headroom {
    seen: Range,
    /// How far the ends lie from those of a sample in the mean.
    above: f64,
    below: f64,
    /// `1 / ln N`.
    per_logarithm: f64,
    /// `N^(-1/STEPS)`.
    root: f64,
    /// `N·V`.
    values: f64,
}

/// In how many steps an end is moved outwards, up to as far again as it lies from the mean: as far as N times as
/// many samples would move it. After k of them e^(-u/β) is N^(-k/STEPS), as the whole way is β·ln N; of three square
/// roots, which are the same bits everywhere.
const STEPS: i32 = 8;

impl Headroom {
    /// Of what was seen; `None` where fewer than two samples ended, which tell nothing of a third.
    pub(super) fn of(seen: &Observation) -> Option<Headroom> {
        let mean = seen.mean_ends().filter(|_| seen.samples() > 1)?;
        let all = Range::new(seen.min()?, seen.max()?);
        let samples = seen.samples() as f64;
        Some(Headroom {
            seen: all,
            above: f64::from(all.max) - f64::from(mean.max),
            below: f64::from(mean.min) - f64::from(all.min),
            per_logarithm: 1.0 / (log2(samples) * std::f64::consts::LN_2),
            root: 1.0 / samples.sqrt().sqrt().sqrt(),
            values: seen.finite_count() as f64,
        })
    }

    /// `range` and such as reach further, at ends that nothing was cut off at; each with the mean squared error to be
    /// expected of what further samples bring outside.
    pub(super) fn wider(&self, range: Range) -> Vec<(Range, f64)> {
        let part = |step: i32, spread: f64| spread * f64::from(step) / f64::from(STEPS);
        let upper = |step| (f64::from(self.seen.max) + part(step, self.above)) as f32;
        let lower = |step| (f64::from(self.seen.min) - part(step, self.below)) as f32;
        // Zero always has an integer: there is nothing to gain where an end isn't beyond it.
        let upwards = range.max >= self.seen.max && range.max > 0.0 && self.above > 0.0;
        let downwards = range.min <= self.seen.min && range.min < 0.0 && self.below > 0.0;
        let mut found = Vec::new();
        for up in 0..=if upwards { STEPS } else { 0 } {
            for down in 0..=if downwards { STEPS } else { 0 } {
                let max = if up > 0 { upper(up) } else { range.max };
                let min = if down > 0 { lower(down) } else { range.min };
                if min.is_finite() && max.is_finite() {
                    let cost = self.cost(self.above, up) + self.cost(self.below, down);
                    found.push((Range::new(min, max), cost));
                }
            }
        }
        found
    }

    /// What is expected beyond an end so many steps outwards.
    fn cost(&self, spread: f64, steps: i32) -> f64 {
        let typical = spread.max(0.0) * self.per_logarithm;
        let share = (0..steps).fold(1.0, |share, _| share * self.root);
        2.0 * typical * typical * share / self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(of: impl IntoIterator<Item = Vec<f32>>) -> Observation {
        let mut all = Observation::new();
        for values in of {
            let mut seen = Observation::of(&values);
            seen.end_sample();
            all.merge(&seen);
        }
        all
    }

    #[test]
    fn the_cost_falls_by_the_number_of_samples_on_the_whole_way() {
        // Greatest values 1 and 3: the mean is 2, so β = 1 / ln 2, and the whole way is 1.
        let headroom = Headroom::of(&samples([vec![0.0, 1.0], vec![0.0, 3.0]])).unwrap();
        let found = headroom.wider(Range::new(0.0, 3.0));
        let (first, last) = (found[0], found[STEPS as usize]);
        let typical = 1.0 / std::f64::consts::LN_2;
        assert_eq!((first.0.max, last.0.max), (3.0, 4.0));
        assert!((first.1 - 2.0 * typical * typical / 4.0).abs() < 1e-12);
        assert!((first.1 / last.1 - 2.0).abs() < 1e-12);
    }

    #[test]
    fn ends_that_never_move_have_none() {
        let clipped = samples([vec![0.0, 1.0, 6.0], vec![0.0, 2.0, 6.0]]);
        let range = Range::new(0.0, 6.0);
        assert_eq!(Headroom::of(&clipped).unwrap().wider(range), [(range, 0.0)]);
        assert!(Headroom::of(&samples([vec![1.0, 2.0]])).is_none());
    }

    #[test]
    fn an_end_that_was_cut_stays_cut() {
        let headroom = Headroom::of(&samples([vec![-1.0, 1.0], vec![-2.0, 3.0]])).unwrap();
        let found = headroom.wider(Range::new(-2.0, 2.5));
        assert!(found.iter().all(|(range, _)| range.max == 2.5));
        assert_eq!(found.len(), STEPS as usize + 1);
        assert_eq!(found.last().map(|(range, _)| range.min), Some(-2.5));
    }
}
