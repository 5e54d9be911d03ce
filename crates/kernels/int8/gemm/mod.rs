//! GEMM of u8 activations and i8 weights.
//!
//! A block of rows is multiplied tile by tile: MR rows by [`NR`] columns. The sums of a tile stay
//! in registers over the whole depth. Matrices with few columns take a row-by-row kernel
//! (`narrow`). `pack` describes the packed order and derives the algebra. Each ISA has a file.

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) mod dot;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod epilogue;
mod narrow;
mod pack;
mod portable;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) mod relaxed;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "wasm32")]
pub(super) use epilogue::Epilogue;
pub(super) use pack::{MR, NR, initial_accumulators, is_narrow};
pub use pack::{WeightLayout, Weights};
#[cfg(not(target_arch = "wasm32"))]
pub(super) use portable::Epilogue;

use core::ops::Range;

use super::error::{Error, at_least, equal, span};
use super::output::Output;
use super::shape::{Rows, count_of};
use super::{Isa, byte_copy};

/// Packed activation rows: bytes, or little-endian i16, padded to whole steps.
pub(super) struct Block<'a> {
    pub(super) values: &'a [u8],
    /// Distance between rows in bytes.
    pub(super) stride: usize,
    pub(super) rows: usize,
    /// `Σ a` per row, if the weights need it.
    pub(super) row_sums: &'a [i32],
    /// Columns to multiply. The first is a multiple of NR.
    pub(super) columns: Range<usize>,
    /// Initial accumulators of these columns: [`Weights::initial_accumulators`].
    pub(super) initial: &'a [i32],
}

/// Maximum bytes of activations in a block, unless a single row is longer. Together with a weight
/// tile, they about fit the L1 cache.
const BLOCK_BYTES: usize = 24 * 1024;

/// Partition of the rows into blocks of whole tiles, of nearly equal size. Each block reads all
/// weights, so a short last block would cost as much as a full one.
pub(super) struct Blocking {
    rows: usize,
    tiles: usize,
    count: usize,
}

impl Blocking {
    pub(super) fn new(weights: &Weights, rows: usize) -> Blocking {
        let row = (weights.steps() * 4).max(1);
        let about = (BLOCK_BYTES / row).clamp(8, 256);
        Blocking {
            rows,
            tiles: rows.div_ceil(MR),
            // Blocks may be a quarter larger than the target if that saves a block.
            count: rows.div_ceil(about + about / 4),
        }
    }

    /// Maximum rows of a block.
    pub(super) fn max_rows(&self) -> usize {
        self.tiles.div_ceil(self.count.max(1)) * MR
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let first = |block: usize| (block * self.tiles / self.count * MR).min(self.rows);
        (0..self.count).map(move |block| first(block)..first(block + 1))
    }
}

/// Computes `Σ (a - a₀) · (w - w₀) + bias` for each row and column, then applies the epilogue of
/// `output`.
pub fn gemm(
    rows: &Rows,
    weights: &Weights,
    bias: Option<&[i32]>,
    output: Output,
) -> Result<(), Error> {
    gemm_columns(rows, weights, 0..weights.columns, bias, output)
}

