//! Auto: for each tensor the best of the other methods.
//!
//! By the mean squared error the best is always the method `mse`, which sees no difference between many
//! values a little wrong and a few values very wrong. But the few are often what the network goes by: the
//! scores of a detector, the one class that is sure. The mean of the error's cube weighs them more, and still
//! lets go of a value that is far enough away and rare enough. So ranges are proposed by every method, and
//! chosen by the cube.

use super::super::expected_error::Power;
use super::super::{Observation, Range, Target};
use super::{entropy, layerwise, mse, percentile};

/// The percentiles among the candidates.
const PERCENTILES: [f64; 4] = [99.9, 99.99, 99.999, 99.9999];

/// The proposed range of the least expected cube of the error; of equals the first, minmax before others.
pub(super) fn range(seen: &Observation, target: &Target) -> Range {
    let all = Range::new(seen.min().unwrap_or(0.0), seen.max().unwrap_or(0.0));
    let percentiles = PERCENTILES.map(|percent| percentile::range(seen, percent, target));
    let any_scale = [all, entropy::range(seen, target)]
        .into_iter()
        .chain(percentiles);
    let proposed = any_scale
        .map(|range| match target.power_of_two {
            true => target.power_of_two_range(range),
            false => range,
        })
        .chain([mse::range(seen, target)]);
    layerwise::least(seen, target, Power::Cubed, proposed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_no_worse_than_any_proposal() {
        use super::super::super::distribution::Distribution;
        use super::super::super::expected_error::ExpectedError;
        let values: Vec<f32> = (-3000..5000).map(|i| (i as f32 / 2000.0).powi(5)).collect();
        let mut seen = Observation::new();
        seen.observe(&values);
        let target = Target::default();
        let error = ExpectedError::of(&Distribution::of(&seen).unwrap());
        let cost = |range| error.mean(target.grid(range), Power::Cubed);
        let found = cost(range(&seen, &target));
        let all = Range::new(seen.min().unwrap(), seen.max().unwrap());
        for proposed in [
            all,
            mse::range(&seen, &target),
            entropy::range(&seen, &target),
        ] {
            assert!(found <= cost(proposed));
        }
    }
}
