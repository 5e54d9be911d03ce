//! Comparisons, conditions and choices by condition.

use super::Property::{Broadcasts, PassesInfinity};
use super::elements::two;
use super::quantization::SHAPES;
use super::{Operator, Treatment};
use octet_onnx::schema::DataType;

const fn condition(name: &'static str) -> Operator {
    Operator::onnx(name).with(&[Broadcasts]).infers(|ctx| {
        let element = ctx.input(0).or(ctx.input(1))?.element;
        Some(ctx.broadcast(element))
    })
}

const fn comparison(name: &'static str) -> Operator {
    let compare = Operator::onnx(name).with(&[Broadcasts]);
    compare.infers(|ctx| Some(ctx.broadcast(DataType::Bool)))
}

pub(super) static OPERATORS: &[Operator] = &[
    condition("And")
        .integers(|_, row| two(row).map(|(a, b)| (a != 0 && b != 0).into()))
        .stays_float(SHAPES),
    comparison("Equal")
        .integers(|_, row| two(row).map(|(a, b)| (a == b).into()))
        .stays_float(SHAPES),
    comparison("Greater")
        .integers(|_, row| two(row).map(|(a, b)| (a > b).into()))
        .stays_float(SHAPES),
    comparison("GreaterOrEqual").integers(|_, row| two(row).map(|(a, b)| (a >= b).into())),
    comparison("Less")
        .integers(|_, row| two(row).map(|(a, b)| (a < b).into()))
        .stays_float(SHAPES),
    comparison("LessOrEqual").integers(|_, row| two(row).map(|(a, b)| (a <= b).into())),
    condition("Or")
        .integers(|_, row| two(row).map(|(a, b)| (a != 0 || b != 0).into()))
        .stays_float(SHAPES),
    Operator::onnx("Where")
        .with(&[Broadcasts])
        .infers(|ctx| {
            let element = ctx.input(1).or(ctx.input(2))?.element;
            Some(ctx.broadcast(element))
        })
        .integers(|_, row| match row {
            &[condition, yes, no] => match condition? {
                0 => no,
                _ => yes,
            },
            _ => None,
        })
        .with(&[PassesInfinity])
        .quantized(Treatment::Where),
    condition("Xor"),
];
