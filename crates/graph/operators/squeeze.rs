//! Squeeze and Unsqueeze: axes of size 1 go or come.

use super::Operator;
use super::reshape::reshaping;

pub(super) static OPERATORS: &[Operator] = &[
    reshaping("Squeeze").shape_from(&[1]),
    reshaping("Unsqueeze").shape_from(&[1]),
];
