//! Slice.

use super::Property::{KeepsRange, MovesData, PassesInfinity};
use super::{Operator, Treatment};

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("Slice")
    .with(&[MovesData, KeepsRange, PassesInfinity])
    .quantized(Treatment::Share)
    .shape_from(&[1, 2, 3, 4])
    .same_type(1)
    .integers_since(1)];
