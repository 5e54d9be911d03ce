//! DepthToSpace and SpaceToDepth.

use super::Property::KeepsRange;
use super::{Operator, Treatment};

const fn blocks(name: &'static str) -> Operator {
    Operator::onnx(name)
        .with(&[KeepsRange])
        .quantized_here(Treatment::Share)
}

pub(super) static OPERATORS: &[Operator] = &[blocks("DepthToSpace"), blocks("SpaceToDepth")];
