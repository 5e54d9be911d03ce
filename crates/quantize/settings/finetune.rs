//! The key `finetune`: the name of an algorithm, or a mapping of its options.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// An algorithm that learns the rounding of weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FinetuneAlgorithm {
    /// Each weight learns which of its two nearest integers it takes.
    #[default]
    AdaRound,
    /// Weights and scales are learned, with rounding as the identity in the gradient.
    AdaQuant,
}

/// Fine-tuning of the weights, layer by layer, to the values of the float model. The names are those
/// of AMD Quark where they mean the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Finetune {
    /// The algorithm.
    pub algorithm: FinetuneAlgorithm,
    /// Steps of each layer. Default: 1000, with `adaquant` 3000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub num_iterations: Option<usize>,
    /// The rate of the optimizer. Default: 0.1, with `adaquant` 1e-5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub learning_rate: Option<f32>,
    /// Positions of a step, drawn from all samples. Default: 256.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub positions: Option<usize>,
    /// The most samples that are used. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub data_size: Option<usize>,
    /// The seed of the positions. Default: 1705472343.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_seed: Option<u32>,
    /// Biases are learned too.
    pub update_bias: bool,
    /// The loss includes the rounding of the layer's output.
    pub output_qdq: bool,
    /// Weight of AdaRound's regulariser. Default: 0.01.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub reg_param: Option<f32>,
    /// First and last exponent of the regulariser. Default: [20, 2].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta_range: Option<[f32; 2]>,
    /// Share of the steps without regulariser. Default: 0.2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub warm_start: Option<f32>,
    /// Operators whose weights are learned: `Conv`, `Gemm` or `MatMul`. Default: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_op_type: Option<Vec<String>>,
    /// Place of the values between two layers. 0: in memory as floats; 1: in memory, float
    /// values as halves; 2: the same in a file, on the page in the browser's storage. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2))]
    pub mem_opt_level: Option<u8>,
    /// Learns only the layer that needs most memory, to measure it.
    pub select_max_mem_layer: bool,
    /// Layers learn in blocks, such as a residual block, where every operator of a block has a
    /// gradient. The other layers learn alone. It takes four samples at least.
    pub blocks: bool,
    /// Samples of a step of a block. Default: 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub batch_size: Option<usize>,
    /// The share of a block's values that are rounded in a step; the others stay float. QDrop's
    /// authors take 0.5, for activations of few bits. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub drop_ratio: Option<f32>,
    /// Scales of activations inside of a block are learned too (LSQ).
    pub activation_scales: bool,
    /// Steps in which scales and biases of the whole model learn from the float model's outputs,
    /// after all layers. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distillation: Option<usize>,
}

/// Operators whose weights can be learned.
pub const LEARNED_OPERATORS: [&str; 3] = ["Conv", "Gemm", "MatMul"];

/// Options of AMD Quark that have no use here, with the reason.
const REFUSED: [(&str, &str); 8] = [
    (
        "num_batches",
        "a step draws positions of all samples; set `positions`",
    ),
    (
        "selective_update",
        "a layer changes only if positions that did not teach it gain",
    ),
    (
        "early_stop",
        "all steps run, and a layer that did not gain keeps its weights",
    ),
    ("lr_adjust", "the rate is constant; set `learning_rate`"),
    ("output_index", "each layer has one output"),
    ("ref_model_path", "the reference is the float model itself"),
    ("dynamic_batch", "samples of all shapes are taken"),
    ("parallel", "all samples advance in parallel"),
];

/// An algorithm, or a mapping.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
#[allow(dead_code, reason = "only the schema is read")]
pub(super) enum FinetuneChoice {
    Algorithm(FinetuneAlgorithm),
    Options(Finetune),
}

/// Reads the key; `None` for false.
pub(super) fn choice<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Finetune>, D::Error> {
    use serde::de::Error;
    let value = Value::deserialize(deserializer)?;
    let options = match &value {
        Value::Null | Value::Bool(false) => return Ok(None),
        Value::String(_) => {
            let algorithm = FinetuneAlgorithm::deserialize(value).map_err(Error::custom)?;
            return Ok(Some(Finetune {
                algorithm,
                ..Finetune::default()
            }));
        }
        Value::Object(options) => options,
        _ => {
            return Err(Error::custom(
                "`finetune` must be adaround, adaquant or a mapping of options",
            ));
        }
    };
    if let Some((name, reason)) = REFUSED.iter().find(|(name, _)| options.contains_key(*name)) {
        let text = format!("finetune: the option `{name}` does not exist here: {reason}");
        return Err(Error::custom(text));
    }
    let read = Finetune::deserialize(value)
        .map_err(|error| Error::custom(format!("finetune: {error}")))?;
    match read.refusal() {
        Some(reason) => Err(Error::custom(format!("finetune: {reason}"))),
        None => Ok(Some(read)),
    }
}

