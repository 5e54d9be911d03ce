//! A matrix in blocks, as ONNX Runtime's MatMulNBits stores it: integers [columns, blocks, bytes of
//! a block], scales [columns, blocks], and packed zero points.
//!
//! Rows of the matrix lie along the reduction axis. If a column is contiguous in the source, columns
//! are computed one after the other. Otherwise a block needs several rows, and the outputs of all
//! columns grow together. Then the columns are divided into tiles that fit into memory, and each
//! tile takes a pass over the source.

use std::ops::Range;

use octet_onnx::schema::DataType;
use rayon::prelude::*;

use super::{Emitted, MEMORY, Recipe, RecipeError, RecipeOutput, RecipeSummary, Slices};
use crate::blocks::{BlockGrid, BlockMethod, BlockSettings, Levels};
use crate::float16_numbers::to_float16;
use octet_kernels::block_weights::{
    GridMethod, gather_columns, packed_zero_points, quantize_block,
};

/// Columns that one task computes.
const TASK: usize = 16;

/// The order of a matrix in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixLayout {
    /// Size along the reduction axis.
    pub rows: usize,
    /// Number of output channels.
    pub columns: usize,
    /// True if a column is contiguous.
    pub transposed: bool,
}

/// Quantizes a matrix in blocks.
pub struct BlocksRecipe {
    matrix: MatrixLayout,
    source: DataType,
    settings: BlockSettings,
    levels: Levels,
    method: GridMethod,
    rounded: fn(f32) -> f32,
    /// Element type of the scales.
    scales: DataType,
    outputs: Vec<RecipeOutput>,
    slices: Slices,
    tile: ColumnTile,
    /// Columns of a tile.
    tile_columns: usize,
    summary: RecipeSummary,
}

/// The columns of the current pass.
#[derive(Default)]
struct ColumnTile {
    /// The first column, and the column behind the last.
    columns: Range<usize>,
    /// Rows of the current block, `columns.len()` numbers each.
    panel: Vec<f32>,
    /// Index of the current block.
    block: usize,
    integers: Vec<u8>,
    grids: Vec<BlockGrid>,
}

impl BlocksRecipe {
    /// Quantizes a matrix of this element type; scales are stored in the type `scales`. The integers
    /// are those of the source, whatever that type is.
    pub fn new(
        matrix: MatrixLayout,
        source: DataType,
        settings: &BlockSettings,
        scales: DataType,
    ) -> BlocksRecipe {
        BlocksRecipe::within(MEMORY, matrix, source, settings, scales)
    }

    /// Rounds scales as for a source of this type, from which the numbers may have been widened.
    pub(super) fn made_of(self, origin: DataType) -> BlocksRecipe {
        BlocksRecipe {
            rounded: self.settings.scale_rounding(origin),
            ..self
        }
    }

    /// Like [`Self::new`], with tiles of at most `memory` bytes.
    pub(super) fn within(
        memory: usize,
        matrix: MatrixLayout,
        source: DataType,
        settings: &BlockSettings,
        scales: DataType,
    ) -> BlocksRecipe {
        let blocks = matrix.rows.div_ceil(settings.size);
        let in_byte = usize::from(8 / settings.bits);
        let bytes_of_block = settings.size / in_byte;
        let mut outputs = vec![
            RecipeOutput::new(DataType::Uint8, &[matrix.columns, blocks, bytes_of_block]),
            RecipeOutput::new(scales, &[matrix.columns, blocks]),
        ];
        if !settings.is_symmetric() {
            outputs.push(match settings.method {
                BlockMethod::Hqq => RecipeOutput::new(scales, &[matrix.columns, blocks]),
                _ => {
                    RecipeOutput::new(DataType::Uint8, &[matrix.columns, blocks.div_ceil(in_byte)])
                }
            });
        }
        let size = (source.bits().unwrap_or(32) / 8) as u64;
        let bytes = matrix.rows as u64 * matrix.columns as u64 * size;
        let (unit, tile_columns) = match matrix.transposed {
            true => (matrix.rows as u64 * size, matrix.columns),
            false => {
                let result = blocks * (bytes_of_block + size_of::<BlockGrid>());
                let panel = settings.size * size_of::<f32>();
                let fitting = (memory / (result + panel)).max(TASK) / TASK * TASK;
                (matrix.columns as u64 * size, fitting.min(matrix.columns))
            }
        };
        let passes = matrix.columns.div_ceil(tile_columns.max(1));
        BlocksRecipe {
            matrix,
            source,
            settings: settings.clone(),
            levels: settings.levels(),
            method: settings.grid_method(),
            rounded: settings.scale_rounding(source),
            scales,
            outputs,
            slices: Slices::new(bytes, unit.max(1), passes),
            tile: ColumnTile::default(),
            tile_columns,
            summary: RecipeSummary::default(),
        }
    }

