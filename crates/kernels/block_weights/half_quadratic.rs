//! Half-quadratic quantization (HQQ): a zero point that fits most numbers and ignores a few
//! outliers.
//!
//! After Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models" (2023). It
//! minimizes Σ |error|^p with p < 1, which tolerates large errors. Each round shrinks the errors;
//! those that remain count as outliers. It then sets the zero point to the mean that the other
//! numbers ask for. The zero point is fractional, and MatMulNBits takes it as a float.

use super::grid::{BlockGrid, Levels, from_ends};

const POWER: f32 = 0.7;
const ROUNDS: usize = 20;
/// The initial shrinkage parameter, and its growth per round.
const SHRINKAGE: f32 = 10.0;
const SHRINKAGE_GROWTH: f32 = 1.01;

/// Scale and zero point of a block; never worse than those from minimum and maximum.
pub(super) fn grid(values: &[f32], levels: Levels) -> BlockGrid {
    let plain = from_ends(values, levels);
    if plain.scale == 0.0 {
        return plain;
    }
    let highest = f32::from(levels.highest());
    let mut zero = plain.zero_point;
    let mut shrinkage = SHRINKAGE;
    let mut best = (error(values, plain, levels), plain);
    for _ in 0..ROUNDS {
        let zero_points = values.iter().map(|&value| {
            let integer = (value / plain.scale + zero).round().clamp(0.0, highest);
            let off = value - plain.scale * (integer - zero);
            integer - (value - shrunk(off, shrinkage)) / plain.scale
        });
        zero = zero_points.sum::<f32>() / values.len() as f32;
        shrinkage *= SHRINKAGE_GROWTH;
        let moved = BlockGrid {
            zero_point: zero,
            ..plain
        };
        let moved_error = error(values, moved, levels);
        if moved_error < best.0 {
            best = (moved_error, moved);
        }
    }
    best.1
}

/// The objective: Σ |error|^p.
pub(super) fn error(values: &[f32], grid: BlockGrid, levels: Levels) -> f32 {
    let off = |value: f32| (value - grid.real(grid.integer(value, levels))).abs();
    values.iter().map(|&value| off(value).powf(POWER)).sum()
}

/// The generalized soft threshold for p < 1: moves an error towards zero, small ones to zero.
fn shrunk(off: f32, shrinkage: f32) -> f32 {
    let size = off.abs();
    let shrunk = size - (size + 1e-8).powf(POWER - 1.0) / shrinkage;
    off.signum() * shrunk.max(0.0)
}
