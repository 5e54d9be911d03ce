//! ONNX Runtime's operators on integers with a scale for each input and output.

use super::Operator;
use super::Property::OnlyQuantized;

const fn integer(name: &'static str) -> Operator {
    Operator::microsoft(name).with(&[OnlyQuantized])
}

pub(super) static OPERATORS: &[Operator] = &[
    integer("QLinearAdd"),
    integer("QLinearAveragePool"),
    integer("QLinearConcat"),
    integer("QLinearGlobalAveragePool"),
    integer("QLinearLeakyRelu"),
    integer("QLinearMul"),
    integer("QLinearReduceMean"),
    integer("QLinearSigmoid"),
    integer("QLinearSoftmax"),
    integer("QLinearWhere"),
];
