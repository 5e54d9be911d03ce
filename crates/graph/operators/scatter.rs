//! Scatter and its relatives: elements written by index.

use super::Operator;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Scatter"),
    Operator::onnx("ScatterElements"),
    Operator::onnx("ScatterND"),
    Operator::onnx("TensorScatter"),
];
