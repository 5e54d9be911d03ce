//! Operators on the matrices in the last two axes.

use super::Operator;

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("Det"), Operator::onnx("Trilu")];
