//! Turns calibrated ranges into a quantized model.
//!
//! A [`Plan`] lists, for a prepared and typed model, the tensors that become integers, the nodes
//! that stay float with their reasons, and the ranges to calibrate. [`quantize`] combines a plan
//! and ranges into a model with QuantizeLinear/DequantizeLinear pairs. Operator treatment,
//! arithmetic and names follow ONNX Runtime's `quantize_static`, so equal ranges give equal
//! integers.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]
#![allow(
    clippy::result_large_err,
    clippy::large_enum_variant,
    clippy::type_complexity
)]

mod awq;
mod bias;
mod bias_correction;
mod block_scheme;
mod blocks;
mod bodies;
mod channel_layout;
mod conform;
mod dynamic;
mod embedding;
mod float16;
mod float16_numbers;
mod gather;
mod gptq;
mod input_noise;
mod integer_format;
mod integers;
mod invariant;
mod mixed_precision;
mod operator_patterns;
mod operators;
mod plan;
mod planned_model;
mod qdq;
mod qoperator;
mod quantized_names;
mod ranges;
pub mod recipe;
mod rewrite;
mod scale;
mod scale_groups;
mod scheme;
mod settings;
mod simulated;
mod stays_float;
mod streamed_scheme;
mod vnni_saturation;
mod weight_clip_search;
mod weight_only;
mod weights;
mod without_samples;

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

pub use bias_correction::channel_axes;
pub use blocks::{
    BlockChoice, BlockForm, BlockMethod, BlockSettings, FloatActivations, FloatType, MixedBits,
};
pub use dynamic::DynamicSettings;
pub use float16::{DIVIDED, Float16Settings};
pub use gptq::{GramFactor, WeightRows, gram_bytes, gram_views};
pub use input_noise::input_path_axes;
pub use invariant::PlanInvariant;
pub use operators::{float_reason, is_quantized};
pub use plan::clamp_bounds;
pub use plan::{FusedNodes, Plan, refuse_quantized};
pub use planned_model::RefusedConstants;
pub use qdq::quantize;
pub use qoperator::to_integer_operators;
pub use ranges::ActivationRanges;
pub use scale::{QuantizationParameters, encoded};
pub use scale_groups::{ScaleGroup, ScaleGroups, scale_groups};
pub use scheme::{apply, apply_learned, before_learning};
pub use settings::{
    AliasError, Document, ElementType, Finetune, FinetuneAlgorithm, Format, GuardSettings,
    InvalidValue, KeptPorts, LEARNED_OPERATORS, LayerSettings, Operators, Overflow, Rounding,
    Scheme, Settings, SettingsError, TargetConflict, TensorSettings, UnsupportedSetting, target_of,
};
pub use simulated::{dequantized, tensor_title, with_float_weights};
pub use stays_float::StaysFloat;
pub use streamed_scheme::{plan_streamed, remaining_declarations};
pub use weight_only::WeightSettings;
pub use without_samples::{
    quantize_blocks, quantize_dynamic, quantize_float16, quantize_weights, recipe_entry,
    recipe_notes,
};

use octet_graph::prepare::PrepareError;
use octet_graph::{MICROSOFT, Model};
use octet_onnx::schema::DataType;
use octet_onnx::tensor::TensorError;
use octet_stats::{Range, SecondPassMissing};
use scale::{IntegerBounds, integer_bounds};

/// The first opset in which DequantizeLinear has an axis.
const FIRST_OPSET_WITH_AXIS: i64 = 13;

