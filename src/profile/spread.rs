//! Times of repeated runs: never a lone number.

use serde::Serialize;

/// How repeated measurements of one thing are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TimingSummary")]
pub struct Spread {
    /// Half of them are below.
    pub median: f64,
    /// A tenth of them is below.
    pub p10: f64,
    /// Nine tenths are below.
    pub p90: f64,
    /// Their mean. Means of parts add up to the mean of the whole, medians don't; and where the clock is coarse, the
    /// mean of many short times is still right, while their median is a whole number of ticks.
    pub mean: f64,
}

impl Spread {
    /// That of some values; all zero where there is none.
    pub fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() {
            return Spread::default();
        }
        Spread {
            median: percentile(&sorted, 0.5),
            p10: percentile(&sorted, 0.1),
            p90: percentile(&sorted, 0.9),
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
        }
    }
}

/// The value at a share of the way through sorted values, between two of them where it falls so.
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
        let spread = Spread::of(&[5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!((spread.median, spread.mean), (3.0, 3.0));
        assert!((spread.p10 - 1.4).abs() < 1e-12 && (spread.p90 - 4.6).abs() < 1e-12);
        assert_eq!(Spread::of(&[7.0]).p90, 7.0);
        assert_eq!(Spread::of(&[]), Spread::default());
    }
}
