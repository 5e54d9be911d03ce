//! What a person can choose of weights in blocks.

use serde::{Deserialize, Serialize};

use crate::quantize::QuantizeError;

/// How the file holds weights in blocks.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum BlockForm {
    /// ONNX Runtime's operator com.microsoft::MatMulNBits.
    #[default]
    #[serde(rename = "matmul_nbits")]
    MatMulNBits,
    /// ONNX's own DequantizeLinear of opset 21, for 4 and 8 bits.
    Dequantize,
}

/// How a block's scale and zero point are found.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum BlockMethod {
    /// From the smallest and largest number: ONNX Runtime's integers, bit for bit.
    #[default]
    Rtn,
    /// Half-quadratic: the zero point, no integer, that suits most numbers and lets a few outliers go.
    Hqq,
    /// The best of many scales, errors of large numbers counting more.
    Search,
    /// With those scales, rounded so that the errors of a column make up for one another.
    Gptq,
}

/// How weights are quantized in blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BlockSettings {
    /// How the file holds them.
    pub form: BlockForm,
    /// Bits of one number: 2, 4 or 8.
    pub bits: u8,
    /// How many numbers share a scale: a power of two from 16 to 256.
    pub size: usize,
    /// Zero in the middle, and no zero points in the file; where nothing is said, with every method but the half-quadratic,
    /// which looks for zero points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symmetric: Option<bool>,
    /// How scales and zero points are found.
    pub method: BlockMethod,
    /// How exactly MatMulNBits works on activations: 0 as it likes, 1 float32, 2 float16, 3 bfloat16, 4 int8.
    pub accuracy_level: u8,
}

impl Default for BlockSettings {
    fn default() -> BlockSettings {
        BlockSettings {
            form: BlockForm::default(),
            bits: 4,
            size: 32,
            symmetric: None,
            method: BlockMethod::default(),
            accuracy_level: 0,
        }
    }
}

/// What is said of the blocks of some nodes; of what is not, they are as all are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BlockChoice {
    /// Bits of one number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<u8>,
    /// How many numbers share a scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<usize>,
    /// Zero in the middle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symmetric: Option<bool>,
    /// How scales and zero points are found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<BlockMethod>,
    /// How exactly MatMulNBits works on activations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy_level: Option<u8>,
}

impl BlockSettings {
    /// What `said` says, over this.
    pub(in crate::quantize) fn with(&self, said: &BlockChoice) -> BlockSettings {
        BlockSettings {
            form: self.form,
            bits: said.bits.unwrap_or(self.bits),
            size: said.size.unwrap_or(self.size),
            symmetric: said.symmetric.or(self.symmetric),
            method: said.method.unwrap_or(self.method),
            accuracy_level: said.accuracy_level.unwrap_or(self.accuracy_level),
        }
    }

    /// Whether zero is in the middle.
    pub(super) fn is_symmetric(&self) -> bool {
        self.symmetric.unwrap_or(self.method != BlockMethod::Hqq)
    }

    /// That the settings go together.
    pub(super) fn check(&self) -> Result<(), QuantizeError> {
        let wrong = |setting: &'static str, given: String, wanted: &'static str| {
            Err(QuantizeError::Setting {
                setting,
                given,
                wanted,
            })
        };
        match (self.form, self.bits) {
            (BlockForm::MatMulNBits, 2 | 4 | 8) | (BlockForm::Dequantize, 4 | 8) => {}
            (BlockForm::MatMulNBits, bits) => {
                return wrong("bits", bits.to_string(), "2, 4 or 8");
            }
            (BlockForm::Dequantize, bits) => {
                return wrong("bits", bits.to_string(), "4 or 8, or the form matmul_nbits");
            }
        }
        if !self.size.is_power_of_two() || !(16..=256).contains(&self.size) {
            let given = self.size.to_string();
            return wrong("size", given, "16, 32, 64, 128 or 256");
        }
        if self.accuracy_level > 4 {
            let given = self.accuracy_level.to_string();
            return wrong("accuracy_level", given, "a number from 0 to 4");
        }
        if self.method == BlockMethod::Hqq
            && (self.is_symmetric() || self.bits == 8 || self.form != BlockForm::MatMulNBits)
        {
            let wanted = "rtn, search or gptq; or with it 2 or 4 bits, weights that are not symmetric and the form \
                          matmul_nbits, since its zero points are no integers";
            return wrong("method", "hqq".to_owned(), wanted);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_for_zero_points_has_them_where_nothing_is_said() {
        for (method, symmetric) in [
            (BlockMethod::Rtn, true),
            (BlockMethod::Hqq, false),
            (BlockMethod::Search, true),
            (BlockMethod::Gptq, true),
        ] {
            let settings = BlockSettings {
                method,
                ..BlockSettings::default()
            };
            assert_eq!(settings.is_symmetric(), symmetric);
            settings.check().unwrap();
        }
    }
}
