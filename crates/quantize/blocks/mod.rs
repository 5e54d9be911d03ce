//! Blocks of weights: consecutive weights along the reduction axis share a scale, so 2, 4 or 8 bits
//! are enough. The methods that choose scale and zero point of a block, and its integers.

mod grid;
mod half_quadratic;
mod k_quant;
mod mixed_bits;
mod packing;
mod search;
mod settings;

pub use mixed_bits::MixedBits;
pub use settings::{BlockChoice, BlockForm, BlockMethod, BlockSettings};

pub(crate) use grid::{BlockGrid, Levels};
pub(crate) use packing::packed;

use octet_onnx::schema::DataType;

/// Scale and zero point of a block, by a method without samples, with a scale of this type.
pub(crate) fn block_grid(
    block: &[f32],
    levels: Levels,
    settings: &BlockSettings,
    scales: DataType,
) -> BlockGrid {
    let grid = match settings.method {
        BlockMethod::Rtn => return grid::from_ends_in(block, levels, scales),
        // Like ONNX Runtime, it computes the integers from the exact scale.
        BlockMethod::KQuant => return k_quant::grid(block, settings.size, levels),
        BlockMethod::Hqq => half_quadratic::grid(block, levels),
        BlockMethod::Search | BlockMethod::Gptq => search::grid(block, levels),
    };
    BlockGrid {
        scale: scales.rounded(grid.scale),
        ..grid
    }
}

/// The integer of a number in a block with this grid.
pub(crate) fn block_integer(
    grid: BlockGrid,
    value: f32,
    levels: Levels,
    method: BlockMethod,
) -> u8 {
    match method {
        BlockMethod::KQuant => k_quant::integer(grid, value, levels),
        _ => grid.integer(value, levels),
    }
}

#[cfg(test)]
mod tests {
    use super::grid::from_ends;
    use super::*;

    #[test]
    fn search_and_hqq_never_raise_their_objective() {
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        let (mut gained, mut moves) = (0, 0);
        for _ in 0..50 {
            let mut block: Vec<f32> = (0..32).map(|_| random() + random() + random()).collect();
            block[7] *= 3.0;
            for (bits, symmetric) in [(2, false), (4, false), (4, true), (8, true)] {
                let levels = Levels { bits, symmetric };
                let plain = from_ends(&block, levels);
                let searched = search::grid(&block, levels);
                let errors = [plain, searched].map(|grid| search::error(&block, grid, levels));
                assert!(errors[1] <= errors[0], "{bits} bits: {errors:?}");
                gained += usize::from(errors[1] < errors[0]);
                if !symmetric {
                    let moved = half_quadratic::grid(&block, levels);
                    let errors =
                        [plain, moved].map(|grid| half_quadratic::error(&block, grid, levels));
                    assert!(errors[1] <= errors[0], "{bits} bits: {errors:?}");
                    moves += usize::from(errors[1] < errors[0]);
                }
            }
        }
        assert!(gained > 150, "only {gained} of 200 blocks gained");
        assert!(
            moves > 75,
            "only {moves} of 100 blocks gained by another zero point"
        );
    }
}
