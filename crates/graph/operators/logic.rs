//! Comparisons, conditions and choices by condition.

use super::Property::{Broadcasts, PassesInfinity};
use super::quantization::SHAPES;
use super::{Operator, QLinearInputs, Treatment};

const fn broadcasting(name: &'static str) -> Operator {
    Operator::onnx(name).with(&[Broadcasts])
}

pub(super) static OPERATORS: &[Operator] = &[
    broadcasting("And").stays_float(SHAPES),
    broadcasting("Equal").stays_float(SHAPES),
    broadcasting("Greater").stays_float(SHAPES),
    broadcasting("GreaterOrEqual"),
    broadcasting("Less").stays_float(SHAPES),
    broadcasting("LessOrEqual"),
    broadcasting("Or").stays_float(SHAPES),
    broadcasting("Where")
        .with(&[PassesInfinity])
        .quantized(Treatment::Where)
        .qlinear_microsoft("QLinearWhere", QLinearInputs::Where),
    broadcasting("Xor"),
];
