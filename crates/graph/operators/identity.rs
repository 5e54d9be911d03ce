//! Operators that return their input: Identity, and Dropout outside training.

use super::Operator;
use super::Property::{ChangesForm, ChangesType, KeepsIndices, MovesData};
use super::quantization::IDLE;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Dropout")
        .infers_same()
        .with(&[ChangesType, ChangesForm])
        .stays_float(IDLE),
    Operator::onnx("Identity")
        .infers(|ctx| ctx.input(0).cloned())
        .with(&[MovesData, ChangesForm, KeepsIndices])
        .stays_float(IDLE)
        .same_type(1),
];
