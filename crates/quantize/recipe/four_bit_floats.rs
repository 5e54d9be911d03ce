//! A matrix as floats of 4 bits, as ONNX Runtime's MatMulBnb4 stores it: the columns one after the
//! other, two codes in a byte, and the largest magnitude of each block.
//!
//! A block may lie in two columns. A first pass over the source finds the magnitudes. If a column is
//! contiguous in the source, one pass is enough: then a block is contiguous too. Otherwise further
//! passes compute the codes of as many columns as fit into memory.

use std::ops::Range;

use octet_kernels::block_weights::FourBitFloat;
use octet_onnx::schema::DataType;
use rayon::prelude::*;

use super::{
    Emitted, MEMORY, MatrixLayout, Recipe, RecipeError, RecipeOutput, RecipeSummary, Slices,
};

/// Blocks or columns that one task computes.
const TASK: usize = 256;

/// Computes codes and magnitudes of a matrix.
pub struct FourBitFloatsRecipe {
    matrix: MatrixLayout,
    source: DataType,
    kind: FourBitFloat,
    block: usize,
    outputs: [RecipeOutput; 2],
    slices: Slices,
    /// Index of the next number of the source.
    position: usize,
    magnitudes: Vec<f32>,
    /// True after the first pass.
    measured: bool,
    tile: ColumnCodes,
    /// Columns of a tile, an even number.
    tile_columns: usize,
    summary: RecipeSummary,
}

/// Codes of some columns, one in a byte.
#[derive(Default)]
struct ColumnCodes {
    columns: Range<usize>,
    codes: Vec<u8>,
}

impl FourBitFloatsRecipe {
    /// Computes the codes of a matrix of this element type, which magnitudes have too.
    pub fn new(
        matrix: MatrixLayout,
        source: DataType,
        kind: FourBitFloat,
        block: usize,
    ) -> FourBitFloatsRecipe {
        FourBitFloatsRecipe::within(MEMORY, matrix, source, kind, block)
    }

    /// Like [`Self::new`], with tiles of at most `memory` bytes.
    pub(super) fn within(
        memory: usize,
        matrix: MatrixLayout,
        source: DataType,
        kind: FourBitFloat,
        block: usize,
    ) -> FourBitFloatsRecipe {
        let count = matrix.rows * matrix.columns;
        let size = (source.bits().unwrap_or(32) / 8) as u64;
        let (unit, passes, tile_columns) = match matrix.transposed {
            true => (block, 1, matrix.columns),
            false => {
                let fitting = (memory / matrix.rows.max(1)).max(2) / 2 * 2;
                let fitting = fitting.min(matrix.columns.next_multiple_of(2));
                let tiles = matrix.columns.div_ceil(fitting.max(1));
                (matrix.columns, 1 + tiles, fitting)
            }
        };
        FourBitFloatsRecipe {
            outputs: [
                RecipeOutput::new(DataType::Uint8, &[count.div_ceil(2)]),
                RecipeOutput::new(source, &[count.div_ceil(block)]),
            ],
            slices: Slices::new(count as u64 * size, unit.max(1) as u64 * size, passes),
            position: 0,
            magnitudes: Vec::new(),
            measured: false,
            tile: ColumnCodes::default(),
            tile_columns,
            summary: RecipeSummary::default(),
            matrix,
            source,
            kind,
            block,
        }
    }

    /// Emits magnitudes, the first of which belongs to the block `first`.
    fn emit_magnitudes(
        &mut self,
        first: usize,
        magnitudes: &[f32],
        emit: &mut dyn FnMut(Emitted),
    ) -> Result<(), RecipeError> {
        if magnitudes.iter().any(|magnitude| !magnitude.is_finite()) {
            return Err(RecipeError::NotFinite);
        }
        let largest = magnitudes.iter().copied().fold(0.0, f32::max);
        self.summary.scale = self.summary.scale.max(largest);
        let bytes = self.source.bytes_of(magnitudes.iter().copied());
        let offset = (first * (self.source.bits().unwrap_or(32) / 8)) as u64;
        emit(Emitted {
            output: 1,
            offset,
            bytes,
        });
        Ok(())
    }

