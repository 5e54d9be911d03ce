//! Tensors of 16 bits, as the reals that their integers stand for, and products of them on bytes.
//!
//! An integer of 16 bits is `q = 256 · high + low`, and so is its zero point: `q - z = 256 · (high - z_high) + (low - z_low)`.
//! A product with weights is therefore two products of bytes, each with a zero point of its own, of which the first
//! counts 256 times: `Σ (q - z) · w = 256 · Σ (high - z_high) · w + Σ (low - z_low) · w`. One of two such values is four.
//!
//! Everything else is computed with the reals. They are exact: below 2²⁴ an f32 holds every integer, and dividing
//! a real by its scale again gives its integer to a hundredth (65535 · 2⁻²³).

use super::convert::Target;
use super::error::{Error, equal};

/// The reals that integers of 16 bits stand for: `scale · (q - zero_point)`, `q` from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// One step.
    pub scale: f32,
    /// What stands for zero, of the unsigned form.
    pub zero_point: u16,
    /// The least integer there is.
    pub low: u16,
    /// The greatest.
    pub high: u16,
}

/// Elements computed at once.
pub(super) const RUN: usize = 128;

/// 1.5 · 2²³: from half of it to a third more an f32 holds integers only, and its bits count them.
const INTEGERS_ONLY: f32 = 12_582_912.0;

impl Grid {
    /// Steps from zero of a real, counted from [`INTEGERS_ONLY`] on: divided by the scale, kept between the ends, rounded
    /// half to even. NaN counts as zero.
    ///
    /// Adding that number rounds. It comes after the ends, which are integers, so that the sum can't leave the range where
    /// it does. (A rounding instruction is a call in some builds, and a cast to an integer is not done in vectors.)
    #[inline(always)]
    fn counted(self, value: f32) -> f32 {
        let zero = f32::from(self.zero_point);
        let (low, high) = (f32::from(self.low) - zero, f32::from(self.high) - zero);
        let steps = value / self.scale;
        let steps = if steps.is_nan() { 0.0 } else { steps };
        let steps = if steps < low { low } else { steps };
        let steps = if steps > high { high } else { steps };
        steps + INTEGERS_ONLY
    }

    /// The real nearest to a value.
    #[inline(always)]
    pub fn value(self, value: f32) -> f32 {
        (self.counted(value) - INTEGERS_ONLY) * self.scale
    }

    /// The integer of a value.
    #[inline(always)]
    pub fn integer(self, value: f32) -> u16 {
        let steps = self
            .counted(value)
            .to_bits()
            .wrapping_sub(INTEGERS_ONLY.to_bits());
        steps.wrapping_add(u32::from(self.zero_point)) as u16
    }

    /// The real that an integer stands for.
    #[inline]
    pub fn real(self, integer: u16) -> f32 {
        (f32::from(integer) - f32::from(self.zero_point)) * self.scale
    }

    /// The zero point of a plane.
    pub fn zero_of(self, plane: Plane) -> u8 {
        let [low, high] = self.zero_point.to_le_bytes();
        match plane {
            Plane::High => high,
            Plane::Low => low,
        }
    }
}

/// One of the two bytes of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    /// The one that counts 256 times.
    High,
    /// The other.
    Low,
}

impl Plane {
    /// How much a step of it counts.
    pub fn weight(self) -> f32 {
        match self {
            Plane::High => 256.0,
            Plane::Low => 1.0,
        }
    }
}

/// Brings values to a grid.
pub fn snap(values: &[f32], to: Grid, output: &mut [f32]) -> Result<(), Error> {
    equal("the output", values.len(), output.len())?;
    for (output, &value) in output.iter_mut().zip(values) {
        *output = to.value(value);
    }
    Ok(())
}

/// The same where they are.
pub fn snap_in_place(values: &mut [f32], to: Grid) {
    for value in values {
        *value = to.value(*value);
    }
}

/// One byte of the integer of each value.
pub fn plane(values: &[f32], of: Grid, which: Plane, output: &mut [u8]) -> Result<(), Error> {
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

/// What the products of both planes make together, in steps of the output, as bytes.
pub fn join_bytes(high: &[f32], low: &[f32], to: Target, output: &mut [u8]) -> Result<(), Error> {
    equal("the output", high.len(), output.len())?;
    equal("the output", low.len(), output.len())?;
    for (output, (high, low)) in output.iter_mut().zip(high.iter().zip(low)) {
        *output = to.byte(high + low);
    }
    Ok(())
}

/// The same as reals, brought to a grid if there is one.
pub fn join(high: &[f32], low: &[f32], to: Option<Grid>, output: &mut [f32]) -> Result<(), Error> {
    equal("the output", high.len(), output.len())?;
    equal("the output", low.len(), output.len())?;
    let sums = output.iter_mut().zip(high.iter().zip(low));
    match to {
        Some(to) => sums.for_each(|(output, (high, low))| *output = to.value(high + low)),
        None => sums.for_each(|(output, (high, low))| *output = high + low),
    }
    Ok(())
}

/// Sums times a factor each, added up: of products of two values of 16 bits there are four.
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

    const GRID: Grid = Grid {
        scale: 0.001,
        zero_point: 20_000,
        low: 0,
        high: u16::MAX,
    };

    #[test]
    fn the_real_of_every_integer_is_that_integer_again_and_its_bytes_make_it() {
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
    fn sums_of_four_products_are_that_of_all_digits() {
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
