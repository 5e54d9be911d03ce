//! Options that form the settings document: a file, overridden by single options.

use clap::Args;
use octet::quantize::{Document, GuardSettings, Operators, Settings};
use octet::stats::{Method, PowerOfTwo};

use super::settings_help::{help, method_help, parse, type_help};
use super::{Failure, files};

#[derive(Args)]
pub struct SettingsOptions {
    /// All settings, also by layer and by tensor, as YAML or JSON (docs/settings.md): a path, or
    /// JSON inline; other options override it
    #[arg(long, value_name = "SETTINGS")]
    config: Option<String>,
    #[arg(long, value_name = "SCHEME", help = help("scheme"))]
    scheme: Option<String>,
    #[arg(long = "target", value_name = "TARGET", help = help("target"))]
    runs_on: Option<String>,
    #[arg(long, value_name = "METHOD", help = method_help())]
    method: Option<String>,
    #[arg(long, value_name = "FORMAT", help = help("format"))]
    format: Option<String>,
    #[arg(long, value_name = "TYPE", help = type_help("activations", "u8"))]
    activations: Option<String>,
    #[arg(long, value_name = "TYPE", help = type_help("weights", "i8"))]
    weights: Option<String>,
    /// Per-tensor scales for weights instead of per-channel ones
    #[arg(long)]
    per_tensor: bool,
    /// Symmetric ranges for activations
    #[arg(long)]
    symmetric_activations: bool,
    /// 7-bit weights, for processors whose 8-bit dot products saturate
    #[arg(long)]
    reduce_range: bool,
    /// Scales that are powers of two
    #[arg(long)]
    power_of_two: bool,
    /// Turn mixed precision off: quantize also tensors for which 8 bits are too coarse
    #[arg(long)]
    no_guard: bool,
    #[arg(long, value_name = "true|false", help = help("bias_correction"))]
    bias_correction: Option<bool>,
    #[arg(long, value_name = "ROUNDING", help = help("rounding"))]
    rounding: Option<String>,
    #[arg(long, value_name = "adaround|adaquant", help = help("finetune"))]
    finetune: Option<String>,
    #[arg(long, value_name = "STRENGTH", num_args = 0..=1, require_equals = true, help = help("equalize"))]
    equalize: Option<Option<f32>>,
    #[arg(long, value_name = "OPERATORS", help = help("operators"))]
    operators: Option<String>,
    /// Node to keep float, or a scope or pattern of names (repeatable)
    #[arg(long, value_name = "NAME")]
    keep_float: Vec<String>,
}

impl SettingsOptions {
    /// The settings of the document and the options.
    pub fn document(&self) -> Result<Settings, Failure> {
        let mut settings = match &self.config {
            Some(value) => read(value)?,
            None => Settings::default(),
        };
        if let Some(scheme) = &self.scheme {
            settings.scheme = parse("--scheme", scheme, "scheme")?;
        }
        if let Some(target) = &self.runs_on {
            settings.target = parse("--target", target, "target")?;
        }
        if let Some(method) = &self.method {
            let parsed = method.parse::<Method>();
            settings.method =
                Some(parsed.map_err(|error| Failure::usage(format!("--method: {error}")))?);
        }
        if let Some(format) = &self.format {
            settings.format = parse("--format", format, "format")?;
        }
        if let Some(name) = &self.activations {
            settings.activations.element = Some(parse("--activations", name, "activations.type")?);
        }
        if let Some(name) = &self.weights {
            settings.weights.element = Some(parse("--weights", name, "weights.type")?);
        }
        if self.per_tensor {
            settings.weights.per_channel = Some(false);
        }
        if self.symmetric_activations {
            settings.activations.symmetric = Some(true);
        }
        if self.reduce_range {
            settings.weights.reduce_range = Some(true);
        }
        if self.power_of_two {
            settings.activations.power_of_two = Some(PowerOfTwo::Covering);
            settings.weights.power_of_two = Some(PowerOfTwo::Covering);
        }
        if let Some(operators) = &self.operators {
            settings.operators = match operators.as_str() {
                "all" => Operators::All,
                "onnxruntime" => Operators::OnnxRuntime,
                names => Operators::Only(names.split(',').map(|name| name.trim().into()).collect()),
            };
        }
        if self.no_guard {
            settings.guard = GuardSettings::NONE;
        }
        if let Some(rounding) = &self.rounding {
            settings.rounding = parse("--rounding", rounding, "rounding")?;
        }
        if let Some(algorithm) = &self.finetune {
            // A document may hold the options of the algorithm.
            let mut options = settings.finetune.unwrap_or_default();
            let one = serde_json::json!({ "finetune": algorithm });
            let read = Settings::from_value(one).map_err(|_| {
                Failure::usage(format!(
                    "--finetune: {algorithm} is no algorithm: give adaround or adaquant"
                ))
            })?;
            options.algorithm = read.finetune.unwrap_or_default().algorithm;
            settings.finetune = Some(options);
        }
        if let Some(strength) = self.equalize {
            let strength = strength.unwrap_or(Settings::USUAL_STRENGTH);
            if !Settings::is_strength(strength) {
                return Err(Failure::usage(format!(
                    "--equalize: {strength} is not a strength: give a number from 0 to 1"
                )));
            }
            settings.equalize = Some(strength);
        }
        settings.bias_correction = self.bias_correction.or(settings.bias_correction);
        settings.float.extend(self.keep_float.iter().cloned());
        settings
            .for_target()
            .map_err(|error| Failure::usage(error.to_string()))
    }
}

/// Reads a document from a file or from the command line. JSON is valid YAML.
fn read(value: &str) -> Result<Settings, Failure> {
    let (place, bytes) = files::inline_or_read("--config", value)?;
    let named = |cause: &dyn std::fmt::Display| Failure::usage(format!("{place}: {cause}"));
    let document: Option<Document> =
        serde_yaml_ng::from_slice(&bytes).map_err(|cause| named(&cause))?;
    // An empty file, or one with only comments, means all defaults.
    match document {
        None | Some(Document(serde_json::Value::Null)) => Ok(Settings::default()),
        Some(Document(value)) => Settings::from_value(value).map_err(|cause| named(&cause)),
    }
}