    fn blocks(&self) -> usize {
        self.matrix.rows.div_ceil(self.settings.size)
    }

    fn bytes_of_block(&self) -> usize {
        self.settings.size * usize::from(self.settings.bits) / 8
    }

    fn begin_tile(&mut self, first: usize) {
        let columns = first..self.matrix.columns.min(first + self.tile_columns);
        let count = columns.len() * self.blocks();
        self.tile = ColumnTile {
            columns,
            panel: Vec::new(),
            block: 0,
            integers: vec![0; count * self.bytes_of_block()],
            grids: vec![BlockGrid::default(); count],
        };
    }

    /// Quantizes one block into its bytes.
    fn quantize(&self, block: &[f32], bytes: &mut [u8]) -> Result<BlockGrid, RecipeError> {
        let grid = quantize_block(block, self.levels, self.method, self.rounded, bytes);
        let grid = grid.ok_or(RecipeError::NotFinite)?;
        match self.scales.rounded(grid.scale).is_finite() {
            true => Ok(grid),
            false => Err(RecipeError::Scale(self.scales)),
        }
    }

    /// Quantizes contiguous columns.
    fn feed_columns(
        &mut self,
        values: &[f32],
        emit: &mut dyn FnMut(Emitted),
    ) -> Result<(), RecipeError> {
        let (rows, blocks) = (self.matrix.rows, self.blocks());
        let first = self.tile.columns.end;
        let columns = values.len() / rows;
        let mut integers = vec![0; columns * blocks * self.bytes_of_block()];
        let mut grids = vec![BlockGrid::default(); columns * blocks];
        let one = |((column, integers), grids): ((&[f32], &mut [u8]), &mut [BlockGrid])| {
            let blocks = column.chunks(self.settings.size);
            let places = integers.chunks_mut(self.bytes_of_block()).zip(grids);
            for (block, (bytes, grid)) in blocks.zip(places) {
                *grid = self.quantize(block, bytes)?;
            }
            Ok(())
        };
        values
            .par_chunks(rows)
            .zip(integers.par_chunks_mut(blocks * self.bytes_of_block()))
            .zip(grids.par_chunks_mut(blocks))
            .try_for_each(one)?;
        self.tile.columns = 0..first + columns;
        self.emit(first, integers, &grids, emit);
        Ok(())
    }

    /// Adds rows to the tile.
    fn feed_rows(&mut self, values: &[f32]) -> Result<(), RecipeError> {
        let columns = self.tile.columns.clone();
        for row in values.chunks(self.matrix.columns) {
            self.tile.panel.extend_from_slice(&row[columns.clone()]);
            if self.tile.panel.len() == self.settings.size * columns.len() {
                self.end_block()?;
            }
        }
        Ok(())
    }

