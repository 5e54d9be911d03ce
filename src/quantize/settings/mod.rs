//! What a person can choose: one document, the same for page, command line and JavaScript.
//!
//! The global part says how everything is quantized. What is said of an operator type, of a scope of
//! names, of a node and of a tensor is laid over it, in this order, the narrower over the wider
//! ([`Layers`] does it). `docs/settings.md` has every key, `docs/settings.schema.json` is its schema.

mod document;
mod equalize;
mod guard;
mod meaning;
mod names;
mod naming;
mod operators;
mod read;
mod resolve;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use document::Document;
pub use guard::GuardSettings;
pub(super) use meaning::without_meaning;
pub(super) use operators::without_effect;
pub use read::SettingsError;
pub use resolve::target_of;
pub(super) use resolve::{Layer, Layers, Representation, unknown_node};

use crate::calibrate::{Method, PowerOfTwo, Range};
use crate::onnx::schema::DataType;
use crate::quantize::{BlockChoice, BlockMethod, BlockSettings};
use crate::samples::ImageChanges;

/// An integer type that tensors can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum ElementType {
    U8,
    I8,
    U16,
    I16,
    U4,
    I4,
}

impl ElementType {
    /// ONNX's name of it.
    pub fn data_type(self) -> DataType {
        match self {
            ElementType::U8 => DataType::Uint8,
            ElementType::I8 => DataType::Int8,
            ElementType::U16 => DataType::Uint16,
            ElementType::I16 => DataType::Int16,
            ElementType::U4 => DataType::Uint4,
            ElementType::I4 => DataType::Int4,
        }
    }

    /// How many bits an integer of it has.
    pub fn bits(self) -> usize {
        match self {
            ElementType::U4 | ElementType::I4 => 4,
            ElementType::U8 | ElementType::I8 => 8,
            ElementType::U16 | ElementType::I16 => 16,
        }
    }

    /// The type of 16 bits with the same sign.
    pub fn with_16_bits(self) -> ElementType {
        if self.is_signed() {
            ElementType::I16
        } else {
            ElementType::U16
        }
    }

    /// Whether it has negative integers.
    pub fn is_signed(self) -> bool {
        matches!(self, ElementType::I8 | ElementType::I16 | ElementType::I4)
    }
}

/// What becomes integers, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Weights and activations, with scales found from samples.
    #[default]
    Static,
    /// Weights in the file, activations as the model runs.
    Dynamic,
    /// Weights only, in 8 bits.
    Weights,
    /// Weights of products only, in blocks of 2, 4 or 8 bits.
    Blocks,
    /// No integers: half-precision floats.
    Float16,
}

impl Scheme {
    /// What the profile calls the step.
    pub fn step(self) -> &'static str {
        match self {
            Scheme::Static => "Quantization (Static)",
            Scheme::Dynamic => "Quantization (Dynamic)",
            Scheme::Weights | Scheme::Blocks => "Quantization (Weights)",
            Scheme::Float16 => "Conversion (Float16)",
        }
    }
}

/// How the quantized model is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// QuantizeLinear and DequantizeLinear around float operators.
    #[default]
    Qdq,
    /// Operators on integers: QLinearConv and its like.
    QOperator,
    /// The numbers of the quantized model, with all weights still readable as floats.
    Simulated,
}

/// How weights are rounded where the scheme is static.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rounding {
    /// Each to the nearest integer.
    #[default]
    Nearest,
    /// So that the errors of an output's weights make up for one another.
    Gptq,
}

/// Which operators are quantized.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operators {
    /// All that have an integer form here.
    #[default]
    All,
    /// Those that ONNX Runtime's `quantize_static` takes by default.
    OnnxRuntime,
    /// These.
    #[serde(untagged)]
    Only(Vec<String>),
}

/// How tensors are represented; what is not said is taken from what is said more widely.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TensorSettings {
    /// The integer type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub element: Option<ElementType>,
    /// Zero in the middle of the integers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symmetric: Option<bool>,
    /// One bit less, for processors whose 8-bit products overflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduce_range: Option<bool>,
    /// Only scales that are powers of two, for hardware that shifts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_of_two: Option<PowerOfTwo>,
    /// One scale for each output channel of a weight, instead of one for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_channel: Option<bool>,
    /// The reals that the integers reach over at least, for hardware that can't have less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_range: Option<f32>,
    /// Of unsigned integers: zero is the lowest, or in the middle where there are negative values, and nowhere else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snap_zero: Option<bool>,
    /// How the range of an activation is chosen; of a weight `mse` or all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// The range itself, in place of what a method would choose. Of a tensor only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
    /// The scale itself. Of a tensor only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f32>,
    /// The zero point that goes with the scale; 0 where it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zero_point: Option<i32>,
}

