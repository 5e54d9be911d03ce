//! Transpose.

use super::Property::{ChangesForm, KeepsIndices, KeepsRange, MovesData, PassesInfinity};
use super::{Operator, Treatment};

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("Transpose")
    .with(&[MovesData, KeepsRange, ChangesForm, KeepsIndices])
    .with(&[PassesInfinity])
    .quantized(Treatment::Share)
    .same_type(1)
    .integers_since(1)];
