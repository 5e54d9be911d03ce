//! Pad.

use super::Property::KeepsRange;
use super::properties::ChannelRole;
use super::{Operator, Treatment};

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("Pad")
    .with(&[KeepsRange])
    .quantized(Treatment::Pad)
    .shape_from(&[1, 3])
    .same_type(1)
    .channels(ChannelRole::Commutes)];
