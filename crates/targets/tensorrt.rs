//! NVIDIA's TensorRT, explicit quantization.

use octet_onnx::schema::DataType::Int8;

use crate::integers::INTEGER_OPERATORS;
use crate::rule::{Requirement, Rule};

const EXPLICIT: &str = "TensorRT, Explicit Quantization";
const OPERATORS: &str = "ONNX-TensorRT, operators.md";

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "opset",
        text: "The opset is between 9 and 25.",
        source: "TensorRT 11, ONNX Opset Guide",
        requirement: Requirement::Opset { least: 9, most: 25 },
    },
    Rule {
        name: "domains",
        text: "All operators are ONNX's own.",
        source: OPERATORS,
        requirement: Requirement::Domains(&[""]),
    },
    Rule {
        name: "pairs",
        text: "Integers are written as pairs of QuantizeLinear and DequantizeLinear.",
        source: OPERATORS,
        requirement: Requirement::WithoutOperators(INTEGER_OPERATORS),
    },
    Rule {
        name: "activation-type",
        text: "Activations are i8.",
        source: OPERATORS,
        requirement: Requirement::ActivationTypes(&[Int8]),
    },
    Rule {
        name: "weight-type",
        text: "Weights are i8.",
        source: OPERATORS,
        requirement: Requirement::WeightTypes(&[Int8]),
    },
    Rule {
        name: "activation-zero-point",
        text: "Zero points of activations are 0.",
        source: OPERATORS,
        requirement: Requirement::SymmetricActivations,
    },
    Rule {
        name: "weight-zero-point",
        text: "Zero points of weights are 0.",
        source: OPERATORS,
        requirement: Requirement::SymmetricWeights,
    },
    Rule {
        name: "weight-range",
        text: "Weights are between -127 and 127.",
        source: "TensorRT, Working with Quantized Types",
        requirement: Requirement::NarrowWeights,
    },
    Rule {
        name: "activation-scale",
        text: "An activation has one scale.",
        source: EXPLICIT,
        requirement: Requirement::OneScale,
    },
    Rule {
        name: "channel-axis",
        text: "A weight has a scale for each output channel, or one.",
        source: EXPLICIT,
        requirement: Requirement::ChannelScales(&[
            ("Conv", 0),
            ("ConvTranspose", 1),
            ("Gemm", 0),
            ("Gemm", 1),
            ("MatMul", -1),
        ]),
    },
    Rule {
        name: "float-bias",
        text: "Biases are floats, because DequantizeLinear takes no int32.",
        source: OPERATORS,
        requirement: Requirement::FloatBiases,
    },
    Rule {
        name: "add-inputs",
        text: "Both computed inputs of an Add are quantized, or none.",
        source: "TensorFlow-Quantization toolkit for TensorRT, Add Custom QDQ Insertion Case",
        requirement: Requirement::AllInputs(&["Add"]),
    },
];
