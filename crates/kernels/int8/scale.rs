//! Scales and zero points of u8 tensors: the conversion of one value.

use super::output::requantize;

/// Scale and zero point of a u8 tensor: `value = scale · (byte - zero_point)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The scale: the distance between neighbouring values.
    pub scale: f32,
    /// The byte that represents zero.
    pub zero_point: u8,
}

impl Scale {
    /// Quantizes a value as ONNX QuantizeLinear does: `value / scale`, rounded half to even, plus
    /// the zero point, saturated. NaN gives the zero point.
    #[inline]
    pub fn byte(self, value: f32) -> u8 {
        Target::whole(self.zero_point).byte(value / self.scale)
    }

    /// Dequantizes a byte as ONNX DequantizeLinear does.
    #[inline]
    pub fn value(self, byte: u8) -> f32 {
        (i32::from(byte) - i32::from(self.zero_point)) as f32 * self.scale
    }
}

/// Zero point of an output and the range that a fused Relu or Clip leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The byte that represents zero.
    pub zero_point: u8,
    /// Minimum output byte.
    pub low: u8,
    /// Maximum output byte.
    pub high: u8,
}

impl Target {
    /// The full byte range.
    pub fn whole(zero_point: u8) -> Target {
        Target {
            zero_point,
            low: 0,
            high: u8::MAX,
        }
    }

    /// Converts a value in steps of the output: rounded half to even, zero point added, clamped.
    /// NaN gives the zero point.
    #[inline]
    pub fn byte(self, steps: f32) -> u8 {
        let steps = if steps.is_nan() { 0.0 } else { steps };
        requantize(steps, self.zero_point, self.low, self.high)
    }
}
