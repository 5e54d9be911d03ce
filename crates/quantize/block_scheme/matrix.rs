//! A weight matrix and its blocks: consecutive numbers of a column, along the reduction axis, share
//! a scale.

use rayon::prelude::*;

use crate::blocks::{BlockGrid, BlockMethod, BlockSettings};
use crate::gptq::{error_reduction, gram_factors};
use crate::rewrite::NotQuantized;
use crate::stays_float::StaysFloat;
use octet_kernels::block_weights::{BlockRule, block_integers, column_grids};
use octet_stats::InputGram;

/// A weight matrix: `rows` along the reduction axis, `columns` of output channels.
pub(super) struct BlockMatrix<'a> {
    pub(super) values: Vec<f32>,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// True if a column is contiguous in memory.
    pub(super) transposed: bool,
    /// The Gram matrices of the layer's input, for GPTQ.
    pub(super) gram: Option<&'a InputGram>,
}

impl BlockMatrix<'_> {
    fn column(&self, index: usize) -> Vec<f32> {
        if self.transposed {
            self.values[index * self.rows..][..self.rows].to_vec()
        } else {
            let column = self.values.iter().skip(index).step_by(self.columns);
            column.copied().collect()
        }
    }
}

/// The integers of a matrix in column order, with scale and zero point of each block.
pub(super) struct WeightBlocks {
    pub(super) integers: Vec<u8>,
    pub(super) scales: Vec<f32>,
    pub(super) zero_points: Vec<f32>,
    /// The number of blocks in a column.
    pub(super) per_column: usize,
    /// With GPTQ, the factor by which the mean square error of the layer's output is lower.
    pub(super) error_reduction: Option<f64>,
}

/// Quantizes a matrix in blocks, its columns in parallel.
pub(super) fn quantize_matrix(
    matrix: &BlockMatrix,
    settings: &BlockSettings,
) -> Result<WeightBlocks, NotQuantized> {
    let (levels, method) = (settings.levels(), settings.grid_method());
    let rule = BlockRule {
        size: settings.size,
        levels,
        method,
        rounded: |scale| scale,
    };
    let gram = matrix.gram.filter(|_| settings.method == BlockMethod::Gptq);
    let factors: Vec<_> = gram
        .map(|gram| gram_factors(gram, false).collect())
        .unwrap_or_default();
    let columns: Vec<(Vec<u8>, Vec<BlockGrid>, [f64; 2])> = (0..matrix.columns)
        .into_par_iter()
        .map(|index| {
            let column = matrix.column(index);
            let grids = column_grids(&column, &rule);
            let mut integers = vec![0; column.len()];
            let blocks = column.chunks(settings.size);
            for ((block, grid), to) in blocks.zip(&grids).zip(integers.chunks_mut(settings.size)) {
                block_integers(block, *grid, levels, method, to);
            }
            let mut errors = [0.0; 2];
            for (_, rows, factor) in &factors {
                let Some(factor) = factor else { continue };
                let round = |row: usize, wanted: f64| {
                    let grid = grids[(rows.start + row) / settings.size];
                    let integer = grid.integer(wanted as f32, levels);
                    (integer, grid.real(integer).into())
                };
                let added =
                    factor.improve(&column[rows.clone()], &mut integers[rows.clone()], round);
                errors = [errors[0] + added[0], errors[1] + added[1]];
            }
            (integers, grids, errors)
        })
        .collect();
    let per_column = matrix.rows.div_ceil(settings.size);
    let mut blocks = WeightBlocks {
        integers: Vec::with_capacity(matrix.values.len()),
        scales: Vec::with_capacity(matrix.columns * per_column),
        zero_points: Vec::with_capacity(matrix.columns * per_column),
        per_column,
        error_reduction: error_reduction(columns.iter().map(|&(.., errors)| errors)),
    };
    for (integers, grids, _) in columns {
        blocks.integers.extend(integers);
        blocks.scales.extend(grids.iter().map(|grid| grid.scale));
        blocks
            .zero_points
            .extend(grids.iter().map(|grid| grid.zero_point));
    }
    if blocks.scales.iter().any(|scale| !scale.is_finite()) {
        return Err(StaysFloat::WeightTooLarge.into());
    }
    Ok(blocks)
}

impl WeightBlocks {
    /// The zero points as integers. They are integers with every method but HQQ.
    pub(super) fn whole_zero_points(&self) -> Vec<u8> {
        self.zero_points.iter().map(|&zero| zero as u8).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_and_its_transpose_have_the_same_blocks() {
        let (rows, columns) = (20, 3);
        let values: Vec<f32> = (0..60).map(|i| (i as f32 * 0.7).sin()).collect();
        let transposed = (0..columns)
            .flat_map(|column| (0..rows).map(move |row| row * columns + column))
            .map(|index| values[index])
            .collect();
        let settings = BlockSettings {
            size: 16,
            ..BlockSettings::default()
        };
        let blocks = |values, transposed| {
            let matrix = BlockMatrix {
                values,
                rows,
                columns,
                transposed,
                gram: None,
            };
            quantize_matrix(&matrix, &settings).unwrap()
        };
        let (plain, transposed) = (blocks(values, false), blocks(transposed, true));
        assert_eq!(plain.integers, transposed.integers);
        assert_eq!(plain.scales, transposed.scales);
        assert_eq!(plain.per_column, 2);
    }
}
