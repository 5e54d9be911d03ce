//! Scale search, as in the k-quants of llama.cpp: tries scales around that of minimum and maximum,
//! and fits each to its integers.
//!
//! It minimizes Σ w·error², where a number's weight w is its magnitude plus the block's root mean
//! square. Large weights matter more to a product. For fixed integers q, the best scale is Σ w·x·(q
//! − z) / Σ w·(q − z)².

use super::grid::{BlockGrid, Levels, from_ends};

/// The range of widened and narrowed grids to try, in tenths of a level.
const TENTHS: std::ops::RangeInclusive<i32> = -10..=20;

/// Scale and zero point of a block; never worse than those from minimum and maximum.
pub(super) fn grid(values: &[f32], levels: Levels) -> BlockGrid {
    let plain = from_ends(values, levels);
    if plain.scale == 0.0 {
        return plain;
    }
    let weights = weights(values);
    let mut best = (weighted(values, &weights, plain, levels), plain);
    let mut consider = |grid: BlockGrid| {
        let tried_error = weighted(values, &weights, grid, levels);
        if tried_error < best.0 {
            best = (tried_error, grid);
        }
    };
    let steps = if levels.symmetric {
        f32::from(levels.middle())
    } else {
        f32::from(levels.highest())
    };
    for tenth in TENTHS {
        let scale = plain.scale * steps / (steps + tenth as f32 / 10.0);
        for grid in candidates(plain, scale, levels) {
            consider(grid);
            if let Some(fitted) = fitted(values, &weights, grid, levels) {
                consider(fitted);
            }
        }
    }
    best.1
}

/// The grids to try with a scale: both signs if symmetric, else the two nearest zero points.
fn candidates(plain: BlockGrid, scale: f32, levels: Levels) -> [BlockGrid; 2] {
    if levels.symmetric {
        return [scale, -scale].map(|scale| BlockGrid { scale, ..plain });
    }
    // The zero point keeps the low end of the block in place.
    let exact = plain.zero_point * plain.scale / scale;
    [exact.floor(), exact.ceil()].map(|zero| BlockGrid {
        scale,
        zero_point: zero.clamp(0.0, f32::from(levels.highest())),
    })
}

/// The scale with the least error for the integers of a grid.
fn fitted(values: &[f32], weights: &[f32], grid: BlockGrid, levels: Levels) -> Option<BlockGrid> {
    let (mut above, mut below) = (0.0f32, 0.0f32);
    for (&value, &weight) in values.iter().zip(weights) {
        let distance = f32::from(grid.integer(value, levels)) - grid.zero_point;
        above += weight * value * distance;
        below += weight * distance * distance;
    }
    let scale = above / below;
    (scale.is_finite() && scale != 0.0).then_some(BlockGrid { scale, ..grid })
}

fn weights(values: &[f32]) -> Vec<f32> {
    let squares: f32 = values.iter().map(|v| v * v).sum();
    let mean = (squares / values.len() as f32).sqrt();
    values.iter().map(|v| mean + v.abs()).collect()
}

fn weighted(values: &[f32], weights: &[f32], grid: BlockGrid, levels: Levels) -> f32 {
    let numbers = values.iter().zip(weights);
    let error = |(&value, &weight): (&f32, &f32)| {
        let off = value - grid.real(grid.integer(value, levels));
        weight * off * off
    };
    numbers.map(error).sum()
}

/// The objective.
#[cfg(test)]
pub(super) fn error(values: &[f32], grid: BlockGrid, levels: Levels) -> f32 {
    weighted(values, &weights(values), grid, levels)
}
