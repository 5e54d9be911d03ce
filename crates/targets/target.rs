//! The names of the targets.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rule::Rule;
use crate::{
    arm_cmsis, coreml, onnxruntime, onnxruntime_web, openvino, qnn, tensorrt, transformers_js,
};

/// The place where the quantized model will run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Target {
    /// Any runtime of ONNX; no rule.
    #[default]
    #[serde(rename = "any")]
    Any,
    /// ONNX Runtime on the processor.
    #[serde(rename = "onnxruntime")]
    OnnxRuntime,
    /// ONNX Runtime in a browser, with WebAssembly or WebGPU.
    #[serde(rename = "onnxruntime-web")]
    OnnxRuntimeWeb,
    /// transformers.js, which also wants certain file names.
    #[serde(rename = "transformers.js")]
    TransformersJs,
    /// Qualcomm's neural processors, through ONNX Runtime.
    #[serde(rename = "qnn")]
    Qnn,
    /// NVIDIA's TensorRT.
    #[serde(rename = "tensorrt")]
    TensorRt,
    /// Intel's OpenVINO.
    #[serde(rename = "openvino")]
    OpenVino,
    /// Apple's Core ML, through ONNX Runtime.
    #[serde(rename = "coreml")]
    CoreMl,
    /// Arm's CMSIS-NN and Ethos-U, by the 8-bit specification of LiteRT.
    #[serde(rename = "arm-cmsis")]
    ArmCmsis,
}

impl Target {
    /// All targets, in the order of the documents.
    pub const ALL: [Target; 9] = [
        Target::Any,
        Target::OnnxRuntime,
        Target::OnnxRuntimeWeb,
        Target::TransformersJs,
        Target::Qnn,
        Target::TensorRt,
        Target::OpenVino,
        Target::CoreMl,
        Target::ArmCmsis,
    ];

    /// The name in settings and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Target::Any => "any",
            Target::OnnxRuntime => "onnxruntime",
            Target::OnnxRuntimeWeb => "onnxruntime-web",
            Target::TransformersJs => "transformers.js",
            Target::Qnn => "qnn",
            Target::TensorRt => "tensorrt",
            Target::OpenVino => "openvino",
            Target::CoreMl => "coreml",
            Target::ArmCmsis => "arm-cmsis",
        }
    }

    /// The rules of a file for this target.
    pub fn rules(self) -> Vec<&'static Rule> {
        let tables: &[&'static [Rule]] = match self {
            Target::Any => &[],
            Target::OnnxRuntime => &[onnxruntime::RULES],
            Target::OnnxRuntimeWeb => &[onnxruntime::RULES, onnxruntime_web::RULES],
            Target::TransformersJs => &[
                onnxruntime::RULES,
                onnxruntime_web::RULES,
                transformers_js::RULES,
            ],
            Target::Qnn => &[onnxruntime::FILE_RULES, qnn::RULES],
            Target::TensorRt => &[tensorrt::RULES],
            Target::OpenVino => &[openvino::RULES],
            Target::CoreMl => &[onnxruntime::FILE_RULES, coreml::RULES],
            Target::ArmCmsis => &[arm_cmsis::RULES],
        };
        tables.iter().flat_map(|table| table.iter()).collect()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
