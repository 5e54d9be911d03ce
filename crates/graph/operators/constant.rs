//! Constants and ranges.

use super::Operator;
use super::float16::{NO_KERNEL, NOT_CONVERTED, NOT_IN_EVERY_OPSET};
use super::properties::OutputType;
use super::quantization::SHAPES;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Constant")
        .stays_float(SHAPES)
        .float16(NOT_CONVERTED),
    Operator::onnx("ConstantOfShape")
        .stays_float(SHAPES)
        .shape_from(&[0])
        .output_type(OutputType::Value),
    Operator::onnx("EyeLike").float16(NO_KERNEL),
    Operator::onnx("Range")
        .stays_float(SHAPES)
        .shape_from(&[0, 1, 2])
        .float16(NOT_IN_EVERY_OPSET),
];
