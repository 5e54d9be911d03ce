//! Softmax and its relatives along an axis.

use super::Property::{Gates, Squashes};
use super::{Operator, Treatment};

const fn along_axis(name: &'static str) -> Operator {
    Operator::onnx(name)
        .infers_same()
        .ranks(&[(0, 1)])
        .checks(|ctx| ctx.axis_in_range())
}

pub(super) static OPERATORS: &[Operator] = &[
    along_axis("Hardmax"),
    along_axis("LogSoftmax").with(&[Squashes]),
    along_axis("Softmax")
        .at_most(1)
        .with(&[Squashes, Gates])
        .quantized(Treatment::Elementwise)
        .same_type(1),
];

#[cfg(test)]
mod tests {
    use super::super::test_models::{PICTURE, int, refused, taken};

    #[test]
    fn the_axis_is_one_of_the_input() {
        for (operator, axis) in [("Softmax", 4), ("LogSoftmax", -5)] {
            let error = refused(int(operator, "axis", axis), PICTURE, &[]);
            assert!(error.contains("axis"), "{error}");
        }
        taken(int("Softmax", "axis", -4), PICTURE, &[]);
    }
}
