//! Products of two matrices with a bias.

use super::Property::{EndsClassifier, Fused, MatrixProduct, OnlyQuantized, SaturatesPairs};
use super::descriptor::ALL_INPUTS;
use super::properties::{ChannelPosition, ChannelRole, MacRule};
use super::{DynamicForm, Operator, QLinearInputs, Treatment, WeightAxis};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Gemm")
        .with(&[MatrixProduct, SaturatesPairs, EndsClassifier])
        .quantized(Treatment::Weighted(WeightAxis::OfGemm))
        .qlinear_microsoft("QGemm", QLinearInputs::Gemm)
        .dynamic(DynamicForm::Gemm)
        .weights(&[1])
        .same_type(ALL_INPUTS)
        .macs(MacRule::Gemm)
        .channels(ChannelRole::Layer(ChannelPosition::Second)),
    Operator::microsoft("FusedGemm").with(&[Fused, EndsClassifier]),
    Operator::microsoft("QGemm")
        .with(&[MatrixProduct, SaturatesPairs, OnlyQuantized])
        .weights(&[3]),
];
