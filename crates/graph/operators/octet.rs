//! Octet's own operators, which occur only while a model runs.

use super::Operator;

/// The operator that runs a region on integers; a region of constants has no input.
pub const REGION: &str = "OctetIntegers";

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx(REGION).requires(0)];