    /// Whole blocks, in the order of the result.
    fn feed_blocks(
        &mut self,
        values: &[f32],
        emit: &mut dyn FnMut(Emitted),
    ) -> Result<(), RecipeError> {
        let mut codes = vec![0; values.len()];
        let mut magnitudes = vec![0.0; values.len().div_ceil(self.block)];
        values
            .par_chunks(self.block)
            .zip(codes.par_chunks_mut(self.block))
            .zip(&mut magnitudes)
            .with_min_len(TASK)
            .for_each(|((values, codes), magnitude)| {
                *magnitude = largest_magnitude(values);
                self.kind.codes(values, *magnitude, codes);
            });
        self.emit_magnitudes(self.position / self.block, &magnitudes, emit)?;
        emit(Emitted {
            output: 0,
            offset: self.position as u64 / 2,
            bytes: in_pairs(self.kind, &codes),
        });
        Ok(())
    }

    /// Widens the magnitudes by whole rows of the source.
    fn measure_rows(&mut self, values: &[f32]) {
        let MatrixLayout { rows, columns, .. } = self.matrix;
        self.magnitudes
            .resize((rows * columns).div_ceil(self.block), 0.0);
        let first_row = self.position / columns;
        let whole: Vec<&[f32]> = values.chunks_exact(columns).collect();
        let measured = |column: usize| {
            let mut found: Vec<(usize, f32)> = Vec::new();
            for (at, row) in whole.iter().enumerate() {
                let block = (column * rows + first_row + at) / self.block;
                let size = match row[column] {
                    finite if finite.is_finite() => finite.abs(),
                    _ => f32::INFINITY,
                };
                match found.last_mut() {
                    Some((last, most)) if *last == block => *most = most.max(size),
                    _ => found.push((block, size)),
                }
            }
            found
        };
        let found: Vec<Vec<(usize, f32)>> = (0..columns)
            .into_par_iter()
            .with_min_len(TASK)
            .map(measured)
            .collect();
        for (block, size) in found.into_iter().flatten() {
            self.magnitudes[block] = self.magnitudes[block].max(size);
        }
    }

    /// Adds whole rows of the source to the tile.
    fn feed_rows(&mut self, values: &[f32]) {
        let MatrixLayout { rows, columns, .. } = self.matrix;
        let first_row = self.position / columns;
        let first = self.tile.columns.start;
        let (block, kind, magnitudes) = (self.block, self.kind, &self.magnitudes);
        let whole: Vec<&[f32]> = values.chunks_exact(columns).collect();
        let task = |(at, codes): (usize, &mut [u8])| {
            let column = first + at;
            let gathered: Vec<f32> = whole.iter().map(|row| row[column]).collect();
            let mut done = 0;
            while done < gathered.len() {
                let start = column * rows + first_row + done;
                let end = gathered.len().min(done + block - start % block);
                let to = &mut codes[first_row + done..first_row + end];
                kind.codes(&gathered[done..end], magnitudes[start / block], to);
                done = end;
            }
        };
        self.tile
            .codes
            .par_chunks_mut(rows)
            .enumerate()
            .with_min_len(16)
            .for_each(task);
    }

    fn begin_tile(&mut self, first: usize) {
        let columns = first..self.matrix.columns.min(first + self.tile_columns);
        self.tile = ColumnCodes {
            codes: vec![0; columns.len() * self.matrix.rows],
            columns,
        };
    }
}

/// The largest magnitude of a block; infinite where one of its numbers is not finite.
fn largest_magnitude(values: &[f32]) -> f32 {
    let finite = values
        .iter()
        .fold(true, |all, value| all & value.is_finite());
    match finite {
        true => values
            .iter()
            .fold(0.0, |most: f32, value| most.max(value.abs())),
        false => f32::INFINITY,
    }
}

