//! Calibration methods: each turns tensor statistics into a range. One file per method.
//!
//! All methods except ONNX Runtime's use the statistics of one pass over the samples, so a change
//! of the method needs no new pass. No range exceeds the observed values, except with `auto` and
//! with power-of-two scales.

mod auto;
mod entropy;
mod headroom;
mod layerwise;
mod list;
mod mse;
mod name;
mod onnx_runtime;
mod percentile;

use serde::{Deserialize, Serialize};

use super::numpy_histogram::HistogramLayout;
use super::{IntegerRange, PowerOfTwo, Range, TensorStatistics};

pub use list::{METHODS, MethodEntry};
pub use name::MethodError;

/// The calibration method. Settings, command line and reports write it as text, such as
/// `percentile:99.9`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Method {
    /// From the minimum to the maximum of all values.
    MinMax,
    /// From the mean minimum of a sample to the mean maximum.
    MovingAverage,
    /// This percentage of the values; above 0, at most 100.
    Percentile(f64),
    /// The range that loses the least information: the least divergence between the distributions
    /// before and after quantization.
    Entropy,
    /// The range of the least expected squared error.
    Mse,
    /// The range of the least expected squared error among those whose scale is a power of two.
    MsePowerOfTwo,
    /// The best of the percentiles 99.99, 99.999 and 99.99999 for each tensor.
    LayerwisePercentile(Measure),
    /// The best of several methods for each tensor; clips outliers only for a real gain.
    #[default]
    Auto,
    /// ONNX Runtime's `Percentile` calibration with its defaults, on magnitudes.
    OrtPercentile(f64),
    /// ONNX Runtime's `Entropy` calibration.
    OrtEntropy {
        /// ONNX Runtime's `num_bins`.
        bins: usize,
        /// ONNX Runtime's `num_quantized_bins`.
        levels: usize,
    },
}

/// The error that `layerwise-percentile` minimizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Mean absolute error.
    #[default]
    Mae,
    /// Mean squared error.
    Mse,
}

/// The extra pass over the samples that the method needs was not run.
#[derive(Debug, thiserror::Error)]
#[error(
    "the method {0} needs a second pass over the samples, and they were run only once: start its second pass and \
     run the same samples again"
)]
pub struct SecondPassMissing(pub Method);

impl Method {
    /// The range for these statistics; [0, 0] if there are no finite values.
    pub fn range(
        &self,
        stats: &TensorStatistics,
        target: &IntegerRange,
    ) -> Result<Range, SecondPassMissing> {
        let (Some(min), Some(max)) = (stats.min(), stats.max()) else {
            return Ok(Range::new(0.0, 0.0));
        };
        let all = Range::new(min, max);
        let target = IntegerRange {
            power_of_two: match *self {
                Method::MsePowerOfTwo => PowerOfTwo::Covering,
                _ => target.power_of_two,
            },
            ..*target
        };
        let range = match *self {
            Method::MinMax => all,
            Method::MovingAverage => stats.mean_ends().unwrap_or(all).within(all),
            Method::Percentile(percent) => percentile::range(stats, percent, &target),
            Method::Entropy => entropy::range(stats, &target),
            Method::Mse | Method::MsePowerOfTwo => return Ok(mse::range(stats, &target)),
            Method::LayerwisePercentile(measure) => layerwise::range(stats, measure, &target),
            Method::Auto => return Ok(auto::range(stats, &target)),
            Method::OrtPercentile(_) | Method::OrtEntropy { .. } => match self.second_pass() {
                None => all,
                Some(layout) => {
                    let counted = stats.second_pass().filter(|c| c.layout() == layout);
                    let counted = counted.ok_or(SecondPassMissing(*self))?;
                    match *self {
                        Method::OrtPercentile(percent) => {
                            onnx_runtime::percentile(counted, percent, all)
                        }
                        Method::OrtEntropy { levels, .. } => {
                            onnx_runtime::entropy(counted, levels, all)
                        }
                        _ => all,
                    }
                }
            },
        };
        Ok(match target.power_of_two == PowerOfTwo::Covering {
            true => target.power_of_two_range(range),
            false => range,
        })
    }

