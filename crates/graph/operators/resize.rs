//! Resize, and Upsample before it.

use super::float16::POSITIONS;
use super::properties::ChannelRole;
use super::{Operator, Treatment};

pub(super) static OPERATORS: &[Operator] = &[
    // Scales and sizes.
    Operator::onnx("Resize")
        .quantized(Treatment::Share)
        .shape_from(&[2, 3])
        .integers_since(10)
        .float16(POSITIONS)
        .channels(ChannelRole::Commutes),
    Operator::onnx("Upsample")
        .shape_from(&[1])
        .float16(POSITIONS),
];
