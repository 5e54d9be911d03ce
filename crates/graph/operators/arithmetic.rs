//! Arithmetic on several inputs that are broadcast to a common shape.

use super::Property::{Broadcasts, EndsClassifier, IdleWithOneInput, PassesInfinity};
use super::descriptor::ALL_INPUTS;
use super::elements::{two, two_floats};
use super::properties::ChannelRole;
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::inferred_value::InferredValue;
use octet_onnx::schema::NodeProto;

const fn broadcasting(name: &'static str) -> Operator {
    Operator::onnx(name).with(&[Broadcasts]).infers(computed)
}

pub(super) static OPERATORS: &[Operator] = &[
    broadcasting("Add")
        .integers(|_, row| two(row).and_then(|(a, b)| a.checked_add(b)))
        .floats(|row| two_floats(row).map(|(a, b)| a + b))
        .with(&[PassesInfinity, EndsClassifier])
        .quantized(Treatment::Elementwise)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Adds),
    Operator::onnx("BitShift").with(&[Broadcasts]),
    Operator::onnx("BitwiseAnd").with(&[Broadcasts]),
    Operator::onnx("BitwiseOr").with(&[Broadcasts]),
    Operator::onnx("BitwiseXor").with(&[Broadcasts]),
    broadcasting("Div")
        // Truncates towards zero, as in C.
        .integers(|_, row| two(row).and_then(|(a, b)| a.checked_div(b)))
        .floats(|row| two_floats(row).map(|(a, b)| a / b))
        .quantized_here(Treatment::Elementwise)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Divides),
    broadcasting("Max")
        .integers(|_, row| all(row)?.into_iter().max())
        .with(&[IdleWithOneInput])
        .quantized_here(Treatment::Elementwise)
        .channels(ChannelRole::Adds),
    broadcasting("Mean")
        .with(&[IdleWithOneInput])
        .channels(ChannelRole::Adds),
    broadcasting("Min")
        .integers(|_, row| all(row)?.into_iter().min())
        .with(&[IdleWithOneInput])
        .quantized_here(Treatment::Elementwise)
        .channels(ChannelRole::Adds),
    broadcasting("Mod").integers(remainder),
    broadcasting("Mul")
        .integers(|_, row| two(row).and_then(|(a, b)| a.checked_mul(b)))
        .floats(|row| two_floats(row).map(|(a, b)| a * b))
        .quantized(Treatment::Elementwise)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Multiplies),
    broadcasting("PRelu")
        .infers_same()
        .quantized_here(Treatment::Elementwise)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Commutes),
    broadcasting("Pow"),
    broadcasting("Sub")
        .integers(|_, row| two(row).and_then(|(a, b)| a.checked_sub(b)))
        .floats(|row| two_floats(row).map(|(a, b)| a - b))
        .with(&[PassesInfinity])
        .quantized_here(Treatment::Elementwise)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Adds),
    broadcasting("Sum")
        .with(&[IdleWithOneInput])
        .channels(ChannelRole::Adds),
];

fn computed(ctx: &ShapeContext) -> Option<InferredValue> {
    let element = ctx.input(0).or(ctx.input(1))?.element;
    Some(ctx.broadcast(element))
}

fn all(row: &[Option<i64>]) -> Option<Vec<i64>> {
    row.iter().copied().collect()
}

/// The remainder has the sign of the divisor, as in Python, unless `fmod` asks for C's.
fn remainder(node: &NodeProto, row: &[Option<i64>]) -> Option<i64> {
    let (dividend, divisor) = two(row)?;
    let rest = dividend.checked_rem(divisor)?;
    let python = node.int("fmod").unwrap_or(0) == 0;
    Some(if python && rest != 0 && (rest < 0) != (divisor < 0) {
        rest + divisor
    } else {
        rest
    })
}
