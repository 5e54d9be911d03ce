//! Quantization parameters, and the unsigned representation inside regions.
//!
//! ONNX defines `real = (integer - zero_point) * scale` for unsigned and signed integers. Inside a
//! region all integers are unsigned. A signed integer and its zero point both have their top bit
//! flipped, which adds 128. Their difference, and so the real value, does not change.

use octet_kernels::int8::Grid;

/// Mask that flips the top bit of a signed byte.
pub(super) const SIGN: u8 = 0x80;

/// Scale and zero point of an eight-bit tensor, in the unsigned representation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Int8Quantization {
    /// Real value of one integer step.
    pub scale: f32,
    /// Unsigned integer that represents zero.
    pub zero_point: u8,
    /// True if the integers are signed outside the region.
    pub signed: bool,
}

impl Int8Quantization {
    /// Dequantizes an integer exactly as DequantizeLinear does.
    pub(super) fn real(&self, integer: u8) -> f32 {
        f32::from(i16::from(integer) - i16::from(self.zero_point)) * self.scale
    }

    /// Quantizes a real exactly as QuantizeLinear does. NaN becomes the zero point: ONNX leaves it
    /// open, ONNX Runtime gives the minimum integer.
    pub(super) fn integer(&self, real: f32) -> u8 {
        let steps = (real / self.scale).round_ties_even() + f32::from(self.zero_point);
        if steps.is_nan() {
            return self.zero_point;
        }
        steps.clamp(0.0, 255.0) as u8
    }

    /// True if both map the same integers to the same reals.
    pub(super) fn is_same(&self, other: &Int8Quantization) -> bool {
        self.scale == other.scale && self.zero_point == other.zero_point
    }

    /// Requantization table from `self` to `to` for all 256 integers; `None` if it is the identity.
    pub(super) fn table_to(&self, to: &Int8Quantization) -> Option<Box<[u8; 256]>> {
        if self.is_same(to) {
            return None;
        }
        let mut table = Box::new([0; 256]);
        for (integer, entry) in (0..=255u8).zip(table.iter_mut()) {
            *entry = to.integer(self.real(integer));
        }
        Some(table)
    }

    /// Display name of the integer type.
    pub(super) fn type_name(&self) -> &'static str {
        if self.signed { "int8" } else { "uint8" }
    }
}

/// Mask that flips the top bit of a signed 16-bit integer.
const WIDE_SIGN: u16 = 0x8000;

/// Scale and zero point of a 16-bit tensor, in the unsigned representation. Regions compute with
/// the reals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Int16Quantization {
    /// Reals that the integers can represent.
    pub grid: Grid,
    /// True if the integers are signed outside the region.
    pub signed: bool,
}

impl Int16Quantization {
    /// Parameters from the model's scale and zero point, with the full integer range.
    pub(super) fn new(scale: f32, zero_point: i64, signed: bool) -> Int16Quantization {
        let flip = if signed { WIDE_SIGN } else { 0 };
        let grid = Grid {
            scale,
            zero_point: zero_point as u16 ^ flip,
            low: 0,
            high: u16::MAX,
        };
        Int16Quantization { grid, signed }
    }

    /// Fuses a Relu or Clip with these bounds. Rounding is monotonic, so clamping before or after
    /// it is the same.
    pub(super) fn between(self, low: f32, high: f32) -> Int16Quantization {
        let (low, high) = (self.grid.integer(low), self.grid.integer(high));
        let grid = Grid {
            low,
            high: high.max(low),
            ..self.grid
        };
        Int16Quantization { grid, ..self }
    }

    /// Display name of the integer type.
    pub(super) fn type_name(&self) -> &'static str {
        if self.signed { "int16" } else { "uint16" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_reals_are_each_others_inverse() {
        let quantization = Int8Quantization {
            scale: 0.05,
            zero_point: 131,
            signed: true,
        };
        for integer in 0..=255 {
            assert_eq!(quantization.integer(quantization.real(integer)), integer);
        }
        assert_eq!(quantization.integer(f32::INFINITY), 255);
        assert_eq!(quantization.integer(f32::NEG_INFINITY), 0);
        assert_eq!(quantization.integer(f32::NAN), 131);
    }

    #[test]
    fn ties_go_to_the_even_step() {
        let quantization = Int8Quantization {
            scale: 1.0,
            zero_point: 10,
            signed: false,
        };
        let found = [0.5, 1.5, 2.5, -0.5].map(|real| quantization.integer(real));
        assert_eq!(found, [10, 12, 12, 10]);
    }
}
