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
    /// The value that as many other samples will hardly exceed. Choices allow for it.
    #[serde(skip)]
    pub(super) high_of_others: f64,
}

impl Estimate {
    /// An estimate whose value varies up to `likely` from samples to samples. The value of other samples
    /// varies too, so it is √2 times as far away.
    fn new(value: f64, [low, high]: [f64; 2], likely: f64) -> Estimate {
        Estimate {
            value,
            low,
            high,
            high_of_others: value + (likely - value) * std::f64::consts::SQRT_2,
        }
    }
}

/// Wilson's interval of a share: `part` of `whole` trials.
pub fn wilson(part: f64, whole: f64) -> Estimate {
    if whole <= 0.0 {
        return Estimate::new(0.0, [0.0, 1.0], 1.0);
    }
    let share = part / whole;
    let (low, high) = compare::wilson(share, whole);
    let high = high.clamp(share, 1.0);
    Estimate::new(share, [low.clamp(0.0, share), high], high)
}

/// The difference of two shares of the same trials: `losses` less `gains`.
pub fn paired(losses: u64, gains: u64, whole: u64) -> Estimate {
    let (low, high) = compare::paired_change(gains, losses, whole);
    let value = (losses as f64 - gains as f64) / whole.max(1) as f64;
    Estimate::new(value, [-high, -low], -low)
}

/// The ratio of two sums over samples, with an interval by drawing the samples again. The draws are
/// the same in every run.
///
/// The distance of each draw is divided by the draw's own standard error (bootstrap-t). Without this
/// the interval is too short where a few samples have most of the noise. It is at least Student's,
/// which allows for few samples. Such intervals are too wide to choose by, so choices allow for the
/// draws themselves.
pub fn bootstrap(pairs: &[(f64, f64)]) -> Estimate {
    let (noise, signal) = pairs
        .iter()
        .fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
    let student = compare::student(pairs.len()).filter(|_| signal > 0.0);
    let Some(student) = student else {
        let value = match signal > 0.0 {
            true => noise / signal,
            false if noise > 0.0 => f64::MAX,
            false => 0.0,
        };
        return Estimate::new(value, [0.0, f64::MAX], f64::MAX);
    };
    let (value, error) = compare::ratio(pairs);
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut draw = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mixed(state) % pairs.len() as u64) as usize
    };
    let mut drawn = vec![(0.0, 0.0); pairs.len()];
    let mut ratios = vec![value];
    // Without a draw that has a standard error, Student's distances are all there is.
    let mut distances = vec![-student, student];
    for _ in 0..DRAWS {
        drawn.fill_with(|| pairs[draw()]);
        let (other, error) = compare::ratio(&drawn);
        // A draw of samples without a signal has no ratio, one of equal samples no standard error.
        let distance = (other - value) / error;
        ratios.extend(Some(other).filter(|other| other.is_finite()));
        distances.extend(Some(distance).filter(|distance| distance.is_finite()));
    }
    let [_, likely] = middle(&mut ratios);
    let [least, most] = middle(&mut distances);
    let (least, most) = (least.min(-student), most.max(student));
    let low = (value - most * error).max(0.0);
    Estimate::new(value, [low, value - least * error], likely.max(value))
}

/// The ends of the middle 95 % of some numbers.
fn middle(numbers: &mut [f64]) -> [f64; 2] {
    numbers.sort_by(f64::total_cmp);
    let tail = numbers.len() / 40;
    [numbers[tail], numbers[numbers.len() - 1 - tail]]
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
        // Of two samples only Student's interval is known.
        let two = bootstrap(&[(0.01, 1.0), (0.03, 1.0)]);
        assert!((two.high - 0.02 - 12.706 * 0.01).abs() < 1e-9 && two.low == 0.0);
        let spread: Vec<_> = (0..40).map(|i| (f64::from(i % 4), 100.0)).collect();
        let spread = bootstrap(&spread);
        assert!(
            spread.low > 0.01 && spread.low < 0.015 && spread.high < 0.02,
            "{spread:?}"
        );
    }

    /// A draw of the normal distribution, by its number (Box and Muller).
    fn normal(number: u64) -> f64 {
        let uniform = |number: u64| (mixed(number) >> 11) as f64 / (1u64 << 53) as f64;
        let (a, b) = (uniform(2 * number + 1), uniform(2 * number + 2));
        (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// Noises whose logarithms are normal: a tenth of the samples has over a third of the noise.
    /// Of intervals between quantiles of the draws themselves, over a tenth end below the mean.
    #[test]
    fn the_interval_holds_the_mean_of_noises_that_differ_much() {
        let (trials, samples, spread) = (400u64, 20u64, 1.0f64);
        let wanted = (spread * spread / 2.0).exp();
        let trial = |trial: u64| {
            let noise = |sample: u64| (spread * normal(trial * samples + sample)).exp();
            let pairs: Vec<(f64, f64)> = (0..samples).map(|s| (noise(s), 1.0)).collect();
            bootstrap(&pairs)
        };
        let all: Vec<Estimate> = (0..trials).map(trial).collect();
        let below = all.iter().filter(|found| found.high < wanted).count();
        let above = all.iter().filter(|found| found.low > wanted).count();
        assert!(
            below <= 32 && above <= 16,
            "{below} and {above} of {trials}"
        );
    }
}
