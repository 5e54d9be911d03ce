//! The enumerations of the settings document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use octet_onnx::schema::DataType;

/// An integer type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
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
    /// The type in ONNX.
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

    /// Bits of one integer.
    pub fn bits(self) -> usize {
        match self {
            ElementType::U4 | ElementType::I4 => 4,
            ElementType::U8 | ElementType::I8 => 8,
            ElementType::U16 | ElementType::I16 => 16,
        }
    }

    /// The type of 4, 8 or 16 bits with the same sign; `None` for other numbers of bits.
    pub fn with_bits(self, bits: usize) -> Option<ElementType> {
        Some(match (bits, self.is_signed()) {
            (4, false) => ElementType::U4,
            (4, true) => ElementType::I4,
            (8, false) => ElementType::U8,
            (8, true) => ElementType::I8,
            (16, _) => self.with_16_bits(),
            _ => return None,
        })
    }

    /// The type of 16 bits with the same sign.
    pub fn with_16_bits(self) -> ElementType {
        if self.is_signed() {
            ElementType::I16
        } else {
            ElementType::U16
        }
    }

    /// True for types with negative integers.
    pub fn is_signed(self) -> bool {
        matches!(self, ElementType::I8 | ElementType::I16 | ElementType::I4)
    }
}

/// The quantization scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Weights and activations, with ranges from calibration samples.
    #[default]
    Static,
    /// Weights in the file; activations at each inference. Needs no samples.
    Dynamic,
    /// Weights only, in 8 bits. Needs no samples.
    Weights,
    /// Weights of MatMul and Gemm in blocks of 2, 4 or 8 bits.
    Blocks,
    /// Half-precision floats; no integers. Samples are optional: they show too large values.
    Float16,
}

impl Scheme {
    /// The name of the step in the profile.
    pub fn step(self) -> &'static str {
        match self {
            Scheme::Static => "Quantization (Static)",
            Scheme::Dynamic => "Quantization (Dynamic)",
            Scheme::Weights | Scheme::Blocks => "Quantization (Weights)",
            Scheme::Float16 => "Conversion (Float16)",
        }
    }
}

/// The form of the quantized file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// QuantizeLinear and DequantizeLinear around float operators.
    #[default]
    Qdq,
    /// Integer operators such as QLinearConv.
    QOperator,
    /// The values of the quantized model, with weights stored as floats.
    Simulated,
}

/// The rounding of weights in the static scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Rounding {
    /// Each weight to its nearest integer.
    #[default]
    Nearest,
    /// GPTQ: later weights of an output correct the error of earlier ones. Needs an extra pass.
    Gptq,
    /// GPTQ for inputs that are quantized themselves, with searched scales and fitted gains and biases.
    /// Takes the samples again. A layer changes only if samples that did not choose gain.
    #[serde(rename = "closed-form")]
    ClosedForm,
}

/// Treatment of activations that were beyond ±65504 on the samples, in half precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Overflow {
    /// Their nodes stay float32.
    #[default]
    Float32,
    /// They become ±65504 by a Clip node. Their nodes are halves, and the results may change.
    Clip,
    /// They are stored divided by a power of two that linear neighbours take up. The results stay. Their
    /// nodes stay float32 where no neighbour can take it.
    Rescale,
}

/// The operators that are quantized.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Operators {
    /// All operators that have an integer form.
    #[default]
    All,
    /// The default list of ONNX Runtime's `quantize_static`.
    OnnxRuntime,
    /// These operator types.
    #[serde(untagged)]
    Only(Vec<String>),
}
