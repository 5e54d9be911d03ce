//! Functions of one value, applied to each element.

use super::Property::{Fused, Gates, KeepsIndices, Squashes, Unary};
use super::float16::NOT_IN_EVERY_OPSET;
use super::properties::ChannelRole;
use super::quantization::SHAPES;
use super::{Operator, QLinearInputs, Treatment};

const fn unary(name: &'static str) -> Operator {
    Operator::onnx(name).with(&[Unary])
}

pub(super) static OPERATORS: &[Operator] = &[
    unary("Abs").channels(ChannelRole::Commutes),
    unary("Acos"),
    unary("Acosh"),
    unary("Asin"),
    unary("Asinh"),
    unary("Atan"),
    unary("Atanh"),
    Operator::onnx("BitwiseNot"),
    unary("Ceil"),
    unary("Celu").float16(NOT_IN_EVERY_OPSET),
    unary("Clip")
        .with(&[KeepsIndices])
        .quantized(Treatment::Clamp),
    unary("Cos"),
    unary("Cosh"),
    unary("Elu").quantized_here(Treatment::Elementwise),
    unary("Erf")
        .quantized_here(Treatment::Elementwise)
        .same_type(1),
    unary("Exp"),
    unary("Floor"),
    unary("Gelu")
        .quantized_here(Treatment::Elementwise)
        .same_type(1),
    unary("HardSigmoid")
        .with(&[Squashes, Gates])
        .quantized_here(Treatment::Elementwise),
    unary("HardSwish")
        .quantized_here(Treatment::Elementwise)
        .same_type(1),
    Operator::onnx("IsInf").float16(NOT_IN_EVERY_OPSET),
    Operator::onnx("IsNaN"),
    unary("LeakyRelu")
        .quantized(Treatment::Elementwise)
        .qlinear_microsoft("QLinearLeakyRelu", QLinearInputs::Unary)
        .same_type(1)
        .channels(ChannelRole::Commutes),
    unary("Log"),
    unary("Mish"),
    unary("Neg").channels(ChannelRole::Commutes),
    Operator::onnx("Not").stays_float(SHAPES),
    unary("Reciprocal"),
    unary("Relu")
        .quantized(Treatment::Clamp)
        .same_type(1)
        .channels(ChannelRole::Commutes),
    unary("Round"),
    unary("Selu"),
    unary("Shrink"),
    unary("Sigmoid")
        .with(&[Squashes, Gates])
        .quantized(Treatment::Elementwise)
        .qlinear_microsoft("QLinearSigmoid", QLinearInputs::Unary)
        .same_type(1),
    unary("Sign"),
    unary("Sin"),
    unary("Sinh"),
    unary("Softplus"),
    unary("Softsign"),
    unary("Sqrt"),
    unary("Swish").with(&[Fused]),
    unary("Tan"),
    unary("Tanh")
        .with(&[Gates])
        .quantized_here(Treatment::Elementwise)
        .same_type(1),
    unary("ThresholdedRelu"),
];
