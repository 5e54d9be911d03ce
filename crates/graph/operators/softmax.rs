//! Softmax and its relatives along an axis.

use super::Property::{Gates, Squashes};
use super::{Operator, QLinearInputs, Treatment};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Hardmax"),
    Operator::onnx("LogSoftmax").with(&[Squashes]),
    Operator::onnx("Softmax")
        .with(&[Squashes, Gates])
        .quantized(Treatment::Elementwise)
        .qlinear_microsoft("QLinearSoftmax", QLinearInputs::Unary)
        .same_type(1),
];
