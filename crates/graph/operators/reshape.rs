//! Operators that give the same elements another shape: Reshape and Flatten.

use super::Operator;
use super::Property::{ChangesForm, KeepsIndices, KeepsRange, MovesData, PassesInfinity, Reshapes};
use super::Treatment;
use super::properties::ChannelRole;

/// An operator that gives the same elements another shape.
pub(super) const fn reshaping(name: &'static str) -> Operator {
    Operator::onnx(name)
        .with(&[MovesData, KeepsRange, Reshapes, ChangesForm, KeepsIndices])
        .with(&[PassesInfinity])
        .quantized(Treatment::Share)
        .same_type(1)
        .integers_since(1)
        .channels(ChannelRole::Reshapes)
}

pub(super) static OPERATORS: &[Operator] =
    &[reshaping("Flatten"), reshaping("Reshape").shape_from(&[1])];
