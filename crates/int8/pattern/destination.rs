//! Destination of a float node's result: a QuantizeLinear, possibly behind a Relu or Clip, or float
//! readers.

use crate::float_reason::FloatReason;
use crate::quantization::{Int8Quantization, Int16Quantization};

/// Destination of a float node's result.
pub(crate) enum Destination {
    /// An eight-bit QuantizeLinear, possibly behind a Relu or Clip.
    Int8 {
        output: String,
        quantization: Int8Quantization,
        bounds: [u8; 2],
        nodes: Vec<usize>,
    },
    /// A 16-bit QuantizeLinear, possibly behind a Relu or Clip.
    Int16 {
        output: String,
        int16: Int16Quantization,
        nodes: Vec<usize>,
    },
    /// Float readers, with the reason why the result is not quantized.
    Floats(FloatReason),
}

impl Destination {
    /// Parameters of eight-bit results.
    pub(crate) fn quantization(&self) -> Option<Int8Quantization> {
        match self {
            Destination::Int8 { quantization, .. } => Some(*quantization),
            _ => None,
        }
    }
}