impl Finetune {
    /// Why a value is refused that its type allows.
    fn refusal(&self) -> Option<String> {
        let zero = |name: &str, value: Option<usize>| {
            (value == Some(0)).then(|| format!("`{name}` must be at least 1"))
        };
        let of = |name: &str, value: Option<f32>, least: f32, most: f32| {
            let outside = value.is_some_and(|value| !(least..=most).contains(&value));
            outside.then(|| format!("`{name}` must be a number from {least} to {most}"))
        };
        let alone = |name: &str, given: bool, reason: &str| {
            let refused = given && !self.blocks;
            refused.then(|| format!("`{name}` needs `blocks: true`: {reason}"))
        };
        let distils = self.distillation.is_some_and(|steps| steps > 0);
        let operators = self.target_op_type.iter().flatten();
        let mut unknown = operators.filter(|name| !LEARNED_OPERATORS.contains(&name.as_str()));
        let [first, last] = self.beta_range.unwrap_or([20.0, 2.0]);
        zero("num_iterations", self.num_iterations)
            .or(zero("positions", self.positions))
            .or(zero("data_size", self.data_size))
            .or(zero("batch_size", self.batch_size))
            .or(of("drop_ratio", self.drop_ratio, 0.0, 1.0))
            .or(alone(
                "batch_size",
                self.batch_size.is_some() && !distils,
                "a step of a layer draws positions of all samples; set `positions`",
            ))
            .or(alone(
                "drop_ratio",
                self.drop_ratio.is_some(),
                "the inputs of a layer are always those of the quantized model",
            ))
            .or(alone(
                "activation_scales",
                self.activation_scales,
                "a layer has no activation inside",
            ))
            .or(of(
                "learning_rate",
                self.learning_rate,
                f32::MIN_POSITIVE,
                10.0,
            ))
            .or(of("reg_param", self.reg_param, 0.0, 100.0))
            .or(of("warm_start", self.warm_start, 0.0, 1.0))
            .or(of("beta_range", Some(first), 1.0, 100.0))
            .or(of("beta_range", Some(last), 1.0, 100.0))
            .or((self.mem_opt_level > Some(2)).then(|| "`mem_opt_level` must be 0, 1 or 2".into()))
            .or(unknown.next().map(|name| {
                format!(
                    "`target_op_type` names {name}; weights of Conv, Gemm and MatMul can be learned"
                )
            }))
    }
}

#[cfg(test)]
mod tests {
    use crate::Settings;

    fn read(text: &str) -> Result<Settings, String> {
        let value = serde_json::from_str(text).unwrap();
        Settings::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_or_a_mapping_is_read_and_written_again() {
        for text in [
            r#"{ "finetune": "adaround" }"#,
            r#"{ "finetune": "adaquant" }"#,
            r#"{ "finetune": { "algorithm": "adaquant", "num_iterations": 10, "beta_range": [9, 3] } }"#,
            r#"{ "finetune": { "blocks": true, "batch_size": 2, "drop_ratio": 0.25, "activation_scales": true } }"#,
            r#"{ "finetune": { "distillation": 20, "batch_size": 2 } }"#,
        ] {
            let settings = read(text).unwrap();
            assert!(settings.finetune.is_some() && settings.tunes());
            let written = serde_json::to_value(&settings).unwrap();
            assert_eq!(Settings::from_value(written).unwrap(), settings);
        }
        assert!(!read(r#"{ "finetune": false }"#).unwrap().tunes());
        assert!(read(r#"{ "rounding": "closed-form" }"#).unwrap().tunes());
    }

    #[test]
    fn options_without_use_are_refused_by_name() {
        for (option, words) in [
            (r#""batch_size": 1"#, "set `positions`"),
            (r#""drop_ratio": 0.5"#, "`blocks: true`"),
            (r#""activation_scales": true"#, "`blocks: true`"),
            (r#""blocks": true, "drop_ratio": 1.5"#, "`drop_ratio` must"),
            (r#""blocks": true, "batch_size": 0"#, "at least 1"),
            (r#""early_stop": true"#, "`early_stop`"),
            (r#""num_iteration": 1"#, "num_iteration"),
            (r#""num_iterations": 0"#, "at least 1"),
            (r#""learning_rate": -1"#, "`learning_rate` must"),
            (r#""mem_opt_level": 3"#, "0, 1 or 2"),
            (
                r#""target_op_type": ["LayerNormalization"]"#,
                "LayerNormalization",
            ),
        ] {
            let error = read(&format!("{{ \"finetune\": {{ {option} }} }}")).unwrap_err();
            assert!(error.contains(words), "{option}: {error}");
        }
        assert!(read(r#"{ "finetune": "adamax" }"#).is_err());
        assert!(read(r#"{ "finetune": 3 }"#).is_err());
    }
}
