//! Qualcomm's neural processors: the HTP backend of ONNX Runtime's QNN execution provider.

use octet_onnx::schema::DataType::{Int16, Uint8, Uint16};

use crate::integers::INTEGER_OPERATORS;
use crate::rule::{FixedScale, RuleData, TargetRule};

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

pub(crate) const RULES: &[TargetRule] = &[
    TargetRule {
        name: "pairs",
        text: "Integers are written as pairs of QuantizeLinear and DequantizeLinear.",
        source: PROVIDER,
        requirement: RuleData::WithoutOperators(INTEGER_OPERATORS),
    },
    TargetRule {
        name: "activation-type",
        text: "Activations are u8 or u16.",
        source: PROVIDER,
        requirement: RuleData::ActivationTypes(&[Uint8, Uint16]),
    },
    TargetRule {
        name: "weight-type",
        text: "Weights are u8 or i8.",
        source: PROVIDER,
        requirement: RuleData::WeightTypes(&[Uint8, octet_onnx::schema::DataType::Int8]),
    },
    TargetRule {
        name: "one-type",
        text: "Inputs and outputs of a node have one type.",
        source: "ONNX Runtime, mixed_precision_overrides_utils.py",
        requirement: RuleData::OneType,
    },
    TargetRule {
        name: "activation-scale",
        text: "An activation has one scale.",
        source: PROVIDER,
        requirement: RuleData::OneScale,
    },
    TargetRule {
        name: "channel-axis",
        text: "Weights of Conv (axis 0), ConvTranspose (axis 1) and Gemm may have a scale for each channel; those of MatMul have one.",
        source: CONFIG,
        requirement: RuleData::ChannelScales(&[
            ("Conv", 0),
            ("ConvTranspose", 1),
            ("Gemm", 0),
            ("Gemm", 1),
        ]),
    },
    TargetRule {
        name: "bias-scale",
        text: "The scale of a bias is that of its input times that of its weight.",
        source: PROVIDER,
        requirement: RuleData::BiasScales,
    },
    TargetRule {
        name: "least-range",
        text: "The range of an activation is at least 0.0001.",
        source: CONFIG,
        requirement: RuleData::LeastRange(0.0001),
    },
    TargetRule {
        name: "output-scale",
        text: "16-bit outputs of Sigmoid have the scale 1/65536 (u16) and those of Tanh 1/32768.",
        source: CONFIG,
        requirement: RuleData::OutputScale(SCALES),
    },
];
