//! Changes of the element type.

use super::Operator;
use super::Property::{ChangesForm, ChangesType, KeepsIndices};
use super::properties::{Float16, OutputType};
use super::quantization::SHAPES;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("BitCast").float16(Float16::Stays("it reads the bits of its input")),
    Operator::onnx("Cast")
        .with(&[ChangesType, ChangesForm, KeepsIndices])
        .stays_float(SHAPES)
        .output_type(OutputType::Attribute("to")),
    Operator::onnx("CastLike").with(&[ChangesType]),
];
