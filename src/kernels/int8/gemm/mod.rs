//! Matrix products of u8 activations and i8 weights.
//!
//! A block of rows is multiplied tile by tile: a few rows by [`WIDE`] columns, whose sums stay in registers over
//! the whole depth; where there are few columns, row by row (`narrow`). `pack` has the order of the weights and the algebra; each form is a file.

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod finish;
mod narrow;
mod pack;
mod portable;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) mod relaxed;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) mod simd128;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "wasm32")]
pub(super) use finish::Finish;
pub(super) use pack::{HIGH, WIDE, beginnings, is_narrow};
pub use pack::{Layout, Weights};
#[cfg(not(target_arch = "wasm32"))]
pub(super) use portable::Finish;

use core::ops::Range;

use super::error::{Error, at_least, equal, span};
use super::output::Output;
use super::shape::{Rows, count_of};
use super::{Form, moves};

/// Rows of activations as the tiles read them: bytes, or i16 in the machine's order, filled up to whole steps.
pub(super) struct Block<'a> {
    pub(super) values: &'a [u8],
    /// In bytes.
    pub(super) stride: usize,
    pub(super) rows: usize,
    /// `Σ a`, a row each, where the weights want it.
    pub(super) row_sums: &'a [i32],
    /// The columns that are multiplied, from a whole tile on.
    pub(super) columns: Range<usize>,
    /// What their accumulators begin with: [`Weights::beginnings`].
    pub(super) beginnings: &'a [i32],
}

/// Bytes of activations that a block has at most, unless a row is longer: with a tile's weights they fit the
/// nearest cache, or nearly.
const BLOCK_BYTES: usize = 24 * 1024;

/// Rows as they are cut into blocks: whole tiles, as many to one as to another, since all weights are read for each block, whether it
/// has many rows or one.
pub(super) struct Blocking {
    rows: usize,
    tiles: usize,
    count: usize,
}

impl Blocking {
    pub(super) fn of(weights: &Weights, rows: usize) -> Blocking {
        let row = (weights.steps() * 4).max(1);
        let about = (BLOCK_BYTES / row).clamp(8, 256);
        Blocking {
            rows,
            tiles: rows.div_ceil(HIGH),
            // A quarter more rather than one block more.
            count: rows.div_ceil(about + about / 4),
        }
    }

    /// How many rows one has at most.
    pub(super) fn most(&self) -> usize {
        self.tiles.div_ceil(self.count.max(1)) * HIGH
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Range<usize>> {
        let first = |block: usize| (block * self.tiles / self.count * HIGH).min(self.rows);
        (0..self.count).map(move |block| first(block)..first(block + 1))
    }
}

/// `Σ (a - a_zero) · (w - w_zero) + bias` for each row and column, then what the output says.
pub fn gemm(
    rows: &Rows,
    weights: &Weights,
    bias: Option<&[i32]>,
    output: Output,
) -> Result<(), Error> {
    gemm_columns(rows, weights, 0..weights.columns, bias, output)
}

/// The same of some columns: bias and output are theirs. They begin with a multiple of [`Weights::columns_together`].
pub fn gemm_columns(
    rows: &Rows,
    weights: &Weights,
    columns: Range<usize>,
    bias: Option<&[i32]>,
    mut output: Output,
) -> Result<(), Error> {
    equal("columns beyond a tile", 0, columns.start % WIDE)?;
    count_of(
        "the last of the columns asked for",
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
    let beginnings = weights.beginnings(columns.clone(), rows.zero_point, bias);
    let blocks = Blocking::of(weights, rows.count);
    // Bytes in whole steps are read where they are.
    let direct = weights.deep() == 4 && weights.depth == weights.steps() * 4;
    let mut panel = Panel::new(weights, if direct { 0 } else { blocks.most() });
    let mut row_sums = Vec::new();
    for Range { start: first, end } in blocks.all() {
        let count = end - first;
        let row = |row: usize| &rows.values[(first + row) * rows.stride..][..weights.depth];
        if weights.wants_row_sums() {
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
            beginnings: &beginnings,
        };
        multiply(&block, weights, output.part(first, 0, columns.len()));
    }
    Ok(())
}

/// `Σ a` of a row.
pub(super) fn sum(row: &[u8]) -> i32 {
    row.iter()
        .fold(0i32, |sum, &value| sum.wrapping_add(i32::from(value)))
}

/// Multiplies a block in the weights' form. The caller has checked the output, and that the block holds its rows
/// of whole steps.
pub(super) fn multiply(block: &Block, weights: &Weights, output: Output) {
    let whole = weights.steps() * 4;
    // Once more here, since the vector forms read by pointers.
    let needed = match block.rows {
        0 => 0,
        rows => (rows - 1) * block.stride + whole,
    };
    assert!(block.values.len() >= needed, "a block holds its rows");
    match weights.form {
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Form::Simd128 => simd128::multiply(block, weights, output),
        #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
        Form::RelaxedSplit | Form::RelaxedFused => relaxed::multiply(block, weights, output),
        #[cfg(target_arch = "x86_64")]
        Form::Avx2 => x86::multiply(block, weights, output),
        _ => portable::multiply(block, weights, output),
    }
}

/// A few rows of activations, brought into the order that the tiles read.
pub(super) struct Panel {
    values: Vec<u8>,
    stride: usize,
    depth: usize,
    /// Of a value.
    bytes: usize,
}

impl Panel {
    /// Room for so many rows. What is never put is zero.
    pub(super) fn new(weights: &Weights, rows: usize) -> Panel {
        let stride = weights.steps() * 4;
        Panel {
            // Behind the last row there is room for what is put over its end.
            values: vec![0; stride * rows + moves::OVER],
            stride,
            depth: weights.depth,
            bytes: 4 / weights.deep(),
        }
    }

    /// Puts values at a depth of a row.
    #[inline]
    pub(super) fn put(&mut self, row: usize, depth: usize, values: &[u8]) {
        let at = row * self.stride + depth * self.bytes;
        if self.bytes == 1 {
            moves::copy(values, &mut self.values[at..][..values.len()]);
        } else {
            moves::widen(values, &mut self.values[at..][..values.len() * 2]);
        }
    }

    /// Puts the first `count` values at a depth of a row, and anything over what comes next: what belongs there has to be put
    /// later. (Behind a row's depth weights are zero.)
    #[inline]
    pub(super) fn put_over(&mut self, row: usize, depth: usize, values: &[u8], count: usize) {
        let to = &mut self.values[row * self.stride + depth * self.bytes..];
        let done = match self.bytes {
            1 => moves::copy_over(values, count, to),
            _ => moves::widen_over(values, count, to),
        };
        if !done {
            self.put(row, depth, &values[..count]);
        }
    }

    /// `Σ a` of a row. (The high bytes of i16 are zero.)
    pub(super) fn sum(&self, row: usize) -> i32 {
        sum(&self.values[row * self.stride..][..self.depth * self.bytes])
    }

    /// The rows, and the bytes from one to the next.
    pub(super) fn read(&self) -> (&[u8], usize) {
        (&self.values, self.stride)
    }
}
