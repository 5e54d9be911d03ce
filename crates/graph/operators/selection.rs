//! Operators that select elements by value.

use super::Property::{DataDependentShape, SelectsBoxes};
use super::float16::{NOT_IN_EVERY_OPSET, POSITIONS};
use super::quantization::SHAPES;
use super::{Operator, Treatment};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Compress").with(&[DataDependentShape]),
    Operator::onnx("NonMaxSuppression")
        .with(&[DataDependentShape, SelectsBoxes])
        .float16(NOT_IN_EVERY_OPSET),
    Operator::onnx("NonZero")
        .with(&[DataDependentShape])
        .stays_float(SHAPES),
    Operator::onnx("TopK")
        .with(&[SelectsBoxes])
        .quantized(Treatment::Share)
        .shape_from(&[1])
        .integers_since(11)
        .float16(POSITIONS),
    Operator::onnx("Unique"),
];
