//! Half-quadratic quantization (HQQ): a zero point that fits most numbers and ignores a few
//! outliers.
//!
//! After Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models" (2023). It
//! minimizes Σ |error|^p with p < 1, which tolerates large errors. Each round shrinks the errors;
//! those that remain count as outliers. It then sets the zero point to the mean that the other
//! numbers ask for. The zero point is fractional, and MatMulNBits takes it as a float.

use super::grid::{Levels, nearest_float};
use super::lanes::LaneGrids;
use crate::power::power;

const POWER: f32 = 0.7;
const ROUNDS: usize = 20;
/// The initial shrinkage parameter, and its growth per round.
const SHRINKAGE: f32 = 10.0;
const SHRINKAGE_GROWTH: f32 = 1.01;

/// Scales and zero points of blocks side by side, never worse than those from minimum and maximum,
/// `plain`.
#[inline(always)]
pub(super) fn grids<const L: usize>(
    rows: &[[f32; L]],
    plain: &LaneGrids<L>,
    levels: Levels,
) -> LaneGrids<L> {
    let mut best = *plain;
    let mut least = errors(rows, plain, levels);
    let mut moved = *plain;
    let mut shrinkage = SHRINKAGE;
    for _ in 0..ROUNDS {
        moved.zero_points = wanted_zero_points(rows, &moved, shrinkage, levels);
        shrinkage *= SHRINKAGE_GROWTH;
        let errors = errors(rows, &moved, levels);
        for lane in 0..L {
            if errors[lane] < least[lane] {
                least[lane] = errors[lane];
                best.zero_points[lane] = moved.zero_points[lane];
            }
        }
    }
    best
}

/// The mean of the zero points that the numbers ask for, each with a shrunk error.
#[inline(always)]
fn wanted_zero_points<const L: usize>(
    rows: &[[f32; L]],
    grids: &LaneGrids<L>,
    shrinkage: f32,
    levels: Levels,
) -> [f32; L] {
    let highest = f32::from(levels.highest());
    let mut sums = [0.0; L];
    for row in rows {
        for lane in 0..L {
            let (value, scale, zero) = (row[lane], grids.scales[lane], grids.zero_points[lane]);
            let integer = nearest_float(value / scale + zero, highest);
            let off = value - scale * (integer - zero);
            sums[lane] += integer - (value - shrunk(off, shrinkage)) / scale;
        }
    }
    sums.map(|sum| sum / rows.len() as f32)
}

/// The objective: Σ |error|^p.
#[inline(always)]
fn errors<const L: usize>(rows: &[[f32; L]], grids: &LaneGrids<L>, levels: Levels) -> [f32; L] {
    let highest = f32::from(levels.highest());
    let inverses = grids.inverses();
    let mut errors = [0.0; L];
    for row in rows {
        for lane in 0..L {
            let zero = grids.zero_points[lane];
            let integer = nearest_float(row[lane] * inverses[lane] + zero, highest);
            let off = row[lane] - grids.scales[lane] * (integer - zero);
            errors[lane] += power(off.abs(), POWER);
        }
    }
    errors
}

/// The generalized soft threshold for p < 1: moves an error towards zero, small ones to zero.
#[inline(always)]
fn shrunk(off: f32, shrinkage: f32) -> f32 {
    let size = off.abs();
    let shrunk = size - power(size + 1e-8, POWER - 1.0) / shrinkage;
    let shrunk = if shrunk > 0.0 { shrunk } else { 0.0 };
    shrunk.copysign(off)
}

#[cfg(test)]
mod tests {
    use super::super::grid::{BlockGrid, from_ends};
    use super::super::lanes::tests::gained;
    use super::*;

    fn error(block: &[f32], grid: BlockGrid, levels: Levels) -> f32 {
        let off = |value: f32| (value - grid.real(grid.integer(value, levels))).abs();
        block.iter().map(|&value| power(off(value), POWER)).sum()
    }

    /// The best zero point, one number after the other.
    fn reference(block: &[f32], levels: Levels) -> BlockGrid {
        let plain = from_ends(block, levels);
        let highest = f32::from(levels.highest());
        let (mut best, mut zero, mut shrinkage) = (plain, plain.zero_point, SHRINKAGE);
        for _ in 0..ROUNDS {
            let zero_points = block.iter().map(|&value| {
                let integer = (value / plain.scale + zero).round().clamp(0.0, highest);
                let off = value - plain.scale * (integer - zero);
                let shrunk =
                    (off.abs() - power(off.abs() + 1e-8, POWER - 1.0) / shrinkage).max(0.0);
                integer - (value - off.signum() * shrunk) / plain.scale
            });
            zero = zero_points.sum::<f32>() / block.len() as f32;
            shrinkage *= SHRINKAGE_GROWTH;
            let moved = BlockGrid {
                zero_point: zero,
                ..plain
            };
            if error(block, moved, levels) < error(block, best, levels) {
                best = moved;
            }
        }
        best
    }

    #[test]
    fn grids_are_those_of_the_reference() {
        let mut gained_blocks = 0;
        for bits in [2, 4, 8] {
            let levels = Levels {
                bits,
                symmetric: false,
            };
            gained_blocks += gained(levels, grids, reference, error);
        }
        assert!(
            gained_blocks > 75,
            "only {gained_blocks} of 150 blocks gained by another zero point"
        );
    }
}
