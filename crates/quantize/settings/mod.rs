//! The settings document: one form for the page, the command line and JavaScript.
//!
//! The top level applies to the whole model. Settings by operator, by name scope, by node and by
//! tensor override it, in this order ([`LayerResolver`] merges them). The JSON schema, the tables of
//! `docs/settings.md`, the command line's help and `www/types.d.ts` are generated from these types
//! (`make contracts`), so the doc comments here are what users read.

mod aliases;
mod choices;
mod document;
mod equalize;
mod finetune;
mod fit_target;
mod guard;
mod kept_ports;
mod meaning;
mod names;
mod naming;
mod operators;
mod read;
mod resolve;
pub(super) mod target_rules;
mod unsupported;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use aliases::AliasError;
pub use choices::{ElementType, Format, Operators, Overflow, Rounding, Scheme};
pub use document::Document;
pub use finetune::{Finetune, FinetuneAlgorithm, LEARNED_OPERATORS};
pub use fit_target::TargetConflict;
pub use guard::GuardSettings;
pub use kept_ports::KeptPorts;
pub(super) use meaning::without_meaning;
pub(super) use operators::without_effect;
pub use read::{InvalidValue, SettingsError};
pub use resolve::target_of;
pub(super) use resolve::{LayerResolver, Representation, ResolvedLayer, unknown_node};

pub use unsupported::UnsupportedSetting;

use crate::{BlockChoice, BlockMethod, BlockSettings, FloatActivations};
use octet_samples::ImageChanges;
use octet_stats::{Method, PowerOfTwo, Range};
use octet_targets::RunTarget;

/// The integer representation of tensors. A key that is absent keeps the value of the wider scope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TensorSettings {
    /// The integer type. Default: `u8` for activations, `i8` for weights.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub element: Option<ElementType>,
    /// Zero maps to the middle of the integer range. Default: true for weights of a signed type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symmetric: Option<bool>,
    /// One bit less, for processors whose 8-bit products saturate. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduce_range: Option<bool>,
    /// Only powers of two as scales, for hardware that shifts. `true`: the smallest that clips
    /// nothing. `nearest`: the nearest, which can clip 30 % of the range (AMD Quark). Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_of_two: Option<PowerOfTwo>,
    /// One scale for each output channel of a weight. Default: true. Weights only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_channel: Option<bool>,
    /// The least width of the range, for hardware with a smallest scale. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub minimum_range: Option<f32>,
    /// The zero point of an unsigned type is 0, or the middle where the range has negative values.
    /// Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snap_zero: Option<bool>,
    /// The calibration method of an activation. A weight takes `mse` only. Default: the method of the
    /// document for activations, the full range for weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// The range `[min, max]`, in place of a calibrated one. Under `tensors` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
    /// The scale. Under `tensors` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub scale: Option<f32>,
    /// The zero point of `scale`. Default: 0. Under `tensors` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zero_point: Option<i32>,
    /// The tensor stays float, with all that share its scale. Default: false. Under `tensors` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub float: Option<bool>,
}

/// Settings of some nodes. A key that is absent keeps the value of the wider scope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LayerSettings {
    /// The nodes stay float. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub float: Option<bool>,
    /// The outputs stay float, though the inputs are quantized. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub float_output: Option<bool>,
    /// Products of two activations stay float; products with a constant are quantized.
    /// Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constant_only: Option<bool>,
    /// Operators that only move data, such as MaxPool, are quantized after a float input too.
    /// Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always: Option<bool>,
    /// The representation of the outputs.
    pub activations: TensorSettings,
    /// The representation of the weights.
    pub weights: TensorSettings,
    /// The blocks of the weights, in the scheme `blocks`.
    pub blocks: BlockChoice,
}

