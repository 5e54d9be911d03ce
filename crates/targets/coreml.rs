//! Apple's Core ML: ONNX Runtime's Core ML execution provider.

use crate::integers::{INTEGER_OPERATORS, PAIRS};
use crate::rule::{RuleData, TargetRule};

const OPERATORS: &str = "ONNX Runtime, coreml_supported_mlprogram_ops.md";

pub(crate) const RULES: &[TargetRule] = &[
    TargetRule {
        name: "no-pairs",
        text: "No QuantizeLinear or DequantizeLinear: the provider runs neither, so each splits the model.",
        source: OPERATORS,
        requirement: RuleData::WithoutOperators(PAIRS),
    },
    TargetRule {
        name: "no-integers",
        text: "No operator on integers in place of floats: the provider runs none.",
        source: OPERATORS,
        requirement: RuleData::WithoutOperators(INTEGER_OPERATORS),
    },
];
