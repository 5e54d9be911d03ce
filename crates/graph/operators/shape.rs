//! Operators that read the shape of their input.

use super::Operator;
use super::Property::OfShapes;
use super::quantization::SHAPES;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Shape")
        .with(&[OfShapes])
        .stays_float(SHAPES),
    Operator::onnx("Size").with(&[OfShapes]).stays_float(SHAPES),
];
