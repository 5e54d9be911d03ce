//! Arm's CMSIS-NN and Ethos-U, which follow the 8-bit specification of LiteRT.

use octet_onnx::schema::DataType::Int8;

use crate::integers::INTEGER_OPERATORS;
use crate::rule::{FixedScale, RuleData, TargetRule};

const SPECIFICATION: &str = "LiteRT, 8-bit quantization specification";

const SCALES: &[FixedScale] = &[
    FixedScale {
        operator: "Sigmoid",
        element: Int8,
        scale: 1.0 / 256.0,
        zero_point: -128,
    },
    FixedScale {
        operator: "Softmax",
        element: Int8,
        scale: 1.0 / 256.0,
        zero_point: -128,
    },
    FixedScale {
        operator: "Tanh",
        element: Int8,
        scale: 1.0 / 128.0,
        zero_point: 0,
    },
];

pub(crate) const RULES: &[TargetRule] = &[
    TargetRule {
        name: "pairs",
        text: "Integers are written as pairs of QuantizeLinear and DequantizeLinear, from which converters take the scales.",
        source: SPECIFICATION,
        requirement: RuleData::WithoutOperators(INTEGER_OPERATORS),
    },
    TargetRule {
        name: "domains",
        text: "All operators are ONNX's own.",
        source: SPECIFICATION,
        requirement: RuleData::Domains(&[""]),
    },
    TargetRule {
        name: "activation-type",
        text: "Activations are i8.",
        source: SPECIFICATION,
        requirement: RuleData::ActivationTypes(&[Int8]),
    },
    TargetRule {
        name: "weight-type",
        text: "Weights are i8.",
        source: SPECIFICATION,
        requirement: RuleData::WeightTypes(&[Int8]),
    },
    TargetRule {
        name: "weight-zero-point",
        text: "Zero points of weights are 0.",
        source: SPECIFICATION,
        requirement: RuleData::SymmetricWeights,
    },
    TargetRule {
        name: "weight-range",
        text: "Weights are between -127 and 127.",
        source: SPECIFICATION,
        requirement: RuleData::NarrowWeights,
    },
    TargetRule {
        name: "activation-scale",
        text: "An activation has one scale.",
        source: SPECIFICATION,
        requirement: RuleData::OneScale,
    },
    TargetRule {
        name: "channel-axis",
        text: "Weights of Conv (axis 0) may have a scale for each channel; others have one.",
        source: SPECIFICATION,
        requirement: RuleData::ChannelScales(&[("Conv", 0)]),
    },
    TargetRule {
        name: "bias-scale",
        text: "The scale of a bias is that of its input times that of its weight.",
        source: SPECIFICATION,
        requirement: RuleData::BiasScales,
    },
    TargetRule {
        name: "one-scale",
        text: "Operators that move data, pool or join have one scale and zero point for inputs and outputs.",
        source: SPECIFICATION,
        requirement: RuleData::OneScalePerNode(&[
            "AveragePool",
            "Concat",
            "Gather",
            "MaxPool",
            "Pad",
            "Reshape",
            "Resize",
            "Slice",
            "Split",
            "Squeeze",
            "Transpose",
            "Unsqueeze",
        ]),
    },
    TargetRule {
        name: "output-scale",
        text: "Outputs of Sigmoid and Softmax have the scale 1/256 and the zero point -128, those of Tanh 1/128 and 0.",
        source: SPECIFICATION,
        requirement: RuleData::OutputScale(SCALES),
    },
];
