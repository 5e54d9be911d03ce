//! Intel's OpenVINO, which turns pairs into its FakeQuantize.

use octet_onnx::schema::DataType::{Int8, Uint8};

use crate::integers::INTEGER_OPERATORS;
use crate::rule::{RuleData, TargetRule};

const TRANSFORMATIONS: &str = "OpenVINO, Low Precision Transformations";

pub(crate) const RULES: &[TargetRule] = &[
    TargetRule {
        name: "pairs",
        text: "Integers are written as pairs of QuantizeLinear and DequantizeLinear.",
        source: "OpenVINO, Low Precision IR",
        requirement: RuleData::WithoutOperators(INTEGER_OPERATORS),
    },
    TargetRule {
        name: "domains",
        text: "All operators are ONNX's own.",
        source: "OpenVINO, Low Precision IR",
        requirement: RuleData::Domains(&[""]),
    },
    TargetRule {
        name: "activation-type",
        text: "Activations are u8 or i8; the neural processor drops pairs of 16 bits.",
        source: "OpenVINO, Low Precision Transformations; ONNX Runtime, pull request 20622",
        requirement: RuleData::ActivationTypes(&[Uint8, Int8]),
    },
    TargetRule {
        name: "weight-type",
        text: "Weights are u8 or i8.",
        source: TRANSFORMATIONS,
        requirement: RuleData::WeightTypes(&[Int8, Uint8]),
    },
    TargetRule {
        name: "activation-scale",
        text: "An activation has one scale.",
        source: TRANSFORMATIONS,
        requirement: RuleData::OneScale,
    },
    TargetRule {
        name: "channel-axis",
        text: "A weight has a scale for each output channel, or one.",
        source: TRANSFORMATIONS,
        requirement: RuleData::ChannelScales(&[
            ("Conv", 0),
            ("ConvTranspose", 1),
            ("Gemm", 0),
            ("Gemm", 1),
            ("MatMul", -1),
        ]),
    },
];
