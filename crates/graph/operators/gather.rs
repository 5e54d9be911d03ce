//! Gather and its relatives: elements by index.

use super::Property::MovesData;
use super::{Operator, Treatment};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Gather")
        .with(&[MovesData])
        .quantized(Treatment::Gather)
        .weights(&[0])
        .same_type(1)
        .integers_since(1),
    Operator::onnx("GatherElements")
        .quantized(Treatment::Gather)
        .integers_since(1),
    Operator::onnx("GatherND"),
];
