//! Concat.

use super::Property::{IdleWithOneInput, MovesData, PassesInfinity};
use super::descriptor::ALL_INPUTS;
use super::properties::ChannelRole;
use super::{Operator, QLinearInputs, Treatment};

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("Concat")
    .with(&[MovesData, PassesInfinity, IdleWithOneInput])
    .quantized(Treatment::Elementwise)
    .qlinear_microsoft("QLinearConcat", QLinearInputs::Concat)
    .same_type(ALL_INPUTS)
    .channels(ChannelRole::Joins)];
