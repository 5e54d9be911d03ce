//! Ranges that cut off too much become wider.
//!
//! A method may cut off more than it gains: that shows in the error the range is expected to make, against the least that
//! any range makes.

use rayon::prelude::*;

use super::super::plan::{Plan, RangeSource};
use crate::calibrate::{Method, Observations, Range};

/// How many times the least expected squared error a range may make by what it cuts off: 3 dB.
const FAR_FROM_THE_LEAST: f64 = 2.0;

/// Gives the range that the method `auto` finds to tensors of whose values theirs cuts off too much.
pub(super) fn widen(plan: &mut Plan, found: &[String], observations: &Observations) -> Vec<String> {
    let wider = |name: &String| -> Option<(Range, f64)> {
        let (represented, Some(RangeSource::Observed(source))) =
            (plan.representations.get(name)?, plan.ranges.get(name))
        else {
            return None;
        };
        let (seen, range, target) = (
            observations.get(source)?,
            represented.range?,
            represented.target(),
        );
        if range.min <= seen.min()? && range.max >= seen.max()? {
            return None;
        }
        let range_by = |method: Method| method.range(seen, &target).ok();
        let error_of = |range: Range| seen.squared_error(range, &target);
        let (error, least) = (error_of(range)?, error_of(range_by(Method::Mse)?)?);
        if error <= FAR_FROM_THE_LEAST * least {
            return None;
        }
        let wider = plan.clip(name, range_by(Method::Auto)?);
        Some((wider, error / least))
    };
    let widened: Vec<(&String, Range, f64)> = found
        .par_iter()
        .filter_map(|name| wider(name).map(|(range, times)| (name, range, times)))
        .collect();
    let widened = widened.into_iter().filter_map(|(name, range, times)| {
        let represented = plan.representations.get_mut(name)?;
        let cut = represented.range.replace(range)?;
        Some(format!(
            "`{name}` has the range {} to {}: {} to {} would cut off so much that the expected error is {times:.1} times the least",
            range.min, range.max, cut.min, cut.max
        ))
    });
    widened.collect()
}
