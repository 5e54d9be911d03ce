//! Half-quadratic quantization (HQQ): a zero point that fits most numbers and ignores a few
//! outliers.
//!
//! After Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models" (2023). It
//! minimizes Σ |error|^p with p < 1, which tolerates large errors. Each round shrinks the errors;
//! those that remain count as outliers. It then sets the zero point to the mean that the other
//! numbers ask for. The zero point is fractional, and MatMulNBits takes it as a float.

use super::rounding::{Grid, Levels, from_ends};

const POWER: f32 = 0.7;
const ROUNDS: usize = 20;
/// The initial shrinkage parameter, and its growth per round.
const PULL: f32 = 10.0;
const HARDER: f32 = 1.01;

/// Scale and zero point of a block; never worse than those from minimum and maximum.
pub(super) fn grid(values: &[f32], levels: Levels) -> Grid {
    let plain = from_ends(values, levels);
    if plain.scale == 0.0 {
        return plain;
    }
    let highest = f32::from(levels.highest());
    let mut zero = plain.zero_point;
    let mut pull = PULL;
    let mut best = (error(values, plain, levels), plain);
    for _ in 0..ROUNDS {
        let wanted = values.iter().map(|&value| {
            let integer = (value / plain.scale + zero).round().clamp(0.0, highest);
            let off = value - plain.scale * (integer - zero);
            integer - (value - shrunk(off, pull)) / plain.scale
        });
        zero = wanted.sum::<f32>() / values.len() as f32;
        pull *= HARDER;
        let moved = Grid {
            zero_point: zero,
            ..plain
        };
        let found = error(values, moved, levels);
        if found < best.0 {
            best = (found, moved);
        }
    }
    best.1
}

/// The objective: Σ |error|^p.
pub(super) fn error(values: &[f32], grid: Grid, levels: Levels) -> f32 {
    let off = |value: f32| (value - grid.real(grid.integer(value, levels))).abs();
    values.iter().map(|&value| off(value).powf(POWER)).sum()
}

/// The generalized soft threshold for p < 1: moves an error towards zero, small ones to zero.
fn shrunk(off: f32, pull: f32) -> f32 {
    let size = off.abs();
    let kept = size - (size + 1e-8).powf(POWER - 1.0) / pull;
    off.signum() * kept.max(0.0)
}
