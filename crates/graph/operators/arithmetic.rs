//! Arithmetic on several inputs that are broadcast to a common shape.

use super::Property::{Broadcasts, EndsClassifier, IdleWithOneInput, PassesInfinity};
use super::descriptor::ALL_INPUTS;
use super::properties::ChannelRole;
use super::{Operator, QLinearInputs, Treatment};

const fn broadcasting(name: &'static str) -> Operator {
    Operator::onnx(name).with(&[Broadcasts])
}

pub(super) static OPERATORS: &[Operator] = &[
    broadcasting("Add")
        .with(&[PassesInfinity, EndsClassifier])
        .quantized(Treatment::Elementwise)
        .qlinear_microsoft("QLinearAdd", QLinearInputs::Binary)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Adds),
    broadcasting("BitShift"),
    broadcasting("BitwiseAnd"),
    broadcasting("BitwiseOr"),
    broadcasting("BitwiseXor"),
    broadcasting("Div")
        .quantized_here(Treatment::Elementwise)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Divides),
    broadcasting("Max")
        .with(&[IdleWithOneInput])
        .quantized_here(Treatment::Elementwise)
        .channels(ChannelRole::Adds),
    broadcasting("Mean")
        .with(&[IdleWithOneInput])
        .channels(ChannelRole::Adds),
    broadcasting("Min")
        .with(&[IdleWithOneInput])
        .quantized_here(Treatment::Elementwise)
        .channels(ChannelRole::Adds),
    broadcasting("Mod"),
    broadcasting("Mul")
        .quantized(Treatment::Elementwise)
        .qlinear_microsoft("QLinearMul", QLinearInputs::Binary)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Multiplies),
    broadcasting("PRelu")
        .quantized_here(Treatment::Elementwise)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Commutes),
    broadcasting("Pow"),
    broadcasting("Sub")
        .with(&[PassesInfinity])
        .quantized_here(Treatment::Elementwise)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Adds),
    broadcasting("Sum")
        .with(&[IdleWithOneInput])
        .channels(ChannelRole::Adds),
];
