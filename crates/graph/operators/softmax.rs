//! Softmax and its relatives along an axis.

use super::Property::{Gates, Squashes};
use super::{Operator, Treatment};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Hardmax").infers_same(),
    Operator::onnx("LogSoftmax").infers_same().with(&[Squashes]),
    Operator::onnx("Softmax")
        .infers_same()
        .with(&[Squashes, Gates])
        .quantized(Treatment::Elementwise)
        .same_type(1),
];
