//! Split.

use super::Property::{KeepsRange, MovesData};
use super::{Operator, Treatment};

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("Split")
    .with(&[MovesData, KeepsRange])
    .quantized(Treatment::Split)
    .shape_from(&[1])
    .same_type(1)
    .integers_since(1)];
