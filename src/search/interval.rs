//! Intervals of confidence for the error of a few samples.

use crate::compare;

/// Number of draws of a bootstrap.
const DRAWS: usize = 1000;

/// A measured error with its interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Estimate {
    /// The measured value.
    pub value: f64,
    /// Lower end of the interval that holds 95 %.
    pub low: f64,
    /// Upper end of that interval.
    pub high: f64,
}

impl Estimate {
    /// Upper end for the value that as many other samples show. Their mean varies, too, so it is √2
    /// times as far away.
    pub(super) fn high_of_others(&self) -> f64 {
        self.value + (self.high - self.value) * std::f64::consts::SQRT_2
    }
}

/// Wilson's interval of a share: `part` of `whole` trials.
pub fn wilson(part: f64, whole: f64) -> Estimate {
    if whole <= 0.0 {
        return Estimate {
            value: 0.0,
            low: 0.0,
            high: 1.0,
        };
    }
    let share = part / whole;
    let (low, high) = compare::wilson(share, whole);
    Estimate {
        value: share,
        low: low.clamp(0.0, share),
        high: high.clamp(share, 1.0),
    }
}

/// The difference of two shares of the same trials: `losses` less `gains`.
pub fn paired(losses: u64, gains: u64, whole: u64) -> Estimate {
    let (low, high) = compare::paired_change(gains, losses, whole);
    Estimate {
        value: (losses as f64 - gains as f64) / whole.max(1) as f64,
        low: -high,
        high: -low,
    }
}

/// The ratio of two sums over samples, with an interval by drawing the samples again. The draws are
/// the same in every run.
pub fn bootstrap(pairs: &[(f64, f64)]) -> Estimate {
    let ratio = |noise: f64, signal: f64| match signal > 0.0 {
        true => noise / signal,
        false if noise > 0.0 => f64::MAX,
        false => 0.0,
    };
    let sum = |pairs: &mut dyn Iterator<Item = (f64, f64)>| {
        let (noise, signal) = pairs.fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
        ratio(noise, signal)
    };
    let value = sum(&mut pairs.iter().copied());
    if pairs.len() < 2 {
        return Estimate {
            value,
            low: 0.0,
            high: f64::MAX,
        };
    }
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut draw = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mixed(state) % pairs.len() as u64) as usize
    };
    let mut ratios: Vec<f64> = (0..DRAWS)
        .map(|_| sum(&mut (0..pairs.len()).map(|_| pairs[draw()])))
        .collect();
    ratios.sort_by(f64::total_cmp);
    Estimate {
        value,
        low: ratios[DRAWS / 40].min(value),
        high: ratios[DRAWS - 1 - DRAWS / 40].max(value),
    }
}

/// A well mixed number for each number (the finalizer of SplitMix64).
pub fn mixed(number: u64) -> u64 {
    let mut x = number;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilsons_interval_is_that_of_the_textbook() {
        // Newcombe (1998), table I: 81 of 263 and 0 of 20.
        let share = wilson(81.0, 263.0);
        assert!(
            (share.low - 0.2553).abs() < 5e-5 && (share.high - 0.3662).abs() < 5e-5,
            "{share:?}"
        );
        let none = wilson(0.0, 20.0);
        assert!(
            none.low == 0.0 && (none.high - 0.1611).abs() < 5e-5,
            "{none:?}"
        );
        assert_eq!(wilson(0.0, 0.0).high, 1.0);
    }

    #[test]
    fn equal_losses_and_gains_are_no_difference_with_an_interval_around_it() {
        let none = paired(5, 5, 100);
        assert_eq!(none.value, 0.0);
        assert!(none.low < -0.03 && none.high > 0.03, "{none:?}");
        let lost = paired(30, 0, 100);
        assert!(lost.low > 0.2 && lost.high < 0.45, "{lost:?}");
    }

    #[test]
    fn a_bootstrap_of_equal_samples_has_no_width_and_of_one_sample_no_end() {
        let equal = bootstrap(&[(0.01, 1.0); 12]);
        assert!((equal.low - 0.01).abs() < 1e-12 && (equal.high - 0.01).abs() < 1e-12);
        let one = bootstrap(&[(0.01, 1.0)]);
        assert_eq!((one.low, one.high), (0.0, f64::MAX));
        let spread: Vec<_> = (0..40).map(|i| (f64::from(i % 4), 100.0)).collect();
        let spread = bootstrap(&spread);
        assert!(
            spread.low > 0.01 && spread.low < 0.015 && spread.high < 0.02,
            "{spread:?}"
        );
    }
}
