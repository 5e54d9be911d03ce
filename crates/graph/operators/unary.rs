//! Functions of one value, applied to each element.

use super::Property::{Activation, Gates, KeepsIndices, Squashes};
use super::elements::{elementwise, one};
use super::float16::NOT_IN_EVERY_OPSET;
use super::opset_context::{Adapted, OpsetContext, limit_like};
use super::properties::ChannelRole;
use super::quantization::SHAPES;
use super::shape_context::ShapeContext;
use super::{Operator, QLinearInputs, Treatment};
use crate::Node;
use crate::inferred_value::InferredValue;

const fn unary(name: &'static str) -> Operator {
    Operator::onnx(name).infers(computed)
}

/// A function of one value that networks apply as an activation, or as a part of one.
const fn activation(name: &'static str) -> Operator {
    unary(name).with(&[Activation])
}

pub(super) static OPERATORS: &[Operator] = &[
    activation("Abs")
        .integers(|_, row| one(row)?.checked_abs())
        .floats(|row| Some(row.first()?.abs()))
        .channels(ChannelRole::Commutes),
    Operator::onnx("Acos"),
    Operator::onnx("Acosh"),
    Operator::onnx("Asin"),
    Operator::onnx("Asinh"),
    Operator::onnx("Atan"),
    Operator::onnx("Atanh"),
    Operator::onnx("BitwiseNot"),
    unary("Ceil").floats(|row| Some(row.first()?.ceil())),
    activation("Celu").float16(NOT_IN_EVERY_OPSET),
    activation("Clip")
        .scalars(&[1, 2])
        .changed(&[(11, limits_as_inputs)])
        .infers_same()
        .with(&[KeepsIndices])
        .quantized(Treatment::Clamp),
    unary("Cos"),
    Operator::onnx("Cosh"),
    activation("Elu").quantized_here(Treatment::Elementwise),
    activation("Erf")
        .quantized_here(Treatment::Elementwise)
        .same_type(1),
    activation("Exp"),
    unary("Floor").floats(|row| Some(row.first()?.floor())),
    activation("Gelu")
        .quantized_here(Treatment::Elementwise)
        .same_type(1),
    activation("HardSigmoid")
        .with(&[Squashes, Gates])
        .quantized_here(Treatment::Elementwise),
    activation("HardSwish")
        .quantized_here(Treatment::Elementwise)
        .same_type(1),
    Operator::onnx("IsInf").float16(NOT_IN_EVERY_OPSET),
    Operator::onnx("IsNaN"),
    activation("LeakyRelu")
        .quantized(Treatment::Elementwise)
        .qlinear_microsoft("QLinearLeakyRelu", QLinearInputs::Unary)
        .same_type(1)
        .channels(ChannelRole::Commutes),
    activation("Log"),
    activation("Mish"),
    activation("Neg")
        .integers(|_, row| one(row)?.checked_neg())
        .floats(|row| row.first().map(|value| -value))
        .channels(ChannelRole::Commutes),
    Operator::onnx("Not")
        .infers(computed)
        .integers(|_, row| Some((one(row)? == 0).into()))
        .stays_float(SHAPES),
    unary("Reciprocal"),
    activation("Relu")
        .quantized(Treatment::Clamp)
        .same_type(1)
        .channels(ChannelRole::Commutes),
    unary("Round"),
    activation("Selu"),
    Operator::onnx("Shrink"),
    activation("Sigmoid")
        .with(&[Squashes, Gates])
        .quantized(Treatment::Elementwise)
        .qlinear_microsoft("QLinearSigmoid", QLinearInputs::Unary)
        .same_type(1),
    unary("Sign"),
    unary("Sin"),
    Operator::onnx("Sinh"),
    activation("Softplus"),
    unary("Softsign"),
    activation("Sqrt").floats(|row| Some(row.first()?.sqrt())),
    Operator::onnx("Swish")
        .with(&[Activation])
        .checks_shapes(|ctx| ctx.inputs_broadcast())
        .fused(|to, node| to.sigmoid_gate(node, 1.0)),
    unary("Tan"),
    activation("Tanh")
        .with(&[Gates])
        .quantized_here(Treatment::Elementwise)
        .same_type(1),
    activation("ThresholdedRelu"),
];

/// The function of each element, where the elements are known.
fn computed(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    Some(elementwise(ctx, &[input], ctx.same(0)?))
}

/// Changes Clip to opset 11.
fn limits_as_inputs(to: &mut OpsetContext, mut node: Node) -> Adapted {
    // The ends of f32, the old defaults, clip nothing.
    for (slot, key) in [(1, "min"), (2, "max")] {
        let Some(value) = node.take(key).and_then(|a| a.as_float()) else {
            continue;
        };
        if value == f32::MIN || value == f32::MAX {
            continue;
        }
        let limit = limit_like(to, &node, value)?;
        let name = to.constant(&node, key, limit);
        node.set_input(slot, name);
    }
    to.write(node);
    Ok(())
}