    /// Quantizes the panel, which has the rows of one block.
    fn end_block(&mut self) -> Result<(), RecipeError> {
        let mut tile = std::mem::take(&mut self.tile);
        let (width, blocks, bytes) = (tile.columns.len(), self.blocks(), self.bytes_of_block());
        let (rows, at) = (tile.panel.len() / width.max(1), tile.block);
        let task = |(task, (integers, grids)): (usize, (&mut [u8], &mut [BlockGrid]))| {
            let first = task * TASK;
            let mut gathered = vec![0.0; rows * TASK];
            gather_columns(
                &tile.panel,
                width,
                first..width.min(first + TASK),
                &mut gathered,
            );
            let columns = integers
                .chunks_mut(blocks * bytes)
                .zip(grids.chunks_mut(blocks));
            for (block, (integers, grids)) in gathered.chunks_exact(rows.max(1)).zip(columns) {
                grids[at] = self.quantize(block, &mut integers[at * bytes..][..bytes])?;
            }
            Ok(())
        };
        tile.integers
            .par_chunks_mut(TASK * blocks * bytes)
            .zip(tile.grids.par_chunks_mut(TASK * blocks))
            .enumerate()
            .try_for_each(task)?;
        tile.panel.clear();
        tile.block += 1;
        self.tile = tile;
        Ok(())
    }

    /// Emits finished columns.
    fn emit(
        &mut self,
        first: usize,
        integers: Vec<u8>,
        grids: &[BlockGrid],
        emit: &mut dyn FnMut(Emitted),
    ) {
        for grid in grids {
            if grid.scale.abs() > self.summary.scale.abs() {
                self.summary.scale = grid.scale;
                self.summary.zero_point = grid.zero_point;
            }
        }
        let blocks = self.blocks();
        let mut at = |output: usize, bytes: Vec<u8>| {
            let columns = self.matrix.columns.max(1) as u64;
            let offset = self.outputs[output].bytes / columns * first as u64;
            emit(Emitted {
                output,
                offset,
                bytes,
            });
        };
        at(0, integers);
        let scales = grids.iter().map(|grid| grid.scale);
        let scales = match (self.source, self.scales) {
            (DataType::Float, DataType::Float16) => to_float16(&Vec::from_iter(scales)).bytes,
            _ => self.scales.bytes_of(scales),
        };
        at(1, scales);
        if self.levels.symmetric {
            return;
        }
        let zero_points = match self.settings.method {
            BlockMethod::Hqq => self
                .scales
                .bytes_of(grids.iter().map(|grid| grid.zero_point)),
            _ => {
                let zero_points = grids.iter().map(|grid| grid.zero_point);
                packed_zero_points(zero_points, blocks, self.settings.bits)
            }
        };
        at(2, zero_points);
    }
}

impl Recipe for BlocksRecipe {
    fn outputs(&self) -> &[RecipeOutput] {
        &self.outputs
    }

    fn next(&self) -> Option<Range<u64>> {
        self.slices.next()
    }

    fn feed(&mut self, bytes: &[u8], emit: &mut dyn FnMut(Emitted)) -> Result<(), RecipeError> {
        let ends = self.slices.advance(bytes)?;
        let values = self.source.floats(bytes);
        if self.matrix.transposed {
            return self.feed_columns(&values, emit);
        }
        // A recipe that only tells its outputs takes no memory.
        if self.tile.integers.is_empty() {
            self.begin_tile(self.tile.columns.end);
        }
        self.feed_rows(&values)?;
        if !ends {
            return Ok(());
        }
        if !self.tile.panel.is_empty() {
            self.end_block()?;
        }
        let columns = self.tile.columns.clone();
        let done = ColumnTile {
            columns: columns.clone(),
            ..ColumnTile::default()
        };
        let tile = std::mem::replace(&mut self.tile, done);
        self.emit(columns.start, tile.integers, &tile.grids, emit);
        Ok(())
    }

    fn memory(&self) -> u64 {
        if self.matrix.transposed {
            return 0;
        }
        let blocks = self.blocks() * (self.bytes_of_block() + size_of::<BlockGrid>());
        let panel = self.settings.size * size_of::<f32>();
        (self.tile_columns * (blocks + panel)) as u64
    }

    fn bytes_to_read(&self) -> u64 {
        let tiles = self.matrix.columns.div_ceil(self.tile_columns.max(1));
        self.slices.bytes * tiles as u64
    }

    fn summary(&self) -> RecipeSummary {
        self.summary.clone()
    }
}
