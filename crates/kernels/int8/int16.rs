//! 16-bit tensors as the reals that they represent, and their products by byte kernels.
//!
//! A 16-bit integer is `q = 256 · high + low`, and so is its zero point:
//! `q - z = 256 · (high - z_high) + (low - z_low)`. A product with weights is thus two byte
//! products with zero points of their own: `Σ (q - z) · w = 256 · Σ (high - z_high) · w + Σ (low -
//! z_low) · w`. A product of two 16-bit values is four.
//!
//! Other operators compute with the reals. These are exact, since an f32 holds every integer below
//! 2²⁴. Dividing a real by its scale returns its integer with an error below 0.01 (65535 · 2⁻²³).

use super::error::{Error, equal};
use super::scale::Target;

/// Quantization grid of a 16-bit tensor: `scale · (q - zero_point)`, with `q` from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Int16Grid {
    /// The scale: the distance between neighbouring reals.
    pub scale: f32,
    /// Zero point in the unsigned representation.
    pub zero_point: u16,
    /// Minimum integer.
    pub low: u16,
    /// Maximum integer.
    pub high: u16,
}

/// Elements per inner loop.
pub(super) const RUN: usize = 128;

/// 1.5 · 2²³. Between 2²³ and 2²⁴ every f32 is an integer, and consecutive integers have
/// consecutive bits.
const ROUNDING_MAGIC: f32 = 12_582_912.0;

impl Int16Grid {
    /// Returns the steps of a real from zero, plus [`ROUNDING_MAGIC`]: divided by the scale,
    /// clamped, rounded half to even. NaN counts as zero.
    ///
    /// The addition rounds. It follows the clamp, whose bounds are integers, so the sum stays in
    /// the exact interval. (A rounding instruction is a call in some builds, and casts to integers
    /// do not vectorize.)
    #[inline(always)]
    fn magic_steps(self, value: f32) -> f32 {
        let zero = f32::from(self.zero_point);
        let (low, high) = (f32::from(self.low) - zero, f32::from(self.high) - zero);
        let steps = value / self.scale;
        let steps = if steps.is_nan() { 0.0 } else { steps };
        let steps = if steps < low { low } else { steps };
        let steps = if steps > high { high } else { steps };
        steps + ROUNDING_MAGIC
    }

    /// Rounds a value to the nearest real of the grid.
    #[inline(always)]
    pub fn value(self, value: f32) -> f32 {
        (self.magic_steps(value) - ROUNDING_MAGIC) * self.scale
    }

    /// Quantizes a value.
    #[inline(always)]
    pub fn integer(self, value: f32) -> u16 {
        let steps = self
            .magic_steps(value)
            .to_bits()
            .wrapping_sub(ROUNDING_MAGIC.to_bits());
        steps.wrapping_add(u32::from(self.zero_point)) as u16
    }

    /// Dequantizes an integer.
    #[inline]
    pub fn real(self, integer: u16) -> f32 {
        (f32::from(integer) - f32::from(self.zero_point)) * self.scale
    }

    /// Returns the zero point of a byte plane.
    pub fn zero_of(self, plane: Plane) -> u8 {
        let [low, high] = self.zero_point.to_le_bytes();
        match plane {
            Plane::High => high,
            Plane::Low => low,
        }
    }
}

/// One of the two bytes of a 16-bit integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    /// The high byte, with weight 256.
    High,
    /// The low byte, with weight 1.
    Low,
}

impl Plane {
    /// Weight of one step of this byte.
    pub fn weight(self) -> f32 {
        match self {
            Plane::High => 256.0,
            Plane::Low => 1.0,
        }
    }
}

/// Rounds values to a grid.
pub fn snap(values: &[f32], to: Int16Grid, output: &mut [f32]) -> Result<(), Error> {
    equal("the output", values.len(), output.len())?;
    for (output, &value) in output.iter_mut().zip(values) {
        *output = to.value(value);
    }
    Ok(())
}

/// Rounds values to a grid in place.
pub fn snap_in_place(values: &mut [f32], to: Int16Grid) {
    for value in values {
        *value = to.value(*value);
    }
}