/// Computes some columns of [`gemm`]. Bias and output hold only these columns. The first is a
/// multiple of [`Weights::columns_together`].
pub fn gemm_columns(
    rows: &Rows,
    weights: &Weights,
    columns: Range<usize>,
    bias: Option<&[i32]>,
    mut output: Output,
) -> Result<(), Error> {
    equal("columns beyond whole tiles", 0, columns.start % NR)?;
    count_of(
        "the end of the requested columns",
        &columns,
        weights.columns,
    )?;
    let needed = span("the activations", rows.count, rows.stride, weights.depth)?;
    at_least("the activations", rows.values.len(), needed)?;
    bias.map_or(Ok(()), |bias| equal("bias", columns.len(), bias.len()))?;
    output.check(rows.count, columns.len())?;
    if rows.count == 0 || columns.is_empty() {
        return Ok(());
    }
    let initial = weights.initial_accumulators(columns.clone(), rows.zero_point, bias);
    let blocks = Blocking::new(weights, rows.count);
    // Bytes that form whole steps are read in place, without packing.
    let direct = weights.depths_per_step() == 4 && weights.depth == weights.steps() * 4;
    let mut panel = Panel::new(weights, if direct { 0 } else { blocks.max_rows() });
    let mut row_sums = Vec::new();
    for Range { start: first, end } in blocks.ranges() {
        let count = end - first;
        let row = |row: usize| &rows.values[(first + row) * rows.stride..][..weights.depth];
        if weights.needs_row_sums() {
            row_sums.clear();
            row_sums.extend((0..count).map(|at| sum(row(at))));
        }
        let (values, stride) = if direct {
            (&rows.values[first * rows.stride..], rows.stride)
        } else {
            for at in 0..count {
                panel.put(at, 0, row(at));
            }
            panel.read()
        };
        let block = Block {
            values,
            stride,
            rows: count,
            row_sums: &row_sums,
            columns: columns.clone(),
            initial: &initial,
        };
        multiply(&block, weights, output.part(first, 0, columns.len()));
    }
    Ok(())
}

/// Returns `Σ a` of a row.
pub(super) fn sum(row: &[u8]) -> i32 {
    row.iter()
        .fold(0i32, |sum, &value| sum.wrapping_add(i32::from(value)))
}

/// Multiplies a block with the kernel of the weights' ISA. The caller has checked the output and
/// that the block holds its rows in whole steps.
pub(super) fn multiply(block: &Block, weights: &Weights, output: Output) {
    let whole = weights.steps() * 4;
    // Checked again, because the vector kernels read through pointers.
    let needed = match block.rows {
        0 => 0,
        rows => (rows - 1) * block.stride + whole,
    };
    assert!(block.values.len() >= needed, "a block holds its rows");
    match weights.isa {
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Isa::Simd128 => simd128::multiply(block, weights, output),
        #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
        Isa::RelaxedSplit | Isa::RelaxedFused => relaxed::multiply(block, weights, output),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => x86::multiply(block, weights, output),
        Isa::CutPairs => portable::multiply_cut_pairs(block, weights, output),
        _ => portable::multiply(block, weights, output),
    }
}

/// A few packed rows of activations.
pub(super) struct Panel {
    values: Vec<u8>,
    stride: usize,
    depth: usize,
    /// Bytes per value.
    bytes: usize,
}

impl Panel {
    /// Allocates this many rows. Values never written are zero.
    pub(super) fn new(weights: &Weights, rows: usize) -> Panel {
        let stride = weights.steps() * 4;
        Panel {
            // Slack after the last row, for vectors that overrun its end.
            values: vec![0; stride * rows + byte_copy::OVER],
            stride,
            depth: weights.depth,
            bytes: 4 / weights.depths_per_step(),
        }
    }

    /// Writes values at a depth of a row.
    #[inline]
    pub(super) fn put(&mut self, row: usize, depth: usize, values: &[u8]) {
        let at = row * self.stride + depth * self.bytes;
        if self.bytes == 1 {
            byte_copy::copy(values, &mut self.values[at..][..values.len()]);
        } else {
            byte_copy::widen(values, &mut self.values[at..][..values.len() * 2]);
        }
    }

    /// Writes the first `count` values at a depth of a row, in whole vectors. The overrun must be
    /// overwritten later; beyond the depth, weights are zero.
    #[inline]
    pub(super) fn put_over(&mut self, row: usize, depth: usize, values: &[u8], count: usize) {
        let to = &mut self.values[row * self.stride + depth * self.bytes..];
        let done = match self.bytes {
            1 => byte_copy::copy_over(values, count, to),
            _ => byte_copy::widen_over(values, count, to),
        };
        if !done {
            self.put(row, depth, &values[..count]);
        }
    }

    /// Returns `Σ a` of a row. (The high bytes of i16 values are zero.)
    pub(super) fn sum(&self, row: usize) -> i32 {
        sum(&self.values[row * self.stride..][..self.depth * self.bytes])
    }

    /// Returns the rows and their distance in bytes.
    pub(super) fn read(&self) -> (&[u8], usize) {
        (&self.values, self.stride)
    }
}
