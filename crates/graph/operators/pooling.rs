//! Pooling: largest or mean value of a window or of the whole image.

use super::Property::{EndsClassifier, KeepsRange, MovesData};
use super::properties::ChannelRole;
use super::{Operator, QLinearInputs, Treatment};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("AveragePool")
        .quantized(Treatment::Share)
        .qlinear_microsoft("QLinearAveragePool", QLinearInputs::Unary)
        .same_type(1)
        .channels(ChannelRole::Commutes),
    Operator::onnx("GlobalAveragePool")
        .with(&[EndsClassifier])
        .quantized(Treatment::Elementwise)
        .qlinear_microsoft("QLinearGlobalAveragePool", QLinearInputs::Unary)
        .same_type(1)
        .channels(ChannelRole::Commutes),
    Operator::onnx("GlobalLpPool"),
    Operator::onnx("GlobalMaxPool")
        .with(&[MovesData, KeepsRange])
        .quantized_here(Treatment::Share)
        .channels(ChannelRole::Commutes),
    Operator::onnx("LpPool"),
    Operator::onnx("MaxPool")
        .with(&[MovesData, KeepsRange])
        .quantized(Treatment::Share)
        .integers_since(12)
        .channels(ChannelRole::Commutes),
    Operator::onnx("MaxUnpool").shape_from(&[2]),
    Operator::microsoft("NhwcMaxPool"),
];
