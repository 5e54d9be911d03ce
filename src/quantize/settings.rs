//! What a person can choose.

use serde::{Deserialize, Serialize};

use super::scale::span;
use crate::calibrate::Target;
use crate::onnx::schema::DataType;

/// The integer type of activations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActivationType {
    /// 0 to 255, as ONNX Runtime's kernels like best.
    #[default]
    U8,
    /// -128 to 127.
    I8,
}

/// How a model is quantized.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    /// The integer type of activations.
    pub activations: ActivationType,
    /// Ranges of activations mirrored at zero.
    pub symmetric_activations: bool,
    /// One scale for each output channel of a weight, instead of one for all.
    pub per_channel: bool,
    /// Weights in 7 bits, for processors whose 8-bit products overflow.
    pub reduce_range: bool,
    /// Names of nodes that stay float.
    pub keep_float: Vec<String>,
    /// Only these operators are quantized; all that can be where this is absent.
    pub operators: Option<Vec<String>>,
}

impl Settings {
    /// The integers of activations, as calibration has to know them.
    pub fn target(&self) -> Target {
        let element = match self.activations {
            ActivationType::U8 => DataType::Uint8,
            ActivationType::I8 => DataType::Int8,
        };
        let used = span(element, self.symmetric_activations, false);
        Target::new(used.low, used.high, self.symmetric_activations)
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            activations: ActivationType::U8,
            symmetric_activations: false,
            per_channel: true,
            reduce_range: false,
            keep_float: Vec::new(),
            operators: None,
        }
    }
}
