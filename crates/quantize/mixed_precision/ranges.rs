//! Ranges that clip too much become wider.
//!
//! A calibration method may clip more than it gains. The test compares the expected squared error
//! of the range with the least expected error of any range.

use rayon::prelude::*;

use super::super::plan::{Plan, RangeOrigin};
use octet_stats::{CalibrationStatistics, Method, Range};

/// Allowed ratio between a range's expected squared error and the least one: 3 dB.
const MAX_EXCESS_ERROR: f64 = 2.0;

/// Replaces each range that clips too much by the range of the method `auto`.
pub(super) fn widen(
    plan: &mut Plan,
    with_ranges: &[String],
    observations: &CalibrationStatistics,
) -> Vec<String> {
    let wider = |name: &String| -> Option<(Range, f64)> {
        let (represented, Some(RangeOrigin::Observed(source))) =
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
        if error <= MAX_EXCESS_ERROR * least {
            return None;
        }
        let wider = plan.clip(name, range_by(Method::Auto)?);
        Some((wider, error / least))
    };
    let widened: Vec<(&String, Range, f64)> = with_ranges
        .par_iter()
        .filter_map(|name| wider(name).map(|(range, times)| (name, range, times)))
        .collect();
    let widened = widened.into_iter().filter_map(|(name, range, times)| {
        let represented = plan.representations.get_mut(name)?;
        let cut = represented.range.replace(range)?;
        Some(format!(
            "`{name}` has the range {} to {}: {} to {} would clip so much that the expected error is {times:.1} times the least possible",
            range.min, range.max, cut.min, cut.max
        ))
    });
    widened.collect()
}
