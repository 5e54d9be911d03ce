//! Reductions of axes, and sums and products along an axis.

use super::Property::{KeepsRange, MovesData, Reduces};
use super::float16::NOT_IN_EVERY_OPSET;
use super::{Operator, Treatment};

const fn reduction(name: &'static str) -> Operator {
    Operator::onnx(name).with(&[Reduces]).shape_from(&[1])
}

/// A reduction to the largest or smallest element.
const fn selection(name: &'static str) -> Operator {
    reduction(name)
        .with(&[MovesData, KeepsRange])
        .quantized_here(Treatment::Share)
        .integers_since(12)
}

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("ArgMax").quantized(Treatment::Elementwise),
    Operator::onnx("ArgMin"),
    Operator::onnx("CumProd"),
    Operator::onnx("CumSum")
        .quantized(Treatment::Elementwise)
        .float16(NOT_IN_EVERY_OPSET),
    reduction("ReduceL1"),
    reduction("ReduceL2"),
    reduction("ReduceLogSum"),
    reduction("ReduceLogSumExp"),
    selection("ReduceMax"),
    reduction("ReduceMean").quantized_here(Treatment::Elementwise),
    selection("ReduceMin"),
    reduction("ReduceProd"),
    reduction("ReduceSum").quantized_here(Treatment::Elementwise),
    reduction("ReduceSumSquare"),
];
