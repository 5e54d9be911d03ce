//! transformers.js, beside the rules of ONNX Runtime in a browser.

use crate::rule::{RuleData, TargetRule};

pub(crate) const RULES: &[TargetRule] = &[TargetRule {
    name: "file-name",
    text: "The name of the file ends as a `dtype` wants: `_fp16`, `_quantized`, `_int8`, `_uint8`, `_q4`, \
           `_q4f16`, `_q2`, `_q2f16` or `_bnb4`.",
    source: "transformers.js, dtypes.js",
    requirement: RuleData::FileNames(&[
        "_fp16",
        "_quantized",
        "_int8",
        "_uint8",
        "_q4",
        "_q4f16",
        "_q2",
        "_q2f16",
        "_bnb4",
    ]),
}];
