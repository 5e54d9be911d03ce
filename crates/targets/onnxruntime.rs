//! ONNX Runtime on the processor.

use crate::rule::{RuleData, TargetRule};

const RUN: &str = "ONNX Runtime 1.31.1, run";

/// Rules of every execution provider, without which a file does not open.
pub(crate) const FILE_RULES: &[TargetRule] = &[
    TargetRule {
        name: "opset",
        text: "The opset is between 7 and 26.",
        source: RUN,
        requirement: RuleData::Opset { least: 7, most: 26 },
    },
    TargetRule {
        name: "ir-version",
        text: "The IR version is at most 13.",
        source: RUN,
        requirement: RuleData::IrVersion(13),
    },
    TargetRule {
        name: "domains",
        text: "Operators are those of ONNX, of ONNX's machine learning, or of ONNX Runtime.",
        source: "ONNX Runtime, OperatorKernels.md",
        requirement: RuleData::Domains(&["", "ai.onnx.ml", "com.microsoft"]),
    },
];

pub(crate) const RULES: &[TargetRule] = &[
    FILE_RULES[0],
    FILE_RULES[1],
    FILE_RULES[2],
    TargetRule {
        name: "activation-scale",
        text: "An activation has one scale.",
        source: "ONNX Runtime, OperatorKernels.md: QLinearConv and QLinearMatMul",
        requirement: RuleData::OneScale,
    },
    TargetRule {
        name: "channel-axis",
        text: "A weight has a scale for each output channel, or one: axis 0 of Conv, 1 of ConvTranspose, \
               0 or 1 of Gemm, the last of a MatMul with a matrix.",
        source: RUN,
        requirement: RuleData::ChannelScales(&[
            ("Conv", 0),
            ("ConvTranspose", 1),
            ("Gemm", 0),
            ("Gemm", 1),
            ("MatMul", -1),
        ]),
    },
    TargetRule {
        name: "conv-integer",
        text: "The weights of ConvInteger are unsigned: older releases have no signed kernel.",
        source: "ONNX Runtime, pull request 26585",
        requirement: RuleData::UnsignedWeights(&["ConvInteger"]),
    },
];
