//! Auto: for each tensor the best of several methods.
//!
//! By the mean squared error alone the best is always what the method `mse` finds, which clips the far values
//! even where that gains next to nothing. But the far values are often what a network goes by: the score of
//! the one box, the class that is sure. So the whole range, percentiles and `mse` propose a range each, and of those whose
//! expected error
//! is nearly the least the widest is taken: tails go only where they are worth it. They are worth less where most
//! values have integers enough with the tail, too: there the widest may cost more. And where these integers are
//! enough for more than was seen, the range has as much [`Headroom`] as further samples are expected to need.

use super::super::distribution::Distribution;
use super::super::expected_error::{ExpectedError, Power};
use super::super::{Observation, Range, Target};
use super::headroom::Headroom;
use super::{mse, percentile};

/// The percentiles among the candidates.
const PERCENTILES: [f64; 4] = [99.9, 99.99, 99.999, 99.9999];
/// How much more than the least squared error is nearly the least: 0.4 dB.
const NEARLY: f64 = 1.1;
/// The same where half of the values have this many integers or more: 1.8 dB. Chosen by the tasks of the corpus
/// (docs/accuracy.md).
const NEARLY_OF_PLENTY: f64 = 1.5;
const PLENTY: f64 = 20.0;
/// Headroom that could save no more than this share of what rounding costs is not looked for.
const NOT_WORTH: f64 = 0.01;

/// The widest of the proposed ranges whose expected squared error is nearly the least, with headroom.
pub(super) fn range(seen: &Observation, target: &Target) -> Range {
    let all = Range::new(seen.min().unwrap_or(0.0), seen.max().unwrap_or(0.0));
    let Some(values) = Distribution::of(seen) else {
        return all;
    };
    let percentiles = percentile::ranges(seen, PERCENTILES, target);
    let any_scale = [all].into_iter().chain(percentiles);
    let proposed = any_scale
        .map(|range| match target.power_of_two.is_asked() {
            true => target.power_of_two_range(range),
            false => range,
        })
        .chain([mse::range(seen, target)]);
    let error = ExpectedError::of(&values);
    let judged: Vec<(Range, f64)> = proposed
        .map(|range| (range, error.mean(target.grid(range), Power::Squared)))
        .collect();
    let least = judged
        .iter()
        .map(|&(_, cost)| cost)
        .fold(f64::INFINITY, f64::min);
    let width = |range: Range| {
        let (min, max) = target.covered(range);
        max - min
    };
    // Of what has no bulk, being a few points, no tail can take integers away.
    let bulk = seen.bulk().map_or(f64::INFINITY, |bulk| bulk.width);
    let plenty = |range| bulk * target.steps() >= PLENTY * width(range);
    let nearly = |range| match plenty(range) {
        true => NEARLY_OF_PLENTY,
        false => NEARLY,
    };
    let mut best = all;
    let mut widest = -1.0;
    for (range, cost) in judged {
        if cost <= least * nearly(range) && width(range) > widest {
            (best, widest) = (range, width(range));
        }
    }
    // A mirrored range has room enough at one end as a rule, and one of powers of two at both.
    let headroom = match target.symmetric || target.power_of_two.is_asked() {
        true => None,
        false => Headroom::of(seen),
    };
    let Some(headroom) = headroom else {
        return best;
    };
    let mut wider = headroom.wider(best).into_iter();
    let Some((_, beyond)) = wider.next() else {
        return best;
    };
    let rounding = error.mean(target.grid(best), Power::Squared);
    if beyond < NOT_WORTH * rounding {
        return best;
    }
    let mut lowest = rounding + beyond;
    for (range, beyond) in wider.filter(|&(range, _)| plenty(range)) {
        let cost = error.mean(target.grid(range), Power::Squared);
        if cost <= least * NEARLY_OF_PLENTY && cost + beyond < lowest {
            (best, lowest) = (range, cost + beyond);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(seen: &Observation, range: Range) -> f64 {
        let error = ExpectedError::of(&Distribution::of(seen).unwrap());
        error.mean(Target::default().grid(range), Power::Squared)
    }

    #[test]
    fn it_is_nearly_as_good_as_the_best_and_no_narrower() {
        let values: Vec<f32> = (-3000..5000).map(|i| (i as f32 / 2000.0).powi(5)).collect();
        let seen = Observation::of(&values);
        let target = Target::default();
        let (found, best) = (range(&seen, &target), mse::range(&seen, &target));
        assert!(cost(&seen, found) <= cost(&seen, best) * NEARLY_OF_PLENTY);
        assert!(found.max - found.min >= best.max - best.min);
    }

    #[test]
    fn a_tail_is_cut_sooner_where_integers_are_scarce() {
        // One value at 1.2, the others within ±1: steps of 2.2 / 255 instead of 2 / 255 cost (2.2 / 2)² = 1.21 times
        // as much, and cutting the one off next to nothing.
        let whole = |factor: f32| {
            let even = (-200_000..200_000).map(|i| i as f32 / 200_000.0);
            let most = even.clone().map(|value| value * factor);
            let values = Vec::from_iter(even.step_by(10).chain(most).chain([1.2]));
            range(&Observation::of(&values), &Target::default()).max == 1.2
        };
        assert!(whole(1.0), "half of the values have 116 integers");
        assert!(!whole(0.1), "half of the values have 13 integers");
    }

    #[test]
    fn few_values_have_headroom_and_many_do_not() {
        // Ten samples, even but for the last end: at 1 in five of them, further off in the others.
        let found = |values: usize| {
            let mut all = Observation::new();
            for sample in 0..10 {
                let end = 1.0 + (sample as f32 - 4.0).max(0.0) / 20.0;
                let even = (0..values).map(|i| i as f32 / values as f32);
                let mut seen = Observation::of(&Vec::from_iter(even.chain([end])));
                seen.end_sample();
                all.merge(&seen);
            }
            range(&all, &Target::default()).max
        };
        assert!(found(100) > 1.26, "{}", found(100));
        assert!(found(100_000) <= 1.25, "{}", found(100_000));
    }

    #[test]
    fn a_tail_that_costs_next_to_nothing_stays() {
        let values: Vec<f32> = (0..1000).map(|i| i as f32 / 1000.0).collect();
        let seen = Observation::of(&values);
        let all = Range::new(0.0, 0.999);
        assert_eq!(range(&seen, &Target::default()), all);
    }
}