/// What is said of some nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LayerSettings {
    /// Whether they stay float.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub float: Option<bool>,
    /// Whether what they make stays float, though they read integers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub float_output: Option<bool>,
    /// Whether products of two values, of which neither is a constant, stay float.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constant_only: Option<bool>,
    /// Whether operators that only move values are quantized where what they read is float, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always: Option<bool>,
    /// How what they make is represented.
    pub activations: TensorSettings,
    /// How their weights are.
    pub weights: TensorSettings,
    /// How their weights are in blocks, where the scheme is `blocks`.
    pub blocks: BlockChoice,
}

/// How a model is quantized.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// What becomes integers, and when.
    pub scheme: Scheme,
    /// How the result is written.
    pub format: Format,
    /// How ranges of activations are chosen; as the calibration was ended where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// How activations are represented: u8, not symmetric, where nothing is said.
    pub activations: TensorSettings,
    /// How weights are represented: i8, symmetric, by channel, where nothing is said.
    pub weights: TensorSettings,
    /// Which operators are quantized.
    pub operators: Operators,
    /// Nodes that stay float: names, scopes, or patterns with `*`.
    pub float: Vec<String>,
    /// What of this may be made finer, so that nothing is ruined.
    pub guard: GuardSettings,
    /// Whether biases make up for what rounding the weights adds in the mean; where nothing is said, with the
    /// method `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bias_correction: Option<bool>,
    /// How weights are rounded.
    pub rounding: Rounding,
    /// By how much channels are made alike before anything is rounded: how much of it is left to the weights behind them. Not at
    /// all where nothing is said.
    #[serde(
        deserialize_with = "equalize::strength",
        skip_serializing_if = "Option::is_none"
    )]
    pub equalize: Option<f32>,
    /// Whether biases become integers of 32 bits.
    pub quantize_bias: bool,
    /// Whether the scale of a weight grows where its bias would not fit 32 bits.
    pub fit_bias: bool,
    /// How many of the first values behind the first Conv get 16 bits at most, where eight cost them much; where nothing is
    /// said, with the method `auto` a quarter of all tensors, and twelve at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fine_first: Option<usize>,
    /// Whether inputs and outputs stay float32 where the scheme is `float16`.
    pub keep_io: bool,
    /// How weights are quantized where the scheme is `blocks`.
    pub blocks: BlockSettings,
    /// How pictures among the samples are read, over what is proposed for the model. Whoever feeds the samples goes by it;
    /// here it has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<ImageChanges>,
    /// By operator type.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_operator: BTreeMap<String, LayerSettings>,
    /// By scope or pattern of node names; of two that fit, the longer wins.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_name: BTreeMap<String, LayerSettings>,
    /// By the whole name of a node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_node: BTreeMap<String, LayerSettings>,
    /// By the name of a tensor.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tensors: BTreeMap<String, TensorSettings>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            scheme: Scheme::default(),
            format: Format::default(),
            method: None,
            activations: TensorSettings::default(),
            weights: TensorSettings::default(),
            operators: Operators::default(),
            float: Vec::new(),
            guard: GuardSettings::ALL,
            bias_correction: None,
            rounding: Rounding::default(),
            equalize: None,
            quantize_bias: true,
            fit_bias: true,
            fine_first: None,
            keep_io: true,
            blocks: BlockSettings::default(),
            images: None,
            by_operator: BTreeMap::new(),
            by_name: BTreeMap::new(),
            by_node: BTreeMap::new(),
            tensors: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Whether they need samples.
    pub fn need_samples(&self) -> bool {
        self.scheme == Scheme::Static || self.need_moments()
    }

    /// By how much channels are to be made alike, where that means something.
    pub fn equalizes(&self) -> Option<f32> {
        self.equalize.filter(|_| self.scheme == Scheme::Static)
    }

    /// Whether they need a further pass over the samples, which looks at what weights are multiplied with.
    pub fn need_moments(&self) -> bool {
        match self.scheme {
            Scheme::Static => self.rounding == Rounding::Gptq,
            Scheme::Blocks => {
                let groups = [&self.by_operator, &self.by_name, &self.by_node];
                let layers = groups.into_iter().flat_map(BTreeMap::values);
                let mut methods = layers.filter_map(|layer| layer.blocks.method);
                self.blocks.method == BlockMethod::Gptq || methods.any(|m| m == BlockMethod::Gptq)
            }
            _ => false,
        }
    }
}
