//! The grid of one block from its minimum and maximum, and its integers.
//!
//! real = scale · (integer − zero point), with integers from 0 to 2^bits − 1. The f32 arithmetic
//! and its order are those of ONNX Runtime's `MlasQuantizeBlockwise`. Ties round away from zero.

use octet_onnx::schema::DataType;

/// Scale and zero point of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BlockGrid {
    pub(crate) scale: f32,
    /// An integer, except from [`super::half_quadratic`].
    pub(crate) zero_point: f32,
}

/// The number of integers and the position of the zero point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Levels {
    pub(crate) bits: u8,
    /// True if the zero point is the middle of the integer range.
    pub(crate) symmetric: bool,
}

impl Levels {
    /// The largest integer.
    pub(super) fn highest(self) -> u8 {
        u8::MAX >> (8 - self.bits)
    }

    /// The integer in the middle.
    pub(crate) fn middle(self) -> u8 {
        1 << (self.bits - 1)
    }
}

/// Scale and zero point from minimum and maximum.
pub(super) fn from_ends(values: &[f32], levels: Levels) -> BlockGrid {
    from_ends_in(values, levels, DataType::Float)
}

/// Scale and zero point from minimum and maximum, for a scale of this type. Like ONNX
/// Runtime, it rounds a float16 scale before the integers are computed, but not before the zero
/// point is; and it computes the integers of bfloat16 weights from the exact scale.
pub(super) fn from_ends_in(values: &[f32], levels: Levels, scales: DataType) -> BlockGrid {
    let rounded = |scale: f32| match scales {
        DataType::Float16 => scales.rounded(scale),
        _ => scale,
    };
    let low = values.iter().copied().fold(f32::INFINITY, f32::min);
    let high = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
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

impl BlockGrid {
    /// The integer for a real number.
    pub(crate) fn integer(self, value: f32, levels: Levels) -> u8 {
        let inverse = if self.scale == 0.0 {
            0.0
        } else {
            1.0 / self.scale
        };
        let integer = (value * inverse + self.zero_point).round();
        integer.clamp(0.0, f32::from(levels.highest())) as u8
    }

    /// The real number for an integer.
    pub(super) fn real(self, integer: u8) -> f32 {
        self.scale * (f32::from(integer) - self.zero_point)
    }
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
