//! Preview of an input tensor, by which people check the preprocessing.

use serde::Serialize;

use super::TokenPreview;
use octet_onnx::in_memory::{Tensor, Values};

/// Statistics of a tensor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Preview {
    /// Name of the model's input.
    pub input: String,
    /// Element type, as numpy names it.
    pub element: String,
    /// Size of each axis.
    pub shape: Vec<usize>,
    /// Minimum; `None` for an empty tensor, like the next three.
    pub min: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Standard deviation over all elements.
    pub std: Option<f64>,
    /// Notes on conversions, as sentences.
    pub notes: Vec<String>,
    /// For the token numbers of a text: its tokens. Empty for other inputs.
    pub tokens: Vec<TokenPreview>,
}

/// Describes a tensor. The input's name and the notes stay empty.
pub fn describe(tensor: &Tensor) -> Preview {
    let stats = match tensor.values() {
        Values::F32(v) => RunningStats::from_values(v.iter().map(|&x| x.into())),
        Values::F64(v) => RunningStats::from_values(v.iter().copied()),
        Values::I8(v) => RunningStats::from_values(v.iter().map(|&x| x.into())),
        Values::I16(v) => RunningStats::from_values(v.iter().map(|&x| x.into())),
        Values::I32(v) => RunningStats::from_values(v.iter().map(|&x| x.into())),
        Values::I64(v) => RunningStats::from_values(v.iter().map(|&x| x as f64)),
        Values::U8(v) => RunningStats::from_values(v.iter().map(|&x| x.into())),
        Values::U16(v) => RunningStats::from_values(v.iter().map(|&x| x.into())),
        Values::U32(v) => RunningStats::from_values(v.iter().map(|&x| x.into())),
        Values::U64(v) => RunningStats::from_values(v.iter().map(|&x| x as f64)),
        Values::Bool(v) => RunningStats::from_values(v.iter().map(|&x| x.into())),
    };
    let some = |value: f64| (stats.count > 0.0).then_some(value);
    Preview {
        element: tensor.element_type().name().into(),
        shape: tensor.shape().to_vec(),
        min: some(stats.min),
        max: some(stats.max),
        mean: some(stats.mean),
        std: some((stats.squares / stats.count).sqrt()),
        ..Preview::default()
    }
}

struct RunningStats {
    count: f64,
    min: f64,
    max: f64,
    mean: f64,
    /// Sum of squared differences from the mean.
    squares: f64,
}

impl RunningStats {
    /// Welford's algorithm: one pass, without cancellation for a large mean.
    fn from_values(values: impl Iterator<Item = f64>) -> RunningStats {
        let start = RunningStats {
            count: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            mean: 0.0,
            squares: 0.0,
        };
        values.fold(start, |stats, value| {
            let count = stats.count + 1.0;
            let before = value - stats.mean;
            let mean = stats.mean + before / count;
            let squares = stats.squares + before * (value - mean);
            RunningStats {
                count,
                min: stats.min.min(value),
                max: stats.max.max(value),
                mean,
                squares,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_has_range_mean_and_deviation() {
        let tensor = Tensor::new(vec![2, 2], Values::F32(vec![1.0, 2.0, 3.0, 6.0])).unwrap();
        let stats = describe(&tensor);
        assert_eq!(
            (stats.min, stats.max, stats.mean),
            (Some(1.0), Some(6.0), Some(3.0))
        );
        assert!((stats.std.unwrap() - 3.5f64.sqrt()).abs() < 1e-12);
        assert_eq!(
            (stats.element.as_str(), stats.shape),
            ("float32", vec![2, 2])
        );
    }

    #[test]
    fn an_empty_tensor_has_no_numbers() {
        let stats = describe(&Tensor::new(vec![0], Values::I64(vec![])).unwrap());
        assert_eq!((stats.min, stats.std), (None, None));
    }
}
