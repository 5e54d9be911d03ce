//! ONNX Runtime in a browser, beside the rules of ONNX Runtime.

use crate::rule::{RuleData, TargetRule};

pub(crate) const RULES: &[TargetRule] = &[
    TargetRule {
        name: "bias-zero-point",
        text: "An int32 bias has no zero point: the older WebGPU backend refuses one.",
        source: "ONNX, DequantizeLinear; smart-turn, issue 33",
        requirement: RuleData::BiasesWithoutZeroPoint,
    },
    TargetRule {
        name: "block-axes",
        text: "Blocks with a scale each lie in tensors of two axes or more: WebGPU computes other values with one.",
        source: "ONNX Runtime, issue 32730",
        requirement: RuleData::BlocksOfMatrices,
    },
];
