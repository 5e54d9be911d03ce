//! Options that form the settings document: a file, overridden by single options.

use clap::Args;
use octet::calibrate::{Method, PowerOfTwo};
use octet::quantize::{
    Document, ElementType, Format, GuardSettings, Operators, Rounding, Scheme, Settings,
};

use super::images::one_of;
use super::{Failure, files};

#[derive(Args)]
pub struct SettingsOptions {
    /// All settings, also by layer and by tensor, as YAML or JSON (docs/settings.md): a path, or
    /// JSON inline; other options override it
    #[arg(long, value_name = "SETTINGS")]
    config: Option<String>,
    /// Quantization scheme: static (weights and activations, with calibrated scales), dynamic
    /// (activations are quantized at run time), weights (8-bit weights only), blocks (block-wise
    /// weights, 4 bits unless --config says otherwise) or float16 [default: static]
    #[arg(long, value_name = "SCHEME")]
    scheme: Option<String>,
    /// Method that chooses the range of a tensor: auto (least expected error; early activations get
    /// 16 bits, which makes a run slower), minmax (minimum to maximum, as ONNX Runtime),
    /// moving-average, percentile[:99.999], entropy, mse, mse-power-of-two,
    /// layerwise-percentile[:mae|:mse], or ONNX Runtime's own ort-percentile[:99.999] and
    /// ort-entropy[:BINS/LEVELS] [default: auto]
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,
    /// Format of the result: qdq (QuantizeLinear and DequantizeLinear around float operators),
    /// qoperator (integer operators) or simulated (same results with float weights) [default: qdq]
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Type of activations: u8, i8, u16, i16, u4 or i4 [default: u8]
    #[arg(long, value_name = "TYPE")]
    activations: Option<String>,
    /// Type of weights: i8, u8, i16, u16, i4 or u4 [default: i8]
    #[arg(long, value_name = "TYPE")]
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
    /// Bias correction: biases absorb the mean error of rounded weights [default: true with the
    /// method auto]
    #[arg(long, value_name = "true|false")]
    bias_correction: Option<bool>,
    /// Rounding of weights: nearest, or gptq (needs an extra pass over the samples) [default:
    /// nearest]
    #[arg(long, value_name = "ROUNDING")]
    rounding: Option<String>,
    /// Equalize channels of neighbouring layers with this strength, 0 to 1 (needs an extra pass
    /// over the samples) [default: off; 0.5 without a number]
    #[arg(long, value_name = "STRENGTH", num_args = 0..=1, require_equals = true)]
    equalize: Option<Option<f32>>,
    /// Operators to quantize: all, onnxruntime (its default list), or names separated by commas
    #[arg(long, value_name = "OPERATORS")]
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
    value: &str,
    known: &[(&str, ElementType)],
) -> Result<ElementType, Failure> {
    let found = known.iter().find(|(name, _)| *name == value);
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    found
        .map(|(_, element)| *element)
        .ok_or_else(|| one_of(option, value, &names))
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
