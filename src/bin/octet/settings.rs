//! The options that make the settings document: a file, and what is said beside it.

use clap::Args;
use octet::calibrate::{Method, PowerOfTwo};
use octet::quantize::{
    Document, ElementType, Format, GuardSettings, Operators, Rounding, Scheme, Settings,
};

use super::images::one_of;
use super::{Failure, files};

#[derive(Args)]
pub struct SettingsOptions {
    /// All settings, also by layer and by tensor, as YAML or JSON (docs/settings.md): a file, or the JSON itself;
    /// options here come over it
    #[arg(long, value_name = "SETTINGS")]
    config: Option<String>,
    /// What becomes integers, and when: static (with scales found from samples), dynamic (activations as
    /// the model runs), weights (only, in 8 bits), blocks (only weights, in 4 bits or as --config says) or
    /// float16 [default: static]
    #[arg(long, value_name = "SCHEME")]
    scheme: Option<String>,
    /// How a tensor's range is chosen: auto (least expected error; its first values get 16 bits, which
    /// makes a run slower), minmax (all that was seen, as ONNX Runtime does), moving-average,
    /// percentile[:99.999], entropy, mse, mse-power-of-two, layerwise-percentile[:mae|:mse], or ONNX
    /// Runtime's own ort-percentile[:99.999] and ort-entropy[:BINS/LEVELS] [default: auto]
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,
    /// How the result is written: qdq (QuantizeLinear and DequantizeLinear around float operators),
    /// qoperator (operators on integers) or simulated (the same numbers, weights readable) [default: qdq]
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// The integers of activations: u8, i8, u16, i16, u4 or i4 [default: u8]
    #[arg(long, value_name = "TYPE")]
    activations: Option<String>,
    /// The integers of weights: i8, u8, i16, u16, i4 or u4 [default: i8]
    #[arg(long, value_name = "TYPE")]
    weights: Option<String>,
    /// One scale for each weight tensor instead of one for each of its channels
    #[arg(long)]
    per_tensor: bool,
    /// Ranges of activations mirrored at zero
    #[arg(long)]
    symmetric_activations: bool,
    /// Weights in 7 bits, for processors whose 8-bit products overflow
    #[arg(long)]
    reduce_range: bool,
    /// Only scales that are powers of two
    #[arg(long)]
    power_of_two: bool,
    /// Quantizes also what will be too coarse, in place of 16 bits for it or floats
    #[arg(long)]
    no_guard: bool,
    /// Whether biases make up for what rounding the weights adds in the mean [default: with the method auto]
    #[arg(long, value_name = "true|false")]
    bias_correction: Option<bool>,
    /// How weights are rounded: nearest, or gptq, so that their errors make up for one another (a further pass over the
    /// samples) [default: nearest]
    #[arg(long, value_name = "ROUNDING")]
    rounding: Option<String>,
    /// By how much channels are made alike before anything is rounded, from 0 to 1 (a further pass over the samples) [default: not at
    /// all; 0.5 where no number is said]
    #[arg(long, value_name = "STRENGTH", num_args = 0..=1, require_equals = true)]
    equalize: Option<Option<f32>>,
    /// Which operators are quantized: all, onnxruntime (its default list), or their names, separated by commas
    #[arg(long, value_name = "OPERATORS")]
    operators: Option<String>,
    /// A node that stays float, or a scope or pattern of names (can be given again)
    #[arg(long, value_name = "NAME")]
    keep_float: Vec<String>,
}

impl SettingsOptions {
    /// The document.
    pub fn document(&self) -> Result<Settings, Failure> {
        let mut settings = match &self.config {
            Some(given) => read(given)?,
            None => Settings::default(),
        };
        if let Some(scheme) = &self.scheme {
            let found = SCHEMES.iter().find(|(name, _)| name == scheme);
            let names = SCHEMES.map(|(name, _)| name);
            settings.scheme = found.ok_or_else(|| one_of("--scheme", scheme, &names))?.1;
        }
        if let Some(method) = &self.method {
            let parsed = method.parse::<Method>();
            settings.method =
                Some(parsed.map_err(|error| Failure::usage(format!("--method: {error}")))?);
        }
        if let Some(format) = &self.format {
            settings.format = match format.as_str() {
                "qdq" => Format::Qdq,
                "qoperator" => Format::QOperator,
                "simulated" => Format::Simulated,
                other => {
                    return Err(one_of(
                        "--format",
                        other,
                        &["qdq", "qoperator", "simulated"],
                    ));
                }
            };
        }
        if let Some(name) = &self.activations {
            settings.activations.element = Some(element("--activations", name, &ELEMENTS)?);
        }
        if let Some(name) = &self.weights {
            settings.weights.element = Some(element("--weights", name, &ELEMENTS)?);
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
            settings.rounding = match rounding.as_str() {
                "nearest" => Rounding::Nearest,
                "gptq" => Rounding::Gptq,
                other => return Err(one_of("--rounding", other, &["nearest", "gptq"])),
            };
        }
        if let Some(said) = self.equalize {
            let strength = said.unwrap_or(Settings::USUAL_STRENGTH);
            if !Settings::is_strength(strength) {
                return Err(Failure::usage(format!(
                    "--equalize: {strength} is no strength: give a number from 0 to 1"
                )));
            }
            settings.equalize = Some(strength);
        }
        settings.bias_correction = self.bias_correction.or(settings.bias_correction);
        settings.float.extend(self.keep_float.iter().cloned());
        Ok(settings)
    }
}

const SCHEMES: [(&str, Scheme); 5] = [
    ("static", Scheme::Static),
    ("dynamic", Scheme::Dynamic),
    ("weights", Scheme::Weights),
    ("blocks", Scheme::Blocks),
    ("float16", Scheme::Float16),
];

const ELEMENTS: [(&str, ElementType); 6] = [
    ("u8", ElementType::U8),
    ("i8", ElementType::I8),
    ("u16", ElementType::U16),
    ("i16", ElementType::I16),
    ("u4", ElementType::U4),
    ("i4", ElementType::I4),
];

fn element(
    option: &str,
    given: &str,
    known: &[(&str, ElementType)],
) -> Result<ElementType, Failure> {
    let found = known.iter().find(|(name, _)| *name == given);
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    found
        .map(|(_, element)| *element)
        .ok_or_else(|| one_of(option, given, &names))
}

/// A document from a file or from the command line. JSON is YAML too.
fn read(given: &str) -> Result<Settings, Failure> {
    let (place, bytes) = files::inline_or_read("--config", given)?;
    let named = |cause: &dyn std::fmt::Display| Failure::usage(format!("{place}: {cause}"));
    let document: Option<Document> =
        serde_yaml_ng::from_slice(&bytes).map_err(|cause| named(&cause))?;
    // An empty file, or one of comments only, says nothing.
    match document {
        None | Some(Document(serde_json::Value::Null)) => Ok(Settings::default()),
        Some(Document(value)) => Settings::from_value(value).map_err(|cause| named(&cause)),
    }
}
