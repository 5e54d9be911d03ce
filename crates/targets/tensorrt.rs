//! NVIDIA's TensorRT, explicit quantization.

use octet_onnx::schema::DataType::Int8;

use crate::integers::INTEGER_OPERATORS;
use crate::rule::{RuleData, TargetRule};

const EXPLICIT: &str = "TensorRT, Explicit Quantization";
const OPERATORS: &str = "ONNX-TensorRT, operators.md";

pub(crate) const RULES: &[TargetRule] = &[
    TargetRule {
        name: "opset",
        text: "The opset is between 9 and 25.",
        source: "TensorRT 11, ONNX Opset Guide",
        requirement: RuleData::Opset { least: 9, most: 25 },
    },
    TargetRule {
        name: "domains",
        text: "All operators are ONNX's own.",
        source: OPERATORS,
        requirement: RuleData::Domains(&[""]),
    },
    TargetRule {
        name: "pairs",
        text: "Integers are written as pairs of QuantizeLinear and DequantizeLinear.",
        source: OPERATORS,
        requirement: RuleData::WithoutOperators(INTEGER_OPERATORS),
    },
    TargetRule {
        name: "activation-type",
        text: "Activations are i8.",
        source: OPERATORS,
        requirement: RuleData::ActivationTypes(&[Int8]),
    },
    TargetRule {
        name: "weight-type",
        text: "Weights are i8.",
        source: OPERATORS,
        requirement: RuleData::WeightTypes(&[Int8]),
    },
    TargetRule {
        name: "activation-zero-point",
        text: "Zero points of activations are 0.",
        source: OPERATORS,
        requirement: RuleData::SymmetricActivations,
    },
    TargetRule {
        name: "weight-zero-point",
        text: "Zero points of weights are 0.",
        source: OPERATORS,
        requirement: RuleData::SymmetricWeights,
    },
    TargetRule {
        name: "weight-range",
        text: "Weights are between -127 and 127.",
        source: "TensorRT, Working with Quantized Types",
        requirement: RuleData::NarrowWeights,
    },
    TargetRule {
        name: "activation-scale",
        text: "An activation has one scale.",
        source: EXPLICIT,
        requirement: RuleData::OneScale,
    },
    TargetRule {
        name: "channel-axis",
        text: "A weight has a scale for each output channel, or one.",
        source: EXPLICIT,
        requirement: RuleData::ChannelScales(&[
            ("Conv", 0),
            ("ConvTranspose", 1),
            ("Gemm", 0),
            ("Gemm", 1),
            ("MatMul", -1),
        ]),
    },
    TargetRule {
        name: "float-bias",
        text: "Biases are floats, because DequantizeLinear takes no int32.",
        source: OPERATORS,
        requirement: RuleData::FloatBiases,
    },
    TargetRule {
        name: "add-inputs",
        text: "Both computed inputs of an Add are quantized, or none.",
        source: "TensorFlow-Quantization toolkit for TensorRT, Add Custom QDQ Insertion Case",
        requirement: RuleData::AllInputs(&["Add"]),
    },
];
