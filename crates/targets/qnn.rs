//! Qualcomm's neural processors: the HTP backend of ONNX Runtime's QNN execution provider.

use octet_onnx::schema::DataType::{Int16, Uint8, Uint16};

use crate::integers::INTEGER_OPERATORS;
use crate::rule::{FixedScale, Requirement, Rule};

const PROVIDER: &str = "ONNX Runtime, QNN Execution Provider";
const CONFIG: &str = "ONNX Runtime, get_qnn_qdq_config (quant_config.py)";

/// Scale and zero point that 16-bit outputs of Sigmoid and Tanh have.
const SCALES: &[FixedScale] = &[
    FixedScale {
        operator: "Sigmoid",
        element: Uint16,
        scale: 1.0 / 65536.0,
        zero_point: 0,
    },
    FixedScale {
        operator: "Sigmoid",
        element: Int16,
        scale: 1.0 / 32768.0,
        zero_point: 0,
    },
    FixedScale {
        operator: "Tanh",
        element: Uint16,
        scale: 1.0 / 32768.0,
        zero_point: 32768,
    },
    FixedScale {
        operator: "Tanh",
        element: Int16,
        scale: 1.0 / 32768.0,
        zero_point: 0,
    },
];

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "pairs",
        text: "Integers are written as pairs of QuantizeLinear and DequantizeLinear.",
        source: PROVIDER,
        requirement: Requirement::WithoutOperators(INTEGER_OPERATORS),
    },
    Rule {
        name: "activation-type",
        text: "Activations are u8 or u16.",
        source: PROVIDER,
        requirement: Requirement::ActivationTypes(&[Uint8, Uint16]),
    },
    Rule {
        name: "weight-type",
        text: "Weights are u8 or i8.",
        source: PROVIDER,
        requirement: Requirement::WeightTypes(&[Uint8, octet_onnx::schema::DataType::Int8]),
    },
    Rule {
        name: "one-type",
        text: "Inputs and outputs of a node have one type.",
        source: "ONNX Runtime, mixed_precision_overrides_utils.py",
        requirement: Requirement::OneType,
    },
    Rule {
        name: "activation-scale",
        text: "An activation has one scale.",
        source: PROVIDER,
        requirement: Requirement::OneScale,
    },
    Rule {
        name: "channel-axis",
        text: "Weights of Conv (axis 0), ConvTranspose (axis 1) and Gemm may have a scale for each channel; those of MatMul have one.",
        source: CONFIG,
        requirement: Requirement::ChannelScales(&[
            ("Conv", 0),
            ("ConvTranspose", 1),
            ("Gemm", 0),
            ("Gemm", 1),
        ]),
    },
    Rule {
        name: "bias-scale",
        text: "The scale of a bias is that of its input times that of its weight.",
        source: PROVIDER,
        requirement: Requirement::BiasScales,
    },
    Rule {
        name: "least-range",
        text: "The range of an activation is at least 0.0001.",
        source: CONFIG,
        requirement: Requirement::LeastRange(0.0001),
    },
    Rule {
        name: "output-scale",
        text: "16-bit outputs of Sigmoid have the scale 1/65536 (u16) and those of Tanh 1/32768.",
        source: CONFIG,
        requirement: Requirement::OutputScale(SCALES),
    },
];
