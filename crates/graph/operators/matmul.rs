//! Matrix products.

use super::Property::{EndsClassifier, Fused, MatrixProduct, OnlyQuantized, SaturatesPairs};
use super::descriptor::ALL_INPUTS;
use super::properties::{ChannelPosition, ChannelRole, MacRule};
use super::{DynamicForm, Operator, QLinearInputs, Treatment};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Einsum").with(&[MatrixProduct]),
    Operator::onnx("MatMul")
        .with(&[MatrixProduct, SaturatesPairs, EndsClassifier])
        .quantized(Treatment::MatMul)
        .qlinear("QLinearMatMul", QLinearInputs::Product)
        .dynamic(DynamicForm::MatMul)
        .weights(&[1])
        .same_type(ALL_INPUTS)
        .macs(MacRule::Product)
        .channels(ChannelRole::Layer(ChannelPosition::Last)),
    Operator::onnx("MatMulInteger")
        .with(&[MatrixProduct, SaturatesPairs, OnlyQuantized])
        .weights(&[1])
        .macs(MacRule::Product),
    Operator::onnx("QLinearMatMul")
        .with(&[SaturatesPairs, OnlyQuantized])
        .weights(&[3])
        .macs(MacRule::Product),
    Operator::microsoft("DynamicQuantizeMatMul")
        .with(&[MatrixProduct, OnlyQuantized])
        .macs(MacRule::Product),
    Operator::microsoft("FusedMatMul")
        .with(&[Fused])
        .macs(MacRule::Product),
    Operator::microsoft("MatMulIntegerToFloat").with(&[MatrixProduct, OnlyQuantized]),
    Operator::microsoft("TransposeMatMul").with(&[Fused]),
];
