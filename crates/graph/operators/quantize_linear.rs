//! Conversions between floats and integers with a scale.

use super::Operator;
use super::Property::OnlyQuantized;

const fn conversion(name: &'static str) -> Operator {
    Operator::onnx(name).with(&[OnlyQuantized])
}

pub(super) static OPERATORS: &[Operator] = &[
    conversion("DequantizeLinear"),
    conversion("DynamicQuantizeLinear"),
    conversion("QuantizeLinear"),
    Operator::microsoft("DequantizeLinear").with(&[OnlyQuantized]),
    Operator::microsoft("QuantizeLinear").with(&[OnlyQuantized]),
];
