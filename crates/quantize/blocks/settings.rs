//! Settings of block-wise weights.

use serde::{Deserialize, Serialize};

use super::mixed_bits::MixedBits;
use crate::settings::UnsupportedSetting;

/// The representation of block-wise weights in the file.
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
    /// ONNX Runtime's operator com.microsoft::MatMulBnb4: floats of 4 bits, as bitsandbytes has them.
    #[serde(rename = "matmul_bnb4")]
    MatMulBnb4,
}

/// The floats of 4 bits in the form `matmul_bnb4`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum FloatType {
    /// Quantiles of a normal distribution.
    #[default]
    Nf4,
    /// A sign, two bits of exponent and a bit of mantissa.
    Fp4,
}

/// The method that computes scale and zero point of a block.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum BlockMethod {
    /// From minimum and maximum: ONNX Runtime's integers, bit for bit.
    #[default]
    Rtn,
    /// Half-quadratic (HQQ): a fractional zero point that fits most numbers and ignores a few
    /// outliers.
    Hqq,
    /// A search over scales; errors of large numbers count more.
    Search,
    /// ONNX Runtime's k-quant: scale and zero point by weighted least squares, for several roundings.
    #[serde(rename = "k_quant")]
    KQuant,
    /// The scales of `search`, with GPTQ's rounding.
    Gptq,
    /// AWQ: like `rtn`, after the inputs that count most on the samples got larger weights. What is
    /// before is divided by the same scales.
    Awq,
}

/// The floats between the nodes of a model with weights in blocks.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum FloatActivations {
    /// Those of the model.
    #[default]
    Source,
    /// Half precision, also for scales and other constants: `q4f16`.
    Float16,
}

/// The settings of block-wise weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BlockSettings {
    /// The representation in the file.
    pub form: BlockForm,
    /// Bits of one number: 2, 4 or 8.
    pub bits: u8,
    /// The numbers that share a scale: a power of two from 16 to 256.
    pub size: usize,
    /// The zero point is the middle of the integers, and the file has no zero points. By default
    /// true for every method but `hqq` and `k_quant`, which compute zero points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symmetric: Option<bool>,
    /// The method that computes scales and zero points.
    pub method: BlockMethod,
    /// The precision of MatMulNBits: 0 runtime's choice, 1 float32, 2 float16, 3 bfloat16, 4 int8.
    pub accuracy_level: u8,
    /// The numbers of the form `matmul_bnb4`.
    pub float_type: FloatType,
    /// The floats between the nodes. `float16` halves what is not in blocks; the integers stay those of
    /// the source.
    pub activations: FloatActivations,
    /// Quantizes tables that a Gather reads, such as embeddings, as ONNX Runtime's
    /// GatherBlockQuantized. A table that is also the model's head is stored once.
    pub embeddings: bool,
    /// Eight bits for the weights that count most, by their roles in the graph: `k_quant_mixed`, or a
    /// budget. Layers with `bits` of their own keep them. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixed: Option<MixedBits>,
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
            float_type: FloatType::default(),
            activations: FloatActivations::default(),
            embeddings: false,
            mixed: None,
        }
    }
}

/// Settings of block-wise weights for some nodes. Those left out are as for all nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BlockChoice {
    /// Bits of one number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<u8>,
    /// The numbers that share a scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<usize>,
    /// Zero in the middle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symmetric: Option<bool>,
    /// The method that computes scales and zero points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<BlockMethod>,
    /// The precision of MatMulNBits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy_level: Option<u8>,
}

impl BlockMethod {
    /// True if it needs the Gram matrices of the layers' inputs.
    pub(crate) fn needs_gram_matrices(self) -> bool {
        matches!(self, BlockMethod::Gptq | BlockMethod::Awq)
    }
}

