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

use super::{Emitted, MEMORY, Recipe, RecipeError, RecipeOutput, RecipeSummary, SLICE, Slices};
use crate::blocks::{BlockGrid, BlockMethod, BlockSettings};
use crate::float16_numbers::to_float16;
use octet_kernels::block_weights::{
    BlockPlaces, BlockResults, BlockRule, MatrixRows, packed_zero_points, quantize_column,
    quantize_columns,
};

/// Columns that one task computes.
const TASK: usize = 64;
/// Tiles have a multiple of so many columns.
const TILE_UNIT: usize = 16;

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
    rule: BlockRule,
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
    /// Rows of the current block, `columns.len()` numbers each, as in the source.
    panel: Vec<u8>,
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
    pub(super) fn made_of(mut self, origin: DataType) -> BlocksRecipe {
        self.rule.rounded = self.settings.scale_rounding(origin);
        self
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
                let panel = settings.size * size as usize;
                let fitting = (memory / (result + panel)).max(TILE_UNIT) / TILE_UNIT * TILE_UNIT;
                let row = matrix.columns as u64 * size;
                // Slices of whole blocks need no copy.
                let blocks = row * settings.size as u64;
                let unit = if blocks <= SLICE { blocks } else { row };
                (unit, fitting.min(matrix.columns))
            }
        };
        let passes = matrix.columns.div_ceil(tile_columns.max(1));
        BlocksRecipe {
            matrix,
            source,
            settings: settings.clone(),
            rule: BlockRule {
                size: settings.size,
                levels: settings.levels(),
                method: settings.grid_method(),
                rounded: settings.scale_rounding(source),
            },
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

    /// Fails unless all numbers were finite, and all scales are in their type.
    fn check(&self, finite: bool, grids: &[BlockGrid]) -> Result<(), RecipeError> {
        if !finite {
            return Err(RecipeError::NotFinite);
        }
        let fits = |grid: &BlockGrid| self.scales.rounded(grid.scale).is_finite();
        match grids.iter().all(fits) {
            true => Ok(()),
            false => Err(RecipeError::Scale(self.scales)),
        }
    }

    /// Quantizes contiguous columns.
    fn feed_columns(
        &mut self,
        bytes: &[u8],
        emit: &mut dyn FnMut(Emitted),
    ) -> Result<(), RecipeError> {
        let (rows, blocks) = (self.matrix.rows, self.blocks());
        let column_bytes = rows * self.source_bytes();
        let first = self.tile.columns.end;
        let columns = bytes.len() / column_bytes.max(1);
        let mut integers = vec![0; columns * blocks * self.bytes_of_block()];
        let mut grids = vec![BlockGrid::default(); columns * blocks];
        let one = |((column, integers), grids): ((&[u8], &mut [u8]), &mut [BlockGrid])| {
            let Some(column) = self.source.float_bytes(column) else {
                return Ok(());
            };
            let mut results = BlockResults { integers, grids };
            let finite = quantize_column(column, &self.rule, &mut results);
            self.check(finite, results.grids)
        };
        bytes
            .par_chunks(column_bytes.max(1))
            .zip(integers.par_chunks_mut((blocks * self.bytes_of_block()).max(1)))
            .zip(grids.par_chunks_mut(blocks.max(1)))
            .try_for_each(one)?;
        self.tile.columns = 0..first + columns;
        self.emit(first, integers, &grids, emit);
        Ok(())
    }

    fn source_bytes(&self) -> usize {
        self.source.bits().unwrap_or(32) / 8
    }

    /// Adds rows to the tile. Whole blocks are computed where they lie.
    fn feed_rows(&mut self, mut bytes: &[u8]) -> Result<(), RecipeError> {
        let (size, width) = (self.source_bytes(), self.matrix.columns);
        let columns = self.tile.columns.clone();
        let block_bytes = self.settings.size * width * size;
        let panel_bytes = self.settings.size * columns.len() * size;
        while !bytes.is_empty() {
            if self.tile.panel.is_empty() && bytes.len() >= block_bytes {
                let (blocks, rest) = bytes.split_at(bytes.len() / block_bytes * block_bytes);
                self.end_blocks(blocks, width, columns.clone())?;
                bytes = rest;
                continue;
            }
            let (row, rest) = bytes.split_at((width * size).min(bytes.len()));
            let part = row.get(columns.start * size..columns.end * size);
            self.tile.panel.extend_from_slice(part.unwrap_or_default());
            if self.tile.panel.len() == panel_bytes {
                self.end_panel()?;
            }
            bytes = rest;
        }
        Ok(())
    }

    /// Quantizes the panel, which has the rows of one block.
    fn end_panel(&mut self) -> Result<(), RecipeError> {
        let mut panel = std::mem::take(&mut self.tile.panel);
        let width = self.tile.columns.len();
        self.end_blocks(&panel, width, 0..width)?;
        panel.clear();
        self.tile.panel = panel;
        Ok(())
    }

    /// Quantizes the rows of the next blocks; the tile has these columns of them.
    fn end_blocks(
        &mut self,
        bytes: &[u8],
        width: usize,
        columns: Range<usize>,
    ) -> Result<(), RecipeError> {
        let Some(numbers) = self.source.float_bytes(bytes) else {
            return Ok(());
        };
        let mut tile = std::mem::take(&mut self.tile);
        let (blocks, first) = (self.blocks(), tile.block);
        let task = |(task, (integers, grids)): (usize, (&mut [u8], &mut [BlockGrid]))| {
            let start = columns.start + task * TASK;
            let matrix = MatrixRows {
                numbers,
                width,
                columns: start..columns.end.min(start + TASK),
            };
            let mut places = BlockPlaces {
                results: BlockResults { integers, grids },
                blocks,
                first,
            };
            quantize_columns(&matrix, &self.rule, &mut places)
        };
        let finite = tile
            .integers
            .par_chunks_mut((TASK * blocks * self.bytes_of_block()).max(1))
            .zip(tile.grids.par_chunks_mut((TASK * blocks).max(1)))
            .enumerate()
            .map(task)
            .reduce(|| true, |one, other| one & other);
        let rows = numbers.len() / width.max(1);
        tile.block += rows.div_ceil(self.settings.size);
        self.tile = tile;
        self.check(finite, &[])
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
            (DataType::Float, DataType::Float16) => to_float16(&Vec::from_iter(scales)),
            _ => self.scales.bytes_of(scales),
        };
        at(1, scales);
        if self.rule.levels.symmetric {
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

    fn slices(&self) -> &Slices {
        &self.slices
    }

    fn feed(&mut self, bytes: &[u8], emit: &mut dyn FnMut(Emitted)) -> Result<(), RecipeError> {
        let ends = self.slices.advance(bytes)?;
        if self.matrix.transposed {
            return self.feed_columns(bytes, emit);
        }
        // A recipe that only tells its outputs takes no memory.
        if self.tile.integers.is_empty() {
            self.begin_tile(self.tile.columns.end);
        }
        self.feed_rows(bytes)?;
        if !ends {
            return Ok(());
        }
        if !self.tile.panel.is_empty() {
            self.end_panel()?;
        }
        let columns = self.tile.columns.clone();
        let done = ColumnTile {
            columns: columns.clone(),
            ..ColumnTile::default()
        };
        let tile = std::mem::replace(&mut self.tile, done);
        self.check(true, &tile.grids)?;
        self.emit(columns.start, tile.integers, &tile.grids, emit);
        Ok(())
    }

    fn memory(&self) -> u64 {
        if self.matrix.transposed {
            return 0;
        }
        let blocks = self.blocks() * (self.bytes_of_block() + size_of::<BlockGrid>());
        let panel = self.settings.size * self.source_bytes();
        (self.tile_columns * (blocks + panel)) as u64
    }

    fn summary(&self) -> RecipeSummary {
        self.summary.clone()
    }
}
