//! Losses of training.

use super::Operator;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("NegativeLogLikelihoodLoss"),
    Operator::onnx("SoftmaxCrossEntropyLoss"),
];
