//! Normalizations.

use super::Property::Fused;
use super::descriptor::ALL_INPUTS;
use super::float16::NO_KERNEL;
use super::properties::{ChannelPosition, ChannelRole, Float16};
use super::{Operator, Treatment};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("BatchNormalization")
        .infers_same()
        .quantized(Treatment::Normalize)
        .channels(ChannelRole::Norm(ChannelPosition::Second)),
    Operator::onnx("GroupNormalization")
        .infers_same()
        .quantized_here(Treatment::Normalize),
    Operator::onnx("InstanceNormalization")
        .infers_same()
        .quantized(Treatment::Normalize)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Norm(ChannelPosition::Second)),
    Operator::onnx("LRN").infers_same(),
    Operator::onnx("LayerNormalization")
        .infers_same()
        .quantized(Treatment::Normalize)
        .float16(Float16::StaysWithMoreOutputs(
            "its statistics are always float32",
        ))
        .channels(ChannelRole::Norm(ChannelPosition::Last)),
    Operator::onnx("LpNormalization").infers_same(),
    Operator::onnx("MeanVarianceNormalization")
        .infers_same()
        .float16(NO_KERNEL),
    Operator::onnx("RMSNormalization"),
    Operator::microsoft("SkipLayerNormalization").with(&[Fused]),
    Operator::microsoft("SkipSimplifiedLayerNormalization"),
];