impl BlockSettings {
    /// These settings, with those of `choice` in place of them where it has any.
    pub(crate) fn with(&self, choice: &BlockChoice) -> BlockSettings {
        BlockSettings {
            form: self.form,
            bits: choice.bits.unwrap_or(self.bits),
            size: choice.size.unwrap_or(self.size),
            symmetric: choice.symmetric.or(self.symmetric),
            method: choice.method.unwrap_or(self.method),
            accuracy_level: choice.accuracy_level.unwrap_or(self.accuracy_level),
            float_type: self.float_type,
            activations: self.activations,
            embeddings: self.embeddings,
            // Bits of a layer's own win.
            mixed: self.mixed.filter(|_| choice.bits.is_none()),
        }
    }

    /// True if the zero point is the middle of the integers.
    pub(crate) fn is_symmetric(&self) -> bool {
        let computes_zero_points = matches!(self.method, BlockMethod::Hqq | BlockMethod::KQuant);
        self.symmetric.unwrap_or(!computes_zero_points)
    }

    /// Checks that the settings are valid together.
    pub(crate) fn check(&self) -> Result<(), UnsupportedSetting> {
        match (self.form, self.bits) {
            (BlockForm::MatMulNBits, 2 | 4 | 8)
            | (BlockForm::Dequantize, 4 | 8)
            | (BlockForm::MatMulBnb4, 4) => {}
            (BlockForm::MatMulBnb4, _) => return Err(UnsupportedSetting::FourBitFloats),
            (BlockForm::MatMulNBits, bits) => {
                return Err(UnsupportedSetting::PackedBits(bits));
            }
            (BlockForm::Dequantize, bits) => {
                return Err(UnsupportedSetting::DequantizedBits(bits));
            }
        }
        if !self.size.is_power_of_two() || !(16..=256).contains(&self.size) {
            return Err(UnsupportedSetting::BlockSize(self.size));
        }
        if self.accuracy_level > 4 {
            return Err(UnsupportedSetting::AccuracyLevel(self.accuracy_level));
        }
        if self.form == BlockForm::MatMulBnb4 {
            let plain = BlockSettings {
                form: self.form,
                size: self.size,
                float_type: self.float_type,
                ..BlockSettings::default()
            };
            return match *self == plain {
                true => Ok(()),
                false => Err(UnsupportedSetting::FourBitFloats),
            };
        }
        if self.method == BlockMethod::Hqq
            && (self.is_symmetric() || self.bits == 8 || self.form != BlockForm::MatMulNBits)
        {
            return Err(UnsupportedSetting::Hqq);
        }
        if let Some(mixed) = self.mixed {
            mixed.check()?;
            if self.method == BlockMethod::Hqq {
                return Err(UnsupportedSetting::MixedHqq);
            }
        }
        if self.method == BlockMethod::KQuant && self.is_symmetric() {
            return Err(UnsupportedSetting::SymmetricKQuant);
        }
        if self.embeddings && self.form != BlockForm::MatMulNBits {
            return Err(UnsupportedSetting::Embeddings);
        }
        if self.activations == FloatActivations::Float16 && self.form != BlockForm::MatMulNBits {
            return Err(UnsupportedSetting::HalfActivations);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_that_compute_zero_points_are_asymmetric_by_default() {
        for (method, symmetric) in [
            (BlockMethod::Rtn, true),
            (BlockMethod::Hqq, false),
            (BlockMethod::KQuant, false),
            (BlockMethod::Search, true),
            (BlockMethod::Gptq, true),
            (BlockMethod::Awq, true),
        ] {
            let settings = BlockSettings {
                method,
                ..BlockSettings::default()
            };
            assert_eq!(settings.is_symmetric(), symmetric);
            settings.check().unwrap();
        }
    }

    #[test]
    fn k_quant_takes_2_4_and_8_bits_and_is_never_symmetric() {
        let settings = |text: &str| serde_json::from_str::<BlockSettings>(text).unwrap();
        for bits in [2, 4, 8] {
            let text = format!(r#"{{ "method": "k_quant", "bits": {bits} }}"#);
            settings(&text).check().unwrap();
        }
        let symmetric = settings(r#"{ "method": "k_quant", "symmetric": true }"#);
        let error = symmetric.check().unwrap_err().to_string();
        assert!(error.contains("never symmetric"), "{error}");
    }
}