/// Two codes in a byte, the first in the high half. Beside the last one of an odd number lies the
/// code of zero.
fn in_pairs(kind: FourBitFloat, codes: &[u8]) -> Vec<u8> {
    let mut zero = [0];
    kind.codes(&[0.0], 0.0, &mut zero);
    let pairs = codes.chunks(2);
    pairs
        .map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(zero[0]))
        .collect()
}

impl Recipe for FourBitFloatsRecipe {
    fn outputs(&self) -> &[RecipeOutput] {
        &self.outputs
    }

    fn slices(&self) -> &Slices {
        &self.slices
    }

    fn feed(&mut self, bytes: &[u8], emit: &mut dyn FnMut(Emitted)) -> Result<(), RecipeError> {
        let ends = self.slices.advance(bytes)?;
        let values = self.source.floats(bytes);
        if self.matrix.transposed {
            self.feed_blocks(&values, emit)?;
        } else if !self.measured {
            self.measure_rows(&values);
            if ends {
                let magnitudes = std::mem::take(&mut self.magnitudes);
                self.emit_magnitudes(0, &magnitudes, emit)?;
                self.magnitudes = magnitudes;
                self.measured = true;
                self.begin_tile(0);
            }
        } else {
            self.feed_rows(&values);
            if ends {
                let tile = std::mem::take(&mut self.tile);
                emit(Emitted {
                    output: 0,
                    offset: (tile.columns.start * self.matrix.rows) as u64 / 2,
                    bytes: in_pairs(self.kind, &tile.codes),
                });
                if tile.columns.end < self.matrix.columns {
                    self.begin_tile(tile.columns.end);
                }
            }
        }
        self.position = match ends {
            true => 0,
            false => self.position + values.len(),
        };
        Ok(())
    }

    fn memory(&self) -> u64 {
        if self.matrix.transposed {
            return 0;
        }
        let magnitudes = (self.matrix.rows * self.matrix.columns).div_ceil(self.block);
        // Codes take a byte here, and half a byte in the result.
        let codes = self.matrix.rows * self.tile_columns * 3 / 2;
        (magnitudes * size_of::<f32>() + codes) as u64
    }

    fn summary(&self) -> RecipeSummary {
        self.summary.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::run_in_memory;
    use super::*;

    #[test]
    fn codes_depend_on_neither_the_order_of_the_source_nor_the_tiles() {
        for (rows, columns) in [(64, 40), (37, 21), (65, 1), (1, 65)] {
            let at = |row: usize, column: usize| ((row * 31 + column * 17) as f32).sin();
            let matrix = |transposed| MatrixLayout {
                rows,
                columns,
                transposed,
            };
            let in_rows = (0..rows * columns).map(|i| at(i / columns, i % columns));
            let in_columns = (0..rows * columns).map(|i| at(i % rows, i / rows));
            for source in [DataType::Float, DataType::Float16] {
                for kind in [FourBitFloat::Normal, FourBitFloat::Float] {
                    let run = |memory, transposed, bytes: &[u8]| {
                        let layout = matrix(transposed);
                        let mut recipe =
                            FourBitFloatsRecipe::within(memory, layout, source, kind, 16);
                        run_in_memory(&mut recipe, bytes).unwrap()
                    };
                    let wanted = run(MEMORY, true, &source.bytes_of(in_columns.clone()));
                    let bytes = source.bytes_of(in_rows.clone());
                    for memory in [1, 8 * rows, MEMORY] {
                        assert!(run(memory, false, &bytes) == wanted, "{rows}x{columns}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_number_that_is_not_finite_is_an_error() {
        for transposed in [false, true] {
            let layout = MatrixLayout {
                rows: 2,
                columns: 2,
                transposed,
            };
            let mut recipe =
                FourBitFloatsRecipe::new(layout, DataType::Float, FourBitFloat::Normal, 16);
            let bytes = DataType::Float.bytes_of([1.0, f32::NAN, 2.0, 3.0].into_iter());
            let done = run_in_memory(&mut recipe, &bytes);
            assert_eq!(done, Err(RecipeError::NotFinite));
        }
    }
}