/// The reasons why a model can't be quantized.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum QuantizeError {
    #[error(
        "the model is quantized already (node `{node}` is a {operator}); quantize the float model it was made from"
    )]
    AlreadyQuantized { node: String, operator: String },
    #[error(
        "nothing in the model can be quantized: {}; see `octet inspect` for the reason of each operator",
        .reason.map_or("it has no nodes", StaysFloat::words)
    )]
    Nothing {
        /// The reason of the node that counts most; `None` for a model without nodes.
        reason: Option<StaysFloat>,
    },
    #[error(
        "nothing outside the graphs of `{node}` ({operator}) can be quantized, and the scheme static leaves those as \
         they are: choose the scheme dynamic or weights, which quantize them, too"
    )]
    OnlyGraphs {
        /// The node that runs the graphs.
        node: String,
        operator: String,
    },
    #[error(
        "the settings name the layer `{name}`, but the model has no node of that name or scope{hint}"
    )]
    UnknownNode { name: String, hint: String },
    #[error("the settings name the tensor `{name}`, but the model has none of that name{hint}")]
    UnknownTensor { name: String, hint: String },
    #[error("the settings name the operator `{name}`, which neither ONNX nor the model has{hint}")]
    UnknownOperator { name: String, hint: String },
    #[error(
        "the settings give the tensor `{tensor}` the zero point {zero_point}, but {element} holds {low} to {high} only; \
         choose a zero point in that range, or another type"
    )]
    ZeroPoint {
        tensor: String,
        zero_point: i32,
        element: DataType,
        low: i32,
        high: i32,
    },
    #[error(
        "there is no range for the value `{value}`; calibrate again with these settings, or set its range"
    )]
    RangeMissing { value: String },
    #[error(
        "calibration observed the value `{value}` between {min} and {max}, which is no finite range; keep the layer \
         that computes it float, or check the samples for extreme values"
    )]
    RangeNotFinite { value: String, min: f32, max: f32 },
    #[error(
        "the model imports opset {opset}, in which weights can't have a scale for each channel; convert it to opset 13 \
         or later, or set `per_channel` of the weights to false"
    )]
    Opset { opset: i64 },
    #[error(
        "block-wise weights in the form dequantize need opset 21, but {reason}; or choose the form matmul_nbits"
    )]
    Blocks { reason: String },
    #[error(
        "the quantizer failed at this model: {0}; report it with the model's graph and the settings"
    )]
    Broken(#[from] PlanInvariant),
    #[error(transparent)]
    Setting(#[from] UnsupportedSetting),
    #[error(
        "the setting weights is i8, but the target {target} takes unsigned weights in dynamic products beside a \
         convolution (ONNX Runtime, pull request 26585): choose u8, or leave it out"
    )]
    SignedProducts { target: octet_targets::RunTarget },
    #[error("node `{node}`: {error}")]
    OfNode {
        node: String,
        error: Box<QuantizeError>,
    },
    #[error(
        "the scheme static runs the model on samples, so it can't convert a model piece by piece: choose another \
         scheme, or leave out --stream"
    )]
    NotStreamed,
    #[error(
        "static quantization needs ranges; calibrate with some samples first, or choose another scheme"
    )]
    NoRanges,
    #[error(
        "the methods gptq and awq need statistics of each layer's input, from an extra pass over the samples; calibrate \
         again with these settings, or choose another rounding or method (imported ranges lack these statistics)"
    )]
    GramMatricesMissing,
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error(transparent)]
    SecondPass(#[from] SecondPassMissing),
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// The role of a quantized tensor in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TensorKind {
    /// A value computed at inference.
    Activation,
    /// A constant with one scale, or one for each channel.
    Weight,
    /// An int32 constant that is added to the accumulators.
    Bias,
}

/// A quantized tensor and its parameters, as the report lists it.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuantizedTensor {
    /// The name in the float model.
    pub name: String,
    /// The role of the tensor.
    pub kind: TensorKind,
    /// The integer type.
    #[serde(serialize_with = "element_name")]
    #[schemars(with = "String")]
    pub element: DataType,
    /// The number of scales: 1, or one for each channel.
    pub scales: usize,
    /// The scale; the largest where there are several.
    pub scale: f32,
    /// The zero point; the first where there are several.
    pub zero_point: i32,
    /// The smallest real that the integers represent.
    pub min: f32,
    /// The largest real that the integers represent.
    pub max: f32,
    /// The number of consecutive weights that share a scale, for block-wise quantization.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<usize>,
    /// The largest change of a channel by bias correction; `None` for a bias that was not
    /// corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrected: Option<f32>,
    /// The expected gain in dB of the layer's output error by GPTQ; `None` for other tensors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compensated: Option<f32>,
}

/// A report shows the name of an element type.
fn element_name<S: Serializer>(element: &DataType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(element.name())
}

impl QuantizedTensor {
    fn new(name: &str, kind: TensorKind, params: &QuantizationParameters) -> QuantizedTensor {
        let scale = params.scales.iter().copied().fold(0.0, f32::max);
        let zero_point = params.zero_points.first().copied().unwrap_or(0);
        let whole = match params.element {
            DataType::Int32 => IntegerBounds {
                low: i32::MIN,
                high: i32::MAX,
            },
            element => integer_bounds(element, false, false),
        };
        let real =
            |integer: i32| ((f64::from(integer) - f64::from(zero_point)) * f64::from(scale)) as f32;
        QuantizedTensor {
            name: name.to_string(),
            kind,
            element: params.element,
            scales: params.scales.len(),
            block: None,
            corrected: None,
            compensated: None,
            scale,
            zero_point,
            min: real(whole.low),
            max: real(whole.high),
        }
    }
}

/// The decision about a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeChoice {
    /// The name of the node.
    pub node: String,
    /// The operator of the node.
    pub operator: String,
    /// True if the node is quantized.
    pub quantized: bool,
    /// The reason why the node stays float.
    #[schemars(with = "Option<String>")]
    pub reason: Option<StaysFloat>,
    /// The role for which its weight has more bits than others, in the scheme `blocks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixed: Option<String>,
}

/// A quantized model and the report about it.
#[derive(Clone, Debug)]
pub struct Quantized {
    /// The quantized model.
    pub model: Model,
    /// All quantized tensors, activations before constants.
    pub tensors: Vec<QuantizedTensor>,
    /// All nodes of the float model, in their order.
    pub nodes: Vec<NodeChoice>,
    /// The ranges by the name of the calibrated value: those used, and those of values that took the
    /// scale of another value or stayed float. The same settings with these ranges lack none.
    pub ranges: BTreeMap<String, Range>,
    /// Notes for the user, a sentence each.
    pub notes: Vec<String>,
    /// The number of leading notes that report a tensor kept float by the setting `guard`.
    pub guarded: usize,
}
