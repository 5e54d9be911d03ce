//! Scale search, as in the k-quants of llama.cpp: tries scales around that of minimum and maximum,
//! and fits each to its integers.
//!
//! It minimizes Σ w·error², where a number's weight w is its magnitude plus the block's root mean
//! square. Large weights matter more to a product. For fixed integers q, the best scale is Σ w·x·(q
//! − z) / Σ w·(q − z)².

use super::grid::{Levels, nearest_float};
use super::lanes::LaneGrids;

/// The range of widened and narrowed grids to try, in tenths of a level.
const TENTHS: std::ops::RangeInclusive<i32> = -10..=20;

/// Scales and zero points of blocks side by side, never worse than those from minimum and maximum,
/// `plain`.
#[inline(always)]
pub(super) fn grids<const L: usize>(
    rows: &[[f32; L]],
    plain: &LaneGrids<L>,
    levels: Levels,
) -> LaneGrids<L> {
    let weights = weights(rows);
    let mut best = *plain;
    let mut least = sums(rows, &weights, plain, levels).errors;
    let mut consider = |tried: &LaneGrids<L>, errors: &[f32; L]| {
        for lane in 0..L {
            if errors[lane] < least[lane] {
                least[lane] = errors[lane];
                best.scales[lane] = tried.scales[lane];
                best.zero_points[lane] = tried.zero_points[lane];
            }
        }
    };
    for tenth in TENTHS {
        for tried in candidates(plain, tenth, levels) {
            let found = sums(rows, &weights, &tried, levels);
            consider(&tried, &found.errors);
            let fitted = found.fitted(&tried);
            consider(&fitted, &sums(rows, &weights, &fitted, levels).errors);
        }
    }
    best
}

/// The grids to try with a scale: both signs if symmetric, else the two nearest zero points.
#[inline(always)]
fn candidates<const L: usize>(
    plain: &LaneGrids<L>,
    tenth: i32,
    levels: Levels,
) -> [LaneGrids<L>; 2] {
    let highest = f32::from(levels.highest());
    let steps = if levels.symmetric {
        f32::from(levels.middle())
    } else {
        highest
    };
    let scales = plain
        .scales
        .map(|scale| scale * steps / (steps + tenth as f32 / 10.0));
    if levels.symmetric {
        return [scales, scales.map(|scale| -scale)].map(|scales| LaneGrids { scales, ..*plain });
    }
    // The zero point keeps the low end of the block in place.
    let exact: [f32; L] =
        std::array::from_fn(|lane| plain.zero_points[lane] * plain.scales[lane] / scales[lane]);
    [exact.map(f32::floor), exact.map(f32::ceil)].map(|zeros| LaneGrids {
        scales,
        zero_points: zeros.map(|zero| zero.clamp(0.0, highest)),
    })
}

/// Sums over the blocks with a grid.
struct FitSums<const L: usize> {
    /// The objective.
    errors: [f32; L],
    /// Σ w·x·(q − z)
    products: [f32; L],
    /// Σ w·(q − z)²
    squares: [f32; L],
}

impl<const L: usize> FitSums<L> {
    /// The scales with the least error for the integers of a grid; its own where there is none.
    #[inline(always)]
    fn fitted(&self, grids: &LaneGrids<L>) -> LaneGrids<L> {
        let scales = std::array::from_fn(|lane| {
            let scale = self.products[lane] / self.squares[lane];
            match scale.is_finite() && scale != 0.0 {
                true => scale,
                false => grids.scales[lane],
            }
        });
        LaneGrids { scales, ..*grids }
    }
}

#[inline(always)]
fn sums<const L: usize>(
    rows: &[[f32; L]],
    weights: &[[f32; L]],
    grids: &LaneGrids<L>,
    levels: Levels,
) -> FitSums<L> {
    let highest = f32::from(levels.highest());
    let inverses = grids.inverses();
    let [mut errors, mut products, mut squares] = [[0.0; L]; 3];
    for (row, weights) in rows.iter().zip(weights) {
        for lane in 0..L {
            let (value, weight) = (row[lane], weights[lane]);
            let exact = value * inverses[lane] + grids.zero_points[lane];
            let distance = nearest_float(exact, highest) - grids.zero_points[lane];
            let off = value - grids.scales[lane] * distance;
            errors[lane] += weight * off * off;
            products[lane] += weight * value * distance;
            squares[lane] += weight * distance * distance;
        }
    }
    FitSums {
        errors,
        products,
        squares,
    }
}

#[inline(always)]
fn weights<const L: usize>(rows: &[[f32; L]]) -> Vec<[f32; L]> {
    let mut squares = [0.0; L];
    for row in rows {
        for lane in 0..L {
            squares[lane] += row[lane] * row[lane];
        }
    }
    let means = squares.map(|sum: f32| (sum / rows.len() as f32).sqrt());
    let of_row = |row: &[f32; L]| std::array::from_fn(|lane| means[lane] + row[lane].abs());
    rows.iter().map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::grid::{BlockGrid, from_ends};
    use super::super::lanes::tests::gained;
    use super::*;

    fn error(block: &[f32], grid: BlockGrid, levels: Levels) -> f32 {
        let sum: f32 = block.iter().map(|v| v * v).sum();
        let mean = (sum / block.len() as f32).sqrt();
        let error = |&value: &f32| {
            let off = value - grid.real(grid.integer(value, levels));
            (mean + value.abs()) * off * off
        };
        block.iter().map(error).sum()
    }

    /// The grid with the least error, one number after the other.
    fn reference(block: &[f32], levels: Levels) -> BlockGrid {
        let plain = from_ends(block, levels);
        let sum: f32 = block.iter().map(|v| v * v).sum();
        let mean = (sum / block.len() as f32).sqrt();
        let highest = f32::from(levels.highest());
        let mut best = plain;
        for tenth in TENTHS {
            let steps = if levels.symmetric {
                f32::from(levels.middle())
            } else {
                highest
            };
            let scale = plain.scale * steps / (steps + tenth as f32 / 10.0);
            let exact = plain.zero_point * plain.scale / scale;
            let tried = match levels.symmetric {
                true => [(scale, plain.zero_point), (-scale, plain.zero_point)],
                false => {
                    [exact.floor(), exact.ceil()].map(|zero| (scale, zero.clamp(0.0, highest)))
                }
            };
            for (scale, zero_point) in tried {
                let grid = BlockGrid { scale, zero_point };
                let (mut above, mut below) = (0.0, 0.0);
                for &value in block {
                    let distance = f32::from(grid.integer(value, levels)) - zero_point;
                    above += (mean + value.abs()) * value * distance;
                    below += (mean + value.abs()) * distance * distance;
                }
                let fitted: f32 = above / below;
                for scale in [scale, fitted] {
                    let grid = BlockGrid { scale, zero_point };
                    let usable = scale.is_finite() && scale != 0.0;
                    if usable && error(block, grid, levels) < error(block, best, levels) {
                        best = grid;
                    }
                }
            }
        }
        best
    }

    #[test]
    fn grids_are_those_of_the_reference() {
        let mut gained_blocks = 0;
        for (bits, symmetric) in [(2, false), (4, false), (4, true), (8, true)] {
            let levels = Levels { bits, symmetric };
            gained_blocks += gained(levels, grids, reference, error);
        }
        assert!(
            gained_blocks > 150,
            "only {gained_blocks} of 200 blocks gained"
        );
    }
}
