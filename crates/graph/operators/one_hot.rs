//! OneHot.

use super::Operator;
use super::quantization::SHAPES;

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("OneHot")
    .stays_float(SHAPES)
    .shape_from(&[1])];
