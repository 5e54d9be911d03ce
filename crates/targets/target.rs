//! The names of the targets.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rule::TargetRule;
use crate::{
    arm_cmsis, coreml, onnxruntime, onnxruntime_web, openvino, qnn, tensorrt, transformers_js,
};

/// The place where the quantized model will run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RunTarget {
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

impl RunTarget {
    /// All targets, in the order of the documents.
    pub const ALL: [RunTarget; 9] = [
        RunTarget::Any,
        RunTarget::OnnxRuntime,
        RunTarget::OnnxRuntimeWeb,
        RunTarget::TransformersJs,
        RunTarget::Qnn,
        RunTarget::TensorRt,
        RunTarget::OpenVino,
        RunTarget::CoreMl,
        RunTarget::ArmCmsis,
    ];

    /// The name in settings and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            RunTarget::Any => "any",
            RunTarget::OnnxRuntime => "onnxruntime",
            RunTarget::OnnxRuntimeWeb => "onnxruntime-web",
            RunTarget::TransformersJs => "transformers.js",
            RunTarget::Qnn => "qnn",
            RunTarget::TensorRt => "tensorrt",
            RunTarget::OpenVino => "openvino",
            RunTarget::CoreMl => "coreml",
            RunTarget::ArmCmsis => "arm-cmsis",
        }
    }

    /// The rules of a file for this target.
    pub fn rules(self) -> Vec<&'static TargetRule> {
        let tables: &[&'static [TargetRule]] = match self {
            RunTarget::Any => &[],
            RunTarget::OnnxRuntime => &[onnxruntime::RULES],
            RunTarget::OnnxRuntimeWeb => &[onnxruntime::RULES, onnxruntime_web::RULES],
            RunTarget::TransformersJs => &[
                onnxruntime::RULES,
                onnxruntime_web::RULES,
                transformers_js::RULES,
            ],
            RunTarget::Qnn => &[onnxruntime::FILE_RULES, qnn::RULES],
            RunTarget::TensorRt => &[tensorrt::RULES],
            RunTarget::OpenVino => &[openvino::RULES],
            RunTarget::CoreMl => &[onnxruntime::FILE_RULES, coreml::RULES],
            RunTarget::ArmCmsis => &[arm_cmsis::RULES],
        };
        tables.iter().flat_map(|table| table.iter()).collect()
    }
}

impl fmt::Display for RunTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
