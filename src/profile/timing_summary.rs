//! Summary of the times of repeated runs.

use serde::Serialize;

/// Median, percentiles and mean of repeated measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimingSummary {
    /// Median.
    pub median: f64,
    /// 10th percentile.
    pub p10: f64,
    /// 90th percentile.
    pub p90: f64,
    /// Mean. Means of parts add up to the mean of the whole; medians don't. With a coarse clock the
    /// mean of many short times is still right, while their median is a whole number of ticks.
    pub mean: f64,
}

impl TimingSummary {
    /// Summary of these values; all zero without values.
    pub fn from_values(values: &[f64]) -> TimingSummary {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() {
            return TimingSummary::default();
        }
        TimingSummary {
            median: percentile(&sorted, 0.5),
            p10: percentile(&sorted, 0.1),
            p90: percentile(&sorted, 0.9),
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
        }
    }
}

/// Percentile of sorted values, interpolated linearly.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (place - low as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_the_values_in_any_order() {
        let summary = TimingSummary::from_values(&[5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!((summary.median, summary.mean), (3.0, 3.0));
        assert!((summary.p10 - 1.4).abs() < 1e-12 && (summary.p90 - 4.6).abs() < 1e-12);
        assert_eq!(TimingSummary::from_values(&[7.0]).p90, 7.0);
        assert_eq!(TimingSummary::from_values(&[]), TimingSummary::default());
    }
}
