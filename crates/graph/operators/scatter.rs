//! Scatter and its relatives: elements written by index.

use super::Operator;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Scatter").infers_same(),
    Operator::onnx("ScatterElements").infers_same(),
    Operator::onnx("ScatterND").infers_same(),
    Operator::onnx("TensorScatter"),
];
