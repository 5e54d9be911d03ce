//! Settings that satisfy a target, and what the quantizer does beside them.
//!
//! The table has a row for each target. `fit_target` gives settings at their defaults the values of
//! the row and refuses others. The rules of the files and their sources are in the crate
//! `octet-targets`, which checks results independently.

use octet_targets::RunTarget;

use super::{ElementType, Format, Scheme, Settings};

/// Settings that a target takes. The first of a list is its default.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetSettings {
    pub(crate) schemes: &'static [Scheme],
    pub(crate) formats: &'static [Format],
    pub(crate) activations: &'static [ElementType],
    pub(crate) weights: &'static [ElementType],
    /// True if all zero points of activations are 0.
    pub(crate) symmetric_activations: bool,
    /// True if all zero points of weights are 0.
    pub(crate) symmetric_weights: bool,
    /// Operators whose weights may have a scale for each channel.
    pub(crate) channels: Channels,
    pub(crate) biases: Biases,
    /// True if single tensors may have more bits than others.
    pub(crate) mixes_bits: bool,
    /// The least range of an activation.
    pub(crate) least_range: f32,
    /// True if operators that move, pool or join values have one scale.
    pub(crate) one_scale: bool,
    /// True if an Add reads integers in all computed inputs or in none.
    pub(crate) adds_alike: bool,
    /// Scales of outputs that the target prescribes.
    pub(crate) outputs: &'static [FixedOutput],
    /// True if dynamic products beside a convolution have unsigned weights.
    pub(crate) unsigned_products: bool,
    /// True if ONNX Runtime may compute the result on a processor.
    pub(crate) runs_in_onnx_runtime: bool,
    /// The documents.
    pub(crate) source: &'static str,
}

/// Operators whose weights may have a scale for each channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channels {
    All,
    Only(&'static [&'static str]),
}

/// The form of biases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Biases {
    Integers,
    IntegersWithoutZeroPoint,
    Float,
}

/// A scale that a target prescribes for the output of an operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedOutput {
    pub(crate) operator: &'static str,
    pub(crate) element: ElementType,
    pub(crate) scale: f32,
    pub(crate) zero_point: i32,
}

const fn output(
    operator: &'static str,
    element: ElementType,
    scale: f32,
    zero_point: i32,
) -> FixedOutput {
    FixedOutput {
        operator,
        element,
        scale,
        zero_point,
    }
}

use ElementType::{I4, I8, I16, U4, U8, U16};

/// No rule: what Octet does by itself.
const ANY: TargetSettings = TargetSettings {
    schemes: &[
        Scheme::Static,
        Scheme::Dynamic,
        Scheme::Weights,
        Scheme::Blocks,
        Scheme::Float16,
    ],
    formats: &[Format::Qdq, Format::QOperator, Format::Simulated],
    activations: &[U8, I8, U16, I16, U4, I4],
    weights: &[I8, U8, I16, U16, I4, U4],
    symmetric_activations: false,
    symmetric_weights: false,
    channels: Channels::All,
    biases: Biases::Integers,
    mixes_bits: true,
    least_range: 0.0,
    one_scale: false,
    adds_alike: false,
    outputs: &[],
    unsigned_products: false,
    runs_in_onnx_runtime: true,
    source: "",
};

const ONNX_RUNTIME: TargetSettings = TargetSettings {
    formats: &[Format::Qdq, Format::QOperator],
    unsigned_products: true,
    source: "ONNX Runtime, OperatorKernels.md",
    ..ANY
};

const ONNX_RUNTIME_WEB: TargetSettings = TargetSettings {
    biases: Biases::IntegersWithoutZeroPoint,
    ..ONNX_RUNTIME
};

const QNN: TargetSettings = TargetSettings {
    schemes: &[Scheme::Static, Scheme::Float16],
    formats: &[Format::Qdq],
    activations: &[U8, U16],
    weights: &[I8, U8],
    channels: Channels::Only(&["Conv", "ConvTranspose", "Gemm"]),
    mixes_bits: false,
    least_range: 0.0001,
    outputs: &[
        output("Sigmoid", U16, 1.0 / 65536.0, 0),
        output("Tanh", U16, 1.0 / 32768.0, 32768),
    ],
    runs_in_onnx_runtime: false,
    source: "ONNX Runtime, QNN Execution Provider and get_qnn_qdq_config",
    ..ANY
};