/// Extracts one byte of each value's integer.
pub fn plane(values: &[f32], of: Int16Grid, which: Plane, output: &mut [u8]) -> Result<(), Error> {
    equal("the output", values.len(), output.len())?;
    let shift = match which {
        Plane::High => 8,
        Plane::Low => 0,
    };
    for (output, &value) in output.iter_mut().zip(values) {
        *output = (of.integer(value) >> shift) as u8;
    }
    Ok(())
}

/// Adds the products of both planes, in steps of the output, and converts them to bytes.
pub fn join_bytes(high: &[f32], low: &[f32], to: Target, output: &mut [u8]) -> Result<(), Error> {
    equal("the output", high.len(), output.len())?;
    equal("the output", low.len(), output.len())?;
    for (output, (high, low)) in output.iter_mut().zip(high.iter().zip(low)) {
        *output = to.byte(high + low);
    }
    Ok(())
}

/// Adds the products of both planes, rounded to a grid if one is given.
pub fn join(
    high: &[f32],
    low: &[f32],
    to: Option<Int16Grid>,
    output: &mut [f32],
) -> Result<(), Error> {
    equal("the output", high.len(), output.len())?;
    equal("the output", low.len(), output.len())?;
    let sums = output.iter_mut().zip(high.iter().zip(low));
    match to {
        Some(to) => sums.for_each(|(output, (high, low))| *output = to.value(high + low)),
        None => sums.for_each(|(output, (high, low))| *output = high + low),
    }
    Ok(())
}

/// Adds accumulators, each times a factor. A product of two 16-bit tensors has four.
pub fn join_sums(parts: &[(&[i32], f64)], output: &mut [f32]) -> Result<(), Error> {
    for (sums, _) in parts {
        equal("the output", sums.len(), output.len())?;
    }
    let mut reals = [0.0f64; RUN];
    for (run, output) in output.chunks_mut(RUN).enumerate() {
        reals.fill(0.0);
        for (sums, factor) in parts {
            for (real, &sum) in reals.iter_mut().zip(&sums[run * RUN..]) {
                *real += f64::from(sum) * factor;
            }
        }
        for (output, &real) in output.iter_mut().zip(&reals) {
            *output = real as f32;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: Int16Grid = Int16Grid {
        scale: 0.001,
        zero_point: 20_000,
        low: 0,
        high: u16::MAX,
    };

    #[test]
    fn every_integer_survives_dequantization_and_byte_planes() {
        let reals: Vec<f32> = (0..=u16::MAX).map(|q| GRID.real(q)).collect();
        assert_eq!(reals[20_000], 0.0);
        assert_eq!(reals[30_000], 10_000.0 * GRID.scale);
        let mut high = vec![0; reals.len()];
        let mut low = vec![0; reals.len()];
        plane(&reals, GRID, Plane::High, &mut high).unwrap();
        plane(&reals, GRID, Plane::Low, &mut low).unwrap();
        for (q, &real) in (0..=u16::MAX).zip(&reals) {
            assert_eq!(GRID.integer(real), q);
            assert_eq!(GRID.value(real), real);
            assert_eq!([low[usize::from(q)], high[usize::from(q)]], q.to_le_bytes());
        }
        assert_eq!(GRID.value(f32::NAN), 0.0);
        assert_eq!(GRID.integer(f32::INFINITY), u16::MAX);
        assert_eq!(GRID.integer(f32::NEG_INFINITY), 0);
    }

    #[test]
    fn four_byte_products_give_the_16_bit_product() {
        let [a, b] = [40_000u16, 513].map(u16::to_le_bytes);
        let mut output = [0.0; 300];
        let parts = [(1, 1, 65_536.0), (1, 0, 256.0), (0, 1, 256.0), (0, 0, 1.0)];
        let sums = parts.map(|(i, j, factor)| {
            let product = i32::from(a[i]) * i32::from(b[j]);
            (vec![product; 300], factor)
        });
        let parts = sums.each_ref().map(|(sums, factor)| (&sums[..], *factor));
        join_sums(&parts, &mut output).unwrap();
        assert_eq!(output, [40_000.0 * 513.0; 300]);
        assert!(join_sums(&parts, &mut output[1..]).is_err());
    }
}
