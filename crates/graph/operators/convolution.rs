//! Convolutions.

use super::Property::{EndsClassifier, Fused, MatrixProduct, OnlyQuantized, SaturatesPairs};
use super::descriptor::ALL_INPUTS;
use super::properties::{ChannelPosition, ChannelRole, MacRule};
use super::{DynamicForm, Operator, QLinearInputs, Treatment, WeightAxis};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("CausalConvWithState"),
    Operator::onnx("Conv")
        .with(&[MatrixProduct, SaturatesPairs, EndsClassifier])
        .quantized(Treatment::Weighted(WeightAxis::Fixed(0)))
        .qlinear("QLinearConv", QLinearInputs::Convolution)
        .dynamic(DynamicForm::Convolution)
        .weights(&[1])
        .same_type(ALL_INPUTS)
        .macs(MacRule::Conv(1))
        .channels(ChannelRole::Layer(ChannelPosition::Second)),
    Operator::onnx("ConvInteger")
        .with(&[MatrixProduct, SaturatesPairs, OnlyQuantized])
        .weights(&[1])
        .macs(MacRule::Conv(1)),
    Operator::onnx("ConvTranspose")
        .with(&[MatrixProduct])
        .quantized(Treatment::Weighted(WeightAxis::Fixed(1)))
        .weights(&[1])
        .same_type(ALL_INPUTS)
        .macs(MacRule::ConvTranspose)
        .channels(ChannelRole::Layer(ChannelPosition::Second)),
    Operator::onnx("DeformConv"),
    Operator::onnx("QLinearConv")
        .with(&[MatrixProduct, SaturatesPairs, OnlyQuantized])
        .weights(&[3])
        .macs(MacRule::Conv(3)),
    Operator::microsoft("FusedConv")
        .with(&[Fused])
        .macs(MacRule::Conv(1)),
];
