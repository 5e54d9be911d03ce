//! ONNX Runtime in a browser, beside the rules of ONNX Runtime.

use crate::rule::{Requirement, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "bias-zero-point",
        text: "An int32 bias has no zero point: the older WebGPU backend refuses one.",
        source: "ONNX, DequantizeLinear; smart-turn, issue 33",
        requirement: Requirement::BiasesWithoutZeroPoint,
    },
    Rule {
        name: "block-axes",
        text: "Blocks with a scale each lie in tensors of two axes or more: WebGPU computes other values with one.",
        source: "ONNX Runtime, issue 32730",
        requirement: Requirement::BlocksOfMatrices,
    },
];
