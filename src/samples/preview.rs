//! Preview of an input tensor, by which people check the preprocessing.

use serde::Serialize;

use super::error::type_name;
use crate::tensor::{Tensor, Values};

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
}

/// Describes a tensor. The input's name and the notes stay empty.
pub fn describe(tensor: &Tensor) -> Preview {
    let seen = match tensor.values() {
        Values::F32(v) => Seen::of(v.iter().map(|&x| x.into())),
        Values::F64(v) => Seen::of(v.iter().copied()),
        Values::I8(v) => Seen::of(v.iter().map(|&x| x.into())),
        Values::I16(v) => Seen::of(v.iter().map(|&x| x.into())),
        Values::I32(v) => Seen::of(v.iter().map(|&x| x.into())),
        Values::I64(v) => Seen::of(v.iter().map(|&x| x as f64)),
        Values::U8(v) => Seen::of(v.iter().map(|&x| x.into())),
        Values::U16(v) => Seen::of(v.iter().map(|&x| x.into())),
        Values::U32(v) => Seen::of(v.iter().map(|&x| x.into())),
        Values::U64(v) => Seen::of(v.iter().map(|&x| x as f64)),
        Values::Bool(v) => Seen::of(v.iter().map(|&x| x.into())),
    };
    let some = |value: f64| (seen.count > 0.0).then_some(value);
    Preview {
        element: type_name(tensor.element_type()).into(),
        shape: tensor.shape().to_vec(),
        min: some(seen.min),
        max: some(seen.max),
        mean: some(seen.mean),
        std: some((seen.squares / seen.count).sqrt()),
        ..Preview::default()
    }
}

struct Seen {
    count: f64,
    min: f64,
    max: f64,
    mean: f64,
    /// Sum of squared differences from the mean.
    squares: f64,
}

impl Seen {
    /// Welford's algorithm: one pass, without cancellation for a large mean.
    fn of(values: impl Iterator<Item = f64>) -> Seen {
        let start = Seen {
            count: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            mean: 0.0,
            squares: 0.0,
        };
        values.fold(start, |seen, value| {
            let count = seen.count + 1.0;
            let before = value - seen.mean;
            let mean = seen.mean + before / count;
            let squares = seen.squares + before * (value - mean);
            Seen {
                count,
                min: seen.min.min(value),
                max: seen.max.max(value),
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
    fn a_preview_tells_range_mean_and_deviation() {
        let tensor = Tensor::new(vec![2, 2], Values::F32(vec![1.0, 2.0, 3.0, 6.0])).unwrap();
        let seen = describe(&tensor);
        assert_eq!(
            (seen.min, seen.max, seen.mean),
            (Some(1.0), Some(6.0), Some(3.0))
        );
        assert!((seen.std.unwrap() - 3.5f64.sqrt()).abs() < 1e-12);
        assert_eq!((seen.element.as_str(), seen.shape), ("float32", vec![2, 2]));
    }

    #[test]
    fn an_empty_tensor_has_no_numbers() {
        let seen = describe(&Tensor::new(vec![0], Values::I64(vec![])).unwrap());
        assert_eq!((seen.min, seen.std), (None, None));
    }
}