const TENSOR_RT: TargetSettings = TargetSettings {
    schemes: &[Scheme::Static, Scheme::Float16],
    formats: &[Format::Qdq],
    activations: &[I8],
    weights: &[I8],
    symmetric_activations: true,
    symmetric_weights: true,
    biases: Biases::Float,
    mixes_bits: false,
    adds_alike: true,
    runs_in_onnx_runtime: false,
    source: "TensorRT, Explicit Quantization; ONNX-TensorRT, operators.md",
    ..ANY
};

const OPENVINO: TargetSettings = TargetSettings {
    schemes: &[Scheme::Static, Scheme::Weights, Scheme::Float16],
    formats: &[Format::Qdq],
    activations: &[U8, I8],
    weights: &[I8, U8],
    mixes_bits: false,
    runs_in_onnx_runtime: false,
    source: "OpenVINO, Low Precision Transformations",
    ..ANY
};

const CORE_ML: TargetSettings = TargetSettings {
    schemes: &[Scheme::Float16],
    runs_in_onnx_runtime: false,
    source: "ONNX Runtime, coreml_supported_mlprogram_ops.md",
    ..ANY
};

const ARM_CMSIS: TargetSettings = TargetSettings {
    schemes: &[Scheme::Static],
    formats: &[Format::Qdq],
    activations: &[I8],
    weights: &[I8],
    symmetric_weights: true,
    channels: Channels::Only(&["Conv"]),
    mixes_bits: false,
    one_scale: true,
    outputs: &[
        output("Sigmoid", I8, 1.0 / 256.0, -128),
        output("Softmax", I8, 1.0 / 256.0, -128),
        output("Tanh", I8, 1.0 / 128.0, 0),
    ],
    runs_in_onnx_runtime: false,
    source: "LiteRT, 8-bit quantization specification",
    ..ANY
};

/// The settings that a target takes.
pub(crate) fn of(target: RunTarget) -> &'static TargetSettings {
    match target {
        RunTarget::Any => &ANY,
        RunTarget::OnnxRuntime => &ONNX_RUNTIME,
        RunTarget::OnnxRuntimeWeb | RunTarget::TransformersJs => &ONNX_RUNTIME_WEB,
        RunTarget::Qnn => &QNN,
        RunTarget::TensorRt => &TENSOR_RT,
        RunTarget::OpenVino => &OPENVINO,
        RunTarget::CoreMl => &CORE_ML,
        RunTarget::ArmCmsis => &ARM_CMSIS,
    }
}

/// A note about what the target decided; `None` for any target.
pub(crate) fn note(settings: &Settings) -> Option<String> {
    let (target, rules) = (settings.target, of(settings.target));
    if target == RunTarget::Any {
        return None;
    }
    let mut decided = Vec::new();
    if !rules.schemes.contains(&Scheme::Static) {
        decided.push("no integers".to_owned());
    } else if settings.scheme == Scheme::Static {
        let element = |settings: Option<ElementType>, default: ElementType| {
            settings.unwrap_or(default).data_type().name()
        };
        let activations = element(settings.activations.element, U8);
        let weights = element(settings.weights.element, I8);
        decided.push(format!("activations {activations} and weights {weights}"));
        let list = [
            (rules.symmetric_activations, "symmetric activations"),
            (!rules.mixes_bits, "no 16 bits for single tensors"),
            (rules.biases == Biases::Float, "float biases"),
            (
                rules.biases == Biases::IntegersWithoutZeroPoint,
                "biases without zero points",
            ),
            (
                rules.one_scale,
                "one scale for operators that move or join values",
            ),
            (
                !rules.outputs.is_empty(),
                "prescribed scales of Sigmoid and Tanh",
            ),
        ];
        let chosen = list.into_iter().filter(|(decides, _)| *decides);
        decided.extend(chosen.map(|(_, words)| words.to_owned()));
        if let Channels::Only(operators) = rules.channels {
            decided.push(format!(
                "a scale for each channel only in {}",
                operators.join(" and ")
            ));
        }
    }
    Some(match decided.is_empty() {
        true => format!("the settings follow the rules of the target {target} (docs/targets.md)"),
        false => format!(
            "the target {target} decided: {} (docs/targets.md)",
            decided.join(", ")
        ),
    })
}
