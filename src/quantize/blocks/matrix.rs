//! A matrix and its blocks: neighbours down a column, the axis that is summed over, share a scale.

use rayon::prelude::*;

use super::rounding::{Grid, Levels, from_ends};
use super::{BlockMethod, BlockSettings, half_quadratic, search};
use crate::calibrate::InputGram;
use crate::quantize::compensate::{factors, gained};
use crate::quantize::rewrite::Stop;

/// A constant that values are multiplied with: `rows` of the sum, `columns` of the result.
pub(super) struct Matrix<'a> {
    pub(super) values: Vec<f32>,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Whether a column lies in one piece in memory.
    pub(super) turned: bool,
    /// What is known of what it is multiplied with.
    pub(super) moments: Option<&'a InputGram>,
}

impl Matrix<'_> {
    fn column(&self, index: usize) -> Vec<f32> {
        if self.turned {
            self.values[index * self.rows..][..self.rows].to_vec()
        } else {
            let column = self.values.iter().skip(index).step_by(self.columns);
            column.copied().collect()
        }
    }
}

/// The integers of a matrix, column after column, with scales and zero points of their blocks.
pub(super) struct Blocks {
    pub(super) integers: Vec<u8>,
    pub(super) scales: Vec<f32>,
    pub(super) zero_points: Vec<f32>,
    /// Blocks of one column.
    pub(super) per_column: usize,
    /// Where the errors of a column make up for one another: by what factor the mean square of what they add is less.
    pub(super) gained: Option<f64>,
}

/// A matrix in blocks; columns are worked on in parallel, each by itself.
pub(super) fn quantized(matrix: &Matrix, settings: &BlockSettings) -> Result<Blocks, Stop> {
    let levels = Levels {
        bits: settings.bits,
        symmetric: settings.is_symmetric(),
    };
    let grid = |block: &[f32]| match settings.method {
        BlockMethod::Rtn => from_ends(block, levels),
        BlockMethod::Hqq => half_quadratic::grid(block, levels),
        BlockMethod::Search | BlockMethod::Gptq => search::grid(block, levels),
    };
    let moments = matrix
        .moments
        .filter(|_| settings.method == BlockMethod::Gptq);
    let factors: Vec<_> = moments
        .map(|known| factors(known, false).collect())
        .unwrap_or_default();
    let columns: Vec<(Vec<u8>, Vec<Grid>, [f64; 2])> = (0..matrix.columns)
        .into_par_iter()
        .map(|index| {
            let column = matrix.column(index);
            let mut integers = Vec::with_capacity(column.len());
            let mut grids = Vec::with_capacity(column.len().div_ceil(settings.size));
            for block in column.chunks(settings.size) {
                let found = grid(block);
                integers.extend(block.iter().map(|&value| found.integer(value, levels)));
                grids.push(found);
            }
            let mut errors = [0.0; 2];
            for (_, rows, factor) in &factors {
                let Some(factor) = factor else { continue };
                let round = |row: usize, wanted: f64| {
                    let grid = grids[(rows.start + row) / settings.size];
                    let integer = grid.integer(wanted as f32, levels);
                    (integer, grid.real(integer).into())
                };
                let found =
                    factor.better(&column[rows.clone()], &mut integers[rows.clone()], round);
                errors = [errors[0] + found[0], errors[1] + found[1]];
            }
            (integers, grids, errors)
        })
        .collect();
    let per_column = matrix.rows.div_ceil(settings.size);
    let mut blocks = Blocks {
        integers: Vec::with_capacity(matrix.values.len()),
        scales: Vec::with_capacity(matrix.columns * per_column),
        zero_points: Vec::with_capacity(matrix.columns * per_column),
        per_column,
        gained: gained(columns.iter().map(|&(.., errors)| errors)),
    };
    for (integers, grids, _) in columns {
        blocks.integers.extend(integers);
        blocks.scales.extend(grids.iter().map(|grid| grid.scale));
        blocks
            .zero_points
            .extend(grids.iter().map(|grid| grid.zero_point));
    }
    if blocks.scales.iter().any(|scale| !scale.is_finite()) {
        return Err("its weight has numbers too far apart for a scale".into());
    }
    Ok(blocks)
}

impl Blocks {
    /// The zero points as integers, which they are but for the half-quadratic method.
    pub(super) fn whole_zero_points(&self) -> Vec<u8> {
        self.zero_points.iter().map(|&zero| zero as u8).collect()
    }
}

/// Integers of `bits` bits in bytes, the first of them lowest; what is left of the last byte is 0.
pub(super) fn packed(integers: &[u8], bits: u8) -> Vec<u8> {
    let in_byte = usize::from(8 / bits);
    let byte = |group: &[u8]| {
        let parts = group.iter().zip(0u8..);
        parts.fold(0, |byte, (integer, place)| byte | integer << (place * bits))
    };
    integers.chunks(in_byte).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_integer_is_in_the_low_bits() {
        assert_eq!(packed(&[1, 2, 3], 4), [0x21, 0x03]);
        assert_eq!(packed(&[1, 2, 3, 0, 3], 2), [0b00_11_10_01, 3]);
        assert_eq!(packed(&[200, 7], 8), [200, 7]);
    }

    #[test]
    fn a_matrix_and_its_transpose_have_the_same_blocks() {
        let (rows, columns) = (20, 3);
        let values: Vec<f32> = (0..60).map(|i| (i as f32 * 0.7).sin()).collect();
        let turned = (0..columns)
            .flat_map(|column| (0..rows).map(move |row| row * columns + column))
            .map(|index| values[index])
            .collect();
        let settings = BlockSettings {
            size: 16,
            ..BlockSettings::default()
        };
        let blocks = |values, turned| {
            let matrix = Matrix {
                values,
                rows,
                columns,
                turned,
                moments: None,
            };
            quantized(&matrix, &settings).unwrap()
        };
        let (plain, turned) = (blocks(values, false), blocks(turned, true));
        assert_eq!(plain.integers, turned.integers);
        assert_eq!(plain.scales, turned.scales);
        assert_eq!(plain.per_column, 2);
    }

    #[test]
    fn better_methods_are_never_worse_by_their_own_measure() {
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
