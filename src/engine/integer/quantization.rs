//! Scale and zero point of eight-bit integers, and the one form integers have inside a region.
//!
//! ONNX has `real = (integer - zero_point) * scale` for unsigned and for signed integers. Inside a region
//! all are unsigned: a signed integer has its top bit flipped, which adds 128, and so does its zero point.
//! Differences, and with them the reals, stay what they were.

use octet_kernels::int8::Grid;

/// What the top bit of a signed integer is flipped with.
pub(super) const SIGN: u8 = 0x80;

/// Scale and zero point of a tensor, in the unsigned form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantization {
    /// The real value of one step.
    pub scale: f32,
    /// The integer that stands for zero, signed or not.
    pub zero_point: u8,
    /// Whether the integers are signed outside the region.
    pub signed: bool,
}

impl Quantization {
    /// The real that an integer stands for, computed as DequantizeLinear computes it.
    pub(super) fn real(&self, integer: u8) -> f32 {
        f32::from(i16::from(integer) - i16::from(self.zero_point)) * self.scale
    }

    /// The integer of a real, computed as QuantizeLinear computes it; what is no number becomes the zero
    /// point (ONNX doesn't say, ONNX Runtime makes it the least integer).
    pub(super) fn integer(&self, real: f32) -> u8 {
        let steps = (real / self.scale).round_ties_even() + f32::from(self.zero_point);
        if steps.is_nan() {
            return self.zero_point;
        }
        steps.clamp(0.0, 255.0) as u8
    }

    /// Whether the same integers stand for the same reals.
    pub(super) fn is_same(&self, other: &Quantization) -> bool {
        self.scale == other.scale && self.zero_point == other.zero_point
    }

    /// The integers in `to` of all 256 integers of `self`; `None` where they are what they were.
    pub(super) fn table_to(&self, to: &Quantization) -> Option<Box<[u8; 256]>> {
        if self.is_same(to) {
            return None;
        }
        let mut table = Box::new([0; 256]);
        for (integer, entry) in (0..=255u8).zip(table.iter_mut()) {
            *entry = to.integer(self.real(integer));
        }
        Some(table)
    }

    /// The name of the integers' type, for a person.
    pub(super) fn type_name(&self) -> &'static str {
        if self.signed { "int8" } else { "uint8" }
    }
}

/// What the top bit of a signed integer of 16 bits is flipped with.
const WIDE_SIGN: u16 = 0x8000;

/// Scale and zero point of 16-bit integers in the unsigned form. Inside a region their reals stand for them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wide {
    /// The reals there are.
    pub grid: Grid,
    /// Whether the integers are signed outside the region.
    pub signed: bool,
}

impl Wide {
    /// All integers of a scale and the zero point that the file has.
    pub(super) fn of(scale: f32, zero_point: i64, signed: bool) -> Wide {
        let flip = if signed { WIDE_SIGN } else { 0 };
        let grid = Grid {
            scale,
            zero_point: zero_point as u16 ^ flip,
            low: 0,
            high: u16::MAX,
        };
        Wide { grid, signed }
    }

    /// With a Relu or Clip between these reals: rounding keeps order, so clamping before it and after it are the same.
    pub(super) fn between(self, low: f32, high: f32) -> Wide {
        let (low, high) = (self.grid.integer(low), self.grid.integer(high));
        let grid = Grid {
            low,
            high: high.max(low),
            ..self.grid
        };
        Wide { grid, ..self }
    }

    /// The name of the integers' type, for a person.
    pub(super) fn type_name(&self) -> &'static str {
        if self.signed { "int16" } else { "uint16" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_reals_are_each_others_inverse() {
        let quantization = Quantization {
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
        let quantization = Quantization {
            scale: 1.0,
            zero_point: 10,
            signed: false,
        };
        let found = [0.5, 1.5, 2.5, -0.5].map(|real| quantization.integer(real));
        assert_eq!(found, [10, 12, 12, 10]);
    }
}
