//! Operators that repeat elements: Expand and Tile.

use super::Operator;
use super::Property::{KeepsIndices, MovesData, PassesInfinity};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Expand")
        .with(&[MovesData, KeepsIndices, PassesInfinity])
        .shape_from(&[1]),
    Operator::onnx("Tile").shape_from(&[1]),
];