    /// Returns true for ONNX Runtime's own methods.
    pub fn is_onnx_runtime(&self) -> bool {
        matches!(self, Method::OrtPercentile(_) | Method::OrtEntropy { .. })
    }

    /// The histogram that an extra pass over the samples must count, for the methods that need one.
    pub fn second_pass(&self) -> Option<HistogramLayout> {
        match *self {
            Method::OrtPercentile(_) => Some(HistogramLayout {
                bins: 2048,
                magnitudes: true,
            }),
            // With a single candidate no histogram is needed.
            Method::OrtEntropy { bins, levels } if bins / 2 > levels / 2 => Some(HistogramLayout {
                bins,
                magnitudes: false,
            }),
            _ => None,
        }
    }

    /// A note for users of this method.
    pub fn note(&self) -> Option<String> {
        match *self {
            Method::OrtEntropy { bins, levels } if self.second_pass().is_none() => Some(format!(
                "ONNX Runtime's entropy calibration with {bins} bins and {levels} levels has a single \
                 candidate, the whole range, so it equals minmax. The methods entropy and \
                 ort-entropy:2048/128 search for a better range"
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn min_max_is_the_full_range() {
        let stats = TensorStatistics::from_values(&[0.25, -1.5, 3.0]);
        let range = |stats| {
            Method::MinMax
                .range(stats, &IntegerRange::default())
                .unwrap()
        };
        assert_eq!(range(&stats), Range::new(-1.5, 3.0));
        assert_eq!(range(&TensorStatistics::new()), Range::new(0.0, 0.0));
    }

    #[test]
    fn moving_average_is_the_mean_of_the_ends_of_samples() {
        let mut stats = TensorStatistics::new();
        for values in [[-1.0, 2.0], [-2.0, 5.0], [0.0, 2.0]] {
            let mut sample = TensorStatistics::new();
            sample.observe(&values);
            sample.end_sample();
            stats.merge(&sample);
        }
        let range = Method::MovingAverage
            .range(&stats, &IntegerRange::default())
            .unwrap();
        assert_eq!(range, Range::new(-1.0, 3.0));
    }

    #[test]
    fn a_missing_second_pass_is_an_error() {
        let stats = TensorStatistics::from_values(&[1.0, 2.0]);
        let error = Method::OrtPercentile(99.9)
            .range(&stats, &IntegerRange::default())
            .unwrap_err();
        assert!(error.to_string().contains("ort-percentile:99.9"), "{error}");
    }

    #[test]
    fn ort_entropy_with_its_defaults_equals_min_max_and_has_a_note() {
        let method: Method = "ort-entropy".parse().unwrap();
        let stats = TensorStatistics::from_values(&[-0.5, 2.0, 1.0]);
        assert_eq!(
            method.range(&stats, &IntegerRange::default()).unwrap(),
            Range::new(-0.5, 2.0)
        );
        assert!(method.note().unwrap().contains("minmax"));
        assert_eq!(Method::Entropy.note(), None);
    }

    #[test]
    fn every_method_accepts_unusual_values() {
        let constant = [3.0f32; 5];
        let odd: [&[f32]; 8] = [
            &[],
            &[f32::NAN],
            &[0.0, -0.0],
            &constant,
            &[-1.0],
            &[1e-45, -1e-45],
            &[f32::MAX, f32::MIN, 1.0],
            &[1e30, 1e-30, 0.0],
        ];
        for values in odd {
            let mut stats = TensorStatistics::new();
            stats.observe(values);
            stats.end_sample();
            for name in name::EXAMPLES {
                let method: Method = name.parse().unwrap();
                if let Some(layout) = method.second_pass() {
                    let mut counted = super::super::NumpyHistogram::new(layout, &stats);
                    counted.count(values);
                    stats.set_second_pass(counted);
                }
                for target in [IntegerRange::default(), IntegerRange::new(-127, 127, true)] {
                    let actual = method.range(&stats, &target).unwrap();
                    assert!(actual.min <= actual.max, "{name} of {values:?}: {actual:?}");
                    assert!(
                        actual.min.is_finite() && actual.max.is_finite(),
                        "{name} of {values:?}"
                    );
                }
            }
        }
    }
}
