//! The grid of one block from its minimum and maximum, and its integers.
//!
//! real = scale · (integer − zero point), with integers from 0 to 2^bits − 1. The f32 arithmetic
//! and its order are those of ONNX Runtime's `MlasQuantizeBlockwise`. Ties round away from zero.

/// Scale and zero point of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockGrid {
    /// Real value of one integer step.
    pub scale: f32,
    /// An integer, except from the method HQQ.
    pub zero_point: f32,
}

/// The number of integers and the position of the zero point.
#[derive(Clone, Copy, Debug)]
pub struct Levels {
    /// Bits of an integer: 2, 4 or 8.
    pub bits: u8,
    /// True if the zero point is the middle of the integer range.
    pub symmetric: bool,
}

impl Levels {
    /// The largest integer.
    pub fn highest(self) -> u8 {
        u8::MAX >> (8 - self.bits)
    }

    /// The integer in the middle.
    pub fn middle(self) -> u8 {
        1 << (self.bits - 1)
    }
}

/// Scale and zero point from minimum and maximum.
pub fn from_ends(values: &[f32], levels: Levels) -> BlockGrid {
    from_ends_rounded(values, levels, |scale| scale)
}

/// Scale and zero point from minimum and maximum, with a rounded scale. Like in ONNX Runtime, the
/// zero point is computed from the exact scale.
#[inline(always)]
pub(super) fn from_ends_rounded(
    values: &[f32],
    levels: Levels,
    rounded: impl Fn(f32) -> f32,
) -> BlockGrid {
    from_low_and_high(ends(values), levels, rounded)
}

/// Like [`from_ends_rounded`], from the minimum and the maximum themselves.
#[inline(always)]
pub(super) fn from_low_and_high(
    [low, high]: [f32; 2],
    levels: Levels,
    rounded: impl Fn(f32) -> f32,
) -> BlockGrid {
    if levels.symmetric {
        // The end with the larger magnitude gets the lowest integer, because the negative side has
        // one integer more.
        let end = if high.abs() > low.abs() { high } else { low };
        return BlockGrid {
            scale: rounded(end / -f32::from(levels.middle())),
            zero_point: levels.middle().into(),
        };
    }
    let (low, high) = (low.min(0.0), high.max(0.0));
    let highest = f32::from(levels.highest());
    let scale = (high - low) / highest;
    let zero_point = if scale == 0.0 { low } else { 0.0 - low / scale };
    BlockGrid {
        scale: rounded(scale),
        zero_point: zero_point.clamp(0.0, highest).round(),
    }
}

/// Minimum and maximum of finite numbers. Of zeros they have the sign of the first.
#[inline(always)]
fn ends(values: &[f32]) -> [f32; 2] {
    // Eight in turn, so that the loop is vectorized.
    let (mut low, mut high) = ([f32::INFINITY; 8], [f32::NEG_INFINITY; 8]);
    let (chunks, rest) = values.as_chunks::<8>();
    for chunk in chunks {
        for lane in 0..8 {
            low[lane] = least(low[lane], chunk[lane]);
            high[lane] = greatest(high[lane], chunk[lane]);
        }
    }
    for &value in rest {
        low[0] = least(low[0], value);
        high[0] = greatest(high[0], value);
    }
    for half in [4, 2, 1] {
        for lane in 0..half {
            low[lane] = least(low[lane], low[lane + half]);
            high[lane] = greatest(high[lane], high[lane + half]);
        }
    }
    match (low[0] == 0.0 && high[0] == 0.0, values.first()) {
        (true, Some(&first)) => [first; 2],
        _ => [low[0], high[0]],
    }
}

/// The lesser number; of equal ones, the first. A single instruction.
#[inline(always)]
pub(super) fn least(before: f32, value: f32) -> f32 {
    if value < before { value } else { before }
}

/// The greater number; of equal ones, the first.
#[inline(always)]
pub(super) fn greatest(before: f32, value: f32) -> f32 {
    if value > before { value } else { before }
}

impl BlockGrid {
    /// The factor from a real number to integers.
    #[inline(always)]
    pub(super) fn inverse(self) -> f32 {
        if self.scale == 0.0 {
            0.0
        } else {
            1.0 / self.scale
        }
    }

    /// The integer for a real number.
    pub fn integer(self, value: f32, levels: Levels) -> u8 {
        nearest(
            value * self.inverse() + self.zero_point,
            f32::from(levels.highest()),
        ) as u8
    }

    /// The integers for real numbers.
    #[inline(always)]
    pub(super) fn integers(self, values: &[f32], levels: Levels, to: &mut [u8]) {
        let inverse = self.inverse();
        let highest = f32::from(levels.highest());
        for (to, &value) in to.iter_mut().zip(values) {
            *to = nearest(value * inverse + self.zero_point, highest) as u8;
        }
    }

    /// The real number for an integer.
    pub fn real(self, integer: u8) -> f32 {
        self.scale * (f32::from(integer) - self.zero_point)
    }
}

/// A float of this size has no fraction, so a sum with it is rounded; ties go to the even integer.
const UNIT: f32 = 8_388_608.0;

/// The value, clamped to 0 and `highest`. NaN becomes 0.
#[inline(always)]
fn within(value: f32, highest: f32) -> f32 {
    let value = if value > 0.0 { value } else { 0.0 };
    if value < highest { value } else { highest }
}

/// The nearest integer from 0 to `highest`; ties round up, away from zero. NaN becomes 0.
#[inline(always)]
pub(super) fn nearest(value: f32, highest: f32) -> u32 {
    let value = within(value, highest);
    // The sum's lowest byte is the integer.
    let sum = value + UNIT;
    // The difference is exact.
    let up = value - (sum - UNIT) >= 0.5;
    (sum.to_bits() & 0xff) + u32::from(up)
}

/// Like [`nearest`], as a float.
#[inline(always)]
pub(super) fn nearest_float(value: f32, highest: f32) -> f32 {
    let value = within(value, highest);
    let even = (value + UNIT) - UNIT;
    // The difference is exact.
    let up = if value - even >= 0.5 { 1.0 } else { 0.0 };
    even + up
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_and_integers_are_those_of_onnx_runtime() {
        // The expected values come from `quantize_matmul_4bits` of ONNX Runtime 1.31.1.
        let values = [0.0, 0.5, -1.5, 3.0, 1.1, -0.2];
        let levels = |symmetric| Levels { bits: 4, symmetric };
        let integers = |grid: BlockGrid, levels| values.map(|v| grid.integer(v, levels));

        let grid = from_ends(&values, levels(false));
        assert_eq!((grid.scale, grid.zero_point), (0.3, 5.0));
        assert_eq!(integers(grid, levels(false)), [5, 7, 0, 15, 9, 4]);

        let grid = from_ends(&values, levels(true));
        assert_eq!((grid.scale, grid.zero_point), (-0.375, 8.0));
        assert_eq!(integers(grid, levels(true)), [8, 7, 12, 0, 5, 9]);
    }

    #[test]
    fn a_block_of_zeros_comes_back_as_zeros() {
        for (bits, symmetric) in [(2, false), (4, true), (8, false), (8, true)] {
            let levels = Levels { bits, symmetric };
            let grid = from_ends(&[0.0; 16], levels);
            assert_eq!(grid.real(grid.integer(0.0, levels)), 0.0);
        }
    }
}
