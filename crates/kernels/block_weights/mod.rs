//! Blocks of weights: consecutive weights share a scale, so 2, 4 or 8 bits are enough. The methods
//! that choose scale and zero point of a block, and its integers.

mod columns;
mod four_bit_floats;
mod grid;
mod half_quadratic;
mod k_quant;
mod lanes;
mod packing;
mod search;

pub use columns::{
    BlockPlaces, BlockResults, BlockRule, MatrixRows, column_grids, quantize_column,
    quantize_columns,
};
pub use four_bit_floats::FourBitFloat;
pub use grid::{BlockGrid, Levels, from_ends};
use lanes::{LaneEnds, LaneGrids};
pub use packing::{packed, packed_zero_points};

/// A method that chooses scale and zero point of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridMethod {
    /// From minimum and maximum.
    Ends,
    /// Half-quadratic (HQQ).
    HalfQuadratic,
    /// A search over scales.
    Search,
    /// k-quant; missing numbers of a block count as zeros, up to this many.
    KQuant(usize),
}

/// Scale and zero point of a block. `rounded` rounds the scale to the type in which it is stored.
#[inline(always)]
pub fn block_grid(
    block: &[f32],
    levels: Levels,
    method: GridMethod,
    rounded: fn(f32) -> f32,
) -> BlockGrid {
    let grid = match method {
        GridMethod::Ends => return grid::from_ends_rounded(block, levels, rounded),
        GridMethod::KQuant(size) => k_quant::grid(block, size, levels),
        GridMethod::HalfQuadratic => single(block, levels, half_quadratic::grids),
        GridMethod::Search => single(block, levels, search::grids),
    };
    BlockGrid {
        scale: rounded(grid.scale),
        ..grid
    }
}

/// The grid of a single block by a method for blocks side by side.
#[inline(always)]
fn single(
    block: &[f32],
    levels: Levels,
    grids: fn(&[[f32; 1]], &LaneGrids<1>, Levels) -> LaneGrids<1>,
) -> BlockGrid {
    let rows = block.as_chunks::<1>().0;
    let plain = LaneEnds::of(rows.iter()).grids(levels);
    grids(rows, &plain, levels).get(0)
}

/// The integers of a block with this grid.
#[inline(always)]
pub fn block_integers(
    block: &[f32],
    grid: BlockGrid,
    levels: Levels,
    method: GridMethod,
    to: &mut [u8],
) {
    match method {
        GridMethod::KQuant(_) => {
            for (to, &value) in to.iter_mut().zip(block) {
                *to = k_quant::integer(grid, value, levels);
            }
        }
        _ => grid.integers(block, levels, to),
    }
}

/// The greatest size of a block.
const LONGEST: usize = 256;

/// Integers that are packed at a time: whole bytes for every number of bits.
const PORTION: usize = 256;

/// Quantizes a block into packed bytes; `None` if one of its numbers is infinite or NaN.
#[inline(always)]
pub fn quantize_block(
    block: &[f32],
    levels: Levels,
    method: GridMethod,
    rounded: fn(f32) -> f32,
    bytes: &mut [u8],
) -> Option<BlockGrid> {
    // No early exit, so that the loop is vectorized.
    let finite = |all: bool, value: &f32| all & value.is_finite();
    if !block.iter().fold(true, finite) {
        return None;
    }
    let grid = block_grid(block, levels, method, rounded);
    let mut integers = [0; PORTION];
    let in_portion = PORTION * usize::from(levels.bits) / 8;
    for (block, bytes) in block.chunks(PORTION).zip(bytes.chunks_mut(in_portion)) {
        let integers = &mut integers[..block.len()];
        block_integers(block, grid, levels, method, integers);
        packing::pack_into(integers, levels.bits, bytes);
    }
    Some(grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_packed_as_its_integers_are() {
        let block: Vec<f32> = (0..75).map(|at| (at as f32 * 0.37).sin()).collect();
        for (bits, symmetric) in [(2, false), (4, true), (4, false), (8, true)] {
            let levels = Levels { bits, symmetric };
            for method in [
                GridMethod::Ends,
                GridMethod::Search,
                GridMethod::HalfQuadratic,
                GridMethod::KQuant(80),
            ] {
                let mut bytes = vec![0; (75 * usize::from(bits)).div_ceil(8)];
                let grid = quantize_block(&block, levels, method, |scale| scale, &mut bytes);
                let mut integers = vec![0; 75];
                block_integers(&block, grid.unwrap(), levels, method, &mut integers);
                assert_eq!(bytes, packed(&integers, bits), "{method:?}");
            }
        }
        let mut infinite = block;
        infinite[70] = f32::NEG_INFINITY;
        let levels = Levels {
            bits: 4,
            symmetric: true,
        };
        let grid = quantize_block(
            &infinite,
            levels,
            GridMethod::Ends,
            |scale| scale,
            &mut [0; 38],
        );
        assert_eq!(grid, None);
    }

    #[test]
    fn integers_are_those_of_round_for_every_tie_and_its_neighbours() {
        let levels = Levels {
            bits: 8,
            symmetric: false,
        };
        let grid = BlockGrid {
            scale: 1.0,
            zero_point: 0.0,
        };
        for tie in 0..520 {
            let exact = tie as f32 / 2.0;
            let near = [exact.next_down(), exact, exact.next_up()];
            for value in near {
                let wanted = value.round().clamp(0.0, 255.0) as u8;
                assert_eq!(grid.integer(value, levels), wanted, "{value:?}");
            }
        }
        assert_eq!(grid.integer(f32::NAN, levels), 0);
    }
}
