//! Comparisons, conditions and choices by condition.

use super::Property::{MergesInputs, PassesInfinity};
use super::arithmetic::align;
use super::elements::two;
use super::quantization::SHAPES;
use super::{Operator, QLinearInputs, Treatment};
use octet_onnx::schema::DataType;

const fn condition(name: &'static str) -> Operator {
    Operator::onnx(name)
        .checks_shapes(|ctx| ctx.inputs_broadcast())
        .infers(|ctx| {
            let element = ctx.input(0).or(ctx.input(1))?.element;
            Some(ctx.broadcast(element))
        })
}

const fn comparison(name: &'static str) -> Operator {
    let compare = Operator::onnx(name).checks_shapes(|ctx| ctx.inputs_broadcast());
    compare.infers(|ctx| Some(ctx.broadcast(DataType::Bool)))
}

pub(super) static OPERATORS: &[Operator] = &[
    condition("And")
        .requires(2)
        .changed(&[(7, align)])
        .integers(|_, row| two(row).map(|(a, b)| (a != 0 && b != 0).into()))
        .stays_float(SHAPES),
    comparison("Equal")
        .requires(2)
        .changed(&[(7, align)])
        .integers(|_, row| two(row).map(|(a, b)| (a == b).into()))
        .stays_float(SHAPES),
    comparison("Greater")
        .requires(2)
        .changed(&[(7, align)])
        .integers(|_, row| two(row).map(|(a, b)| (a > b).into()))
        .stays_float(SHAPES),
    comparison("GreaterOrEqual")
        .requires(2)
        .integers(|_, row| two(row).map(|(a, b)| (a >= b).into())),
    comparison("Less")
        .requires(2)
        .changed(&[(7, align)])
        .integers(|_, row| two(row).map(|(a, b)| (a < b).into()))
        .stays_float(SHAPES),
    comparison("LessOrEqual")
        .requires(2)
        .integers(|_, row| two(row).map(|(a, b)| (a <= b).into())),
    condition("Or")
        .requires(2)
        .changed(&[(7, align)])
        .integers(|_, row| two(row).map(|(a, b)| (a != 0 || b != 0).into()))
        .stays_float(SHAPES),
    Operator::onnx("Where")
        .with(&[MergesInputs])
        .requires(3)
        .checks_shapes(|ctx| ctx.inputs_broadcast())
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
        .quantized(Treatment::Where)
        .qlinear_microsoft("QLinearWhere", QLinearInputs::Where),
    condition("Xor").requires(2).changed(&[(7, align)]),
];