/// Settings that quantize a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The quantization scheme.
    pub scheme: Scheme,
    /// The place where the quantized model will run. Its rules choose the defaults; other settings that
    /// contradict them are refused.
    pub target: RunTarget,
    /// The form of the quantized file.
    pub format: Format,
    /// The calibration method of activations. Default: `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// The representation of activations.
    pub activations: TensorSettings,
    /// The representation of weights.
    pub weights: TensorSettings,
    /// The operators that are quantized: `all`, `onnxruntime` (its default list) or a list of types.
    pub operators: Operators,
    /// Nodes that stay float: names, scopes, or patterns with `*`.
    pub float: Vec<String>,
    /// Mixed precision: tensors that 8 bits would damage get a wider range, 16 bits, or stay float.
    /// `true`, `false`, or one switch for each rule.
    #[schemars(with = "guard::SwitchOrRules")]
    pub guard: GuardSettings,
    /// Biases absorb the mean error that weight rounding causes. Default: true with the method
    /// `auto`, else false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bias_correction: Option<bool>,
    /// The rounding of weights.
    pub rounding: Rounding,
    /// Fine-tuning of the weights after their rounding: `adaround`, `adaquant`, or a mapping of options.
    /// It takes the samples again and some minutes. Default: false.
    #[serde(
        deserialize_with = "finetune::choice",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<finetune::FinetuneChoice>")]
    pub finetune: Option<Finetune>,
    /// Equalization of channel ranges before quantization, with an extra pass over the samples.
    /// `true` is the strength 0.5. At 0 only the weights count; at 1 all channels of an activation
    /// get one range. Default: false.
    #[serde(
        deserialize_with = "equalize::strength",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<equalize::Equalize>")]
    pub equalize: Option<f32>,
    /// Biases become int32.
    pub quantize_bias: bool,
    /// The scale of a weight grows where its bias would overflow int32.
    pub fit_bias: bool,
    /// The largest number of early activations that get 16 bits where 8 bits cost much. Default: with
    /// the method `auto` a quarter of all tensors and at most 12, else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fine_first: Option<usize>,
    /// Inputs and outputs stay float32 in half precision: `true`, `false`, or a list of names or patterns
    /// of those that do.
    pub keep_io: KeptPorts,
    /// Treatment of activations that were beyond ±65504 on the samples, in half precision.
    pub overflow: Overflow,
    /// The blocks of weights in the scheme `blocks`.
    pub blocks: BlockSettings,
    /// Preprocessing of images. A key overrides the value that is proposed for the model. It affects
    /// the samples only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<ImageChanges>,
    /// Settings by operator type.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_operator: BTreeMap<String, LayerSettings>,
    /// Settings by scope or pattern of node names. Of two that match, the longer wins.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_name: BTreeMap<String, LayerSettings>,
    /// Settings by node name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_node: BTreeMap<String, LayerSettings>,
    /// Settings by tensor name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tensors: BTreeMap<String, TensorSettings>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            scheme: Scheme::default(),
            target: RunTarget::default(),
            format: Format::default(),
            method: None,
            activations: TensorSettings::default(),
            weights: TensorSettings::default(),
            operators: Operators::default(),
            float: Vec::new(),
            guard: GuardSettings::ALL,
            bias_correction: None,
            rounding: Rounding::default(),
            finetune: None,
            equalize: None,
            quantize_bias: true,
            fit_bias: true,
            fine_first: None,
            keep_io: KeptPorts::Switch(true),
            overflow: Overflow::default(),
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
    /// True where floats become half precision.
    pub(crate) fn makes_halves(&self) -> bool {
        let halves = self.blocks.activations == FloatActivations::Float16;
        self.scheme == Scheme::Float16 || self.scheme == Scheme::Blocks && halves
    }

    /// The settings with the values that their target needs, or the contradiction.
    pub fn for_target(self) -> Result<Settings, SettingsError> {
        Ok(fit_target::fit(self)?)
    }

    /// True where quantization needs calibration samples.
    pub fn needs_samples(&self) -> bool {
        self.scheme == Scheme::Static || self.needs_gram_matrices()
    }

    /// True where quantization can use samples but needs none: in half precision they show values that
    /// are too large for it.
    pub fn takes_samples(&self) -> bool {
        self.needs_samples() || self.makes_halves()
    }

    /// The strength of equalization; `None` where the scheme has no use for it.
    pub fn equalizes(&self) -> Option<f32> {
        self.equalize.filter(|_| self.scheme == Scheme::Static)
    }

    /// True for weights in blocks in the precision of the model, which need no types of values.
    pub(crate) fn keeps_types(&self) -> bool {
        self.scheme == Scheme::Blocks && self.blocks.activations == FloatActivations::Source
    }

    /// True where constants are learned from the samples, after the calibration.
    pub fn tunes(&self) -> bool {
        let learned = self.rounding == Rounding::ClosedForm || self.finetune.is_some();
        self.scheme == Scheme::Static && learned
    }

    /// True where quantization needs the Gram matrices of the layers' inputs, from an extra pass.
    pub fn needs_gram_matrices(&self) -> bool {
        match self.scheme {
            Scheme::Static => self.rounding == Rounding::Gptq,
            Scheme::Blocks => {
                let groups = [&self.by_operator, &self.by_name, &self.by_node];
                let layers = groups.into_iter().flat_map(BTreeMap::values);
                let mut methods = layers.filter_map(|layer| layer.blocks.method);
                self.blocks.method.needs_gram_matrices()
                    || methods.any(BlockMethod::needs_gram_matrices)
            }
            _ => false,
        }
    }
}
