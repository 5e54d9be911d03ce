//! The tile kernel in WebAssembly SIMD: four rows by eight columns in eight accumulators of four
//! lanes.
//!
//! A step broadcasts four bytes of a row and multiplies them by four bytes of each column. Here
//! they are two i16 values (`i32x4.dot_i16x8_s`). `relaxed` has the byte products.

use core::arch::wasm32::{
    i32x4_add, i32x4_mul, i32x4_splat, v128, v128_load, v128_load32_splat, v128_store,
};

use core::ops::Range;

use super::super::output::Output;
use super::super::vector::load;
use super::dot::{Dot, EPILOGUE_ROWS, I16Pairs};
use super::{Block, Epilogue, MR, NR, Weights, narrow};

/// Vectors per tile row.
const VECTORS: usize = NR / 4;

/// Multiplies a block.
pub(super) fn multiply(block: &Block, weights: &Weights, output: Output) {
    multiply_with(I16Pairs, block, weights, output);
}

/// Loops over the tiles. A tile's weights stay in cache while all rows pass.
///
/// Products and epilogue alternate, because each needs the registers. The function is monomorphic
/// per product, so that a browser optimizes only the code that runs.
#[inline(never)]
pub(super) fn multiply_with(dot: impl Dot, block: &Block, weights: &Weights, mut output: Output) {
    if weights.narrow {
        return narrow::multiply_with(dot, block, weights, output);
    }
    if block.rows == 1 {
        return multiply_row(dot, block, weights, output);
    }
    if let Output::Accumulators { values, stride } = &mut output
        && block.columns.len() % NR == 0
    {
        for column in block.columns.clone().step_by(NR) {
            let tile = Tile::new(block, weights, column);
            let values = &mut values[column - block.columns.start..];
            sum_rows(dot, block, 0..block.rows, &tile, values, *stride);
        }
        return;
    }
    let mut sums = [0; EPILOGUE_ROWS * NR];
    for column in block.columns.clone().step_by(NR) {
        let columns = NR.min(block.columns.end - column);
        let at = column - block.columns.start;
        let tile = Tile::new(block, weights, column);
        for first in (0..block.rows).step_by(EPILOGUE_ROWS) {
            let rows = first..block.rows.min(first + EPILOGUE_ROWS);
            let sums = &mut sums[..rows.len() * NR];
            sum_rows(dot, block, rows, &tile, sums, NR);
            apply_epilogue(&mut output, [first, at], sums.as_chunks().0, columns);
        }
    }
}

/// Tiles that a single row is multiplied with at a time. Their sums don't depend on one another, so
/// they hide the latency of a product. The two vectors of one tile hide less than half of it.
const TILES: usize = 4;

/// Multiplies a block of one row.
#[inline(never)]
fn multiply_row(dot: impl Dot, block: &Block, weights: &Weights, mut output: Output) {
    for first in block.columns.clone().step_by(TILES * NR) {
        let columns = first..block.columns.end.min(first + TILES * NR);
        let mut sums = [[0; NR]; TILES];
        let count = columns.len().div_ceil(NR);
        let tiles: [Tile; TILES] = core::array::from_fn(|tile| {
            // Missing tiles repeat the last one; their results are discarded.
            Tile::new(block, weights, first + tile.min(count - 1) * NR)
        });
        // SAFETY: the caller of this module has checked that the block holds its row in whole
        // steps.
        unsafe { row_of_tiles(dot, block, &tiles, &mut sums) };
        for (tile, column) in columns.clone().step_by(NR).enumerate() {
            let place = column - block.columns.start;
            let width = NR.min(columns.end - column);
            apply_epilogue(&mut output, [0, place], &sums[tile..=tile], width);
        }
    }
}

/// Multiplies the first row of a block with several tiles of equal depth.
///
/// # Safety
///
/// The block holds the row in whole steps.
#[inline(always)]
unsafe fn row_of_tiles(
    dot: impl Dot,
    block: &Block,
    tiles: &[Tile; TILES],
    to: &mut [[i32; NR]; TILES],
) {
    let mut sums: [[v128; VECTORS]; TILES] =
        core::array::from_fn(|tile| core::array::from_fn(|at| load(tiles[tile].initial, at * 4)));
    for (tile, sums) in tiles.iter().zip(&mut sums) {
        let Some(factors) = tile.factors else {
            continue;
        };
        let row_sum = i32x4_splat(block.row_sums[0]);
        for (at, sums) in sums.iter_mut().enumerate() {
            *sums = i32x4_add(*sums, i32x4_mul(load(factors, at * 4), row_sum));
        }
    }
    let mut row: *const Step = block.values.as_ptr().cast();
    let mut weights: [*const Columns; TILES] =
        tiles.each_ref().map(|tile| tile.packed.as_ptr().cast());
    for _ in 0..tiles[0].steps {
        // SAFETY: the row and each tile hold as many steps.
        unsafe {
            let bytes = v128_load32_splat(row.cast());
            row = row.add(1);
            for (weights, sums) in weights.iter_mut().zip(&mut sums) {
                for (sums, column) in sums.iter_mut().zip(&**weights) {
                    *sums = dot.dot(*sums, bytes, v128_load(column.as_ptr().cast()));
                }
                *weights = weights.add(1);
            }
        }
    }
    for (to, sums) in to.iter_mut().zip(sums) {
        for (at, lanes) in sums.into_iter().enumerate() {
            // SAFETY: a tile row has this many vectors.
            unsafe { v128_store(to.as_mut_ptr().add(at * 4).cast(), lanes) };
        }
    }
}

/// Applies the epilogue to consecutive rows.
#[inline(never)]
fn apply_epilogue(
    output: &mut Output,
    [row, column]: [usize; 2],
    sums: &[[i32; NR]],
    columns: usize,
) {
    Epilogue::new(output, column, columns).rows(row, sums);
}

/// Sums some rows of a tile. Consecutive rows of sums are `stride` apart.
///
/// Without unrolling, a separate function leaves enough registers (10% faster on deep products).
/// With unrolling it does not, and inlining is faster.
#[inline(always)]
fn sum_rows<D: Dot>(
    dot: D,
    block: &Block,
    range: Range<usize>,
    tile: &Tile,
    sums: &mut [i32],
    stride: usize,
) {
    match D::UNROLL {
        1 => sum_rows_outlined(dot, block, range, tile, sums, stride),
        _ => sum_rows_inline(dot, block, range, tile, sums, stride),
    }
}

#[inline(never)]
fn sum_rows_outlined(
    dot: impl Dot,
    block: &Block,
    range: Range<usize>,
    tile: &Tile,
    sums: &mut [i32],
    stride: usize,
) {
    sum_rows_inline(dot, block, range, tile, sums, stride);
}

#[inline(always)]
fn sum_rows_inline(
    dot: impl Dot,
    block: &Block,
    range: Range<usize>,
    tile: &Tile,
    sums: &mut [i32],
    stride: usize,
) {
    let needed = range.len().saturating_sub(1) * stride + NR;
    assert!(sums.len() >= needed, "room for the sums");
    let (mut row, mut to) = (range.start, sums.as_mut_ptr());
    // SAFETY: asserted above; the caller of this module has checked that the block holds its rows
    // in whole steps.
    unsafe {
        while row + MR <= range.end {
            rows::<MR, _>(dot, block, row, tile, to, stride);
            row += MR;
            to = to.wrapping_add(MR * stride);
        }
        match range.end - row {
            3 => rows::<3, _>(dot, block, row, tile, to, stride),
            2 => rows::<2, _>(dot, block, row, tile, to, stride),
            1 => rows::<1, _>(dot, block, row, tile, to, stride),
            _ => {}
        }
    }
}

/// Weights and initial accumulators of a tile's columns.
struct Tile<'a> {
    packed: &'a [u8],
    steps: usize,
    initial: &'a [i32],
    factors: Option<&'a [i32]>,
}

impl<'a> Tile<'a> {
    fn new(block: &Block<'a>, weights: &'a Weights, column: usize) -> Tile<'a> {
        let steps = weights.steps();
        Tile {
            packed: &weights.packed[column * steps * 4..][..steps * NR * 4],
            steps,
            initial: &block.initial[column - block.columns.start..][..NR],
            factors: weights.row_factors.get(column..column + NR),
        }
    }
}

/// Four bytes of a row, and of a tile's columns, in memory order.
type Step = [u8; 4];
type Columns = [[u8; 16]; VECTORS];

/// Adds one step of a tile. `at` is relative to the row pointers.
///
/// # Safety
///
/// The rows hold this step.
#[inline(always)]
unsafe fn step<const ROWS: usize>(
    dot: impl Dot,
    rows: &[*const Step; ROWS],
    weights: &Columns,
    at: usize,
    sums: &mut [[v128; VECTORS]; ROWS],
) {
    let mut columns = [i32x4_splat(0); VECTORS];
    for (columns, weights) in columns.iter_mut().zip(weights) {
        // SAFETY: sixteen bytes.
        *columns = unsafe { v128_load(weights.as_ptr().cast()) };
    }
    for (row, sums) in rows.iter().zip(sums) {
        // SAFETY: by the contract.
        let bytes = unsafe { v128_load32_splat(row.add(at).cast()) };
        for (sums, &columns) in sums.iter_mut().zip(&columns) {
            *sums = dot.dot(*sums, bytes, columns);
        }
    }
}

/// Computes a tile of `ROWS` rows.
///
/// # Safety
///
/// The block holds `first .. first + ROWS` rows of `steps` · 4 bytes.
#[inline(always)]
unsafe fn rows<const ROWS: usize, D: Dot>(
    dot: D,
    block: &Block,
    first: usize,
    tile: &Tile,
    to: *mut i32,
    stride: usize,
) {
    let steps = tile.steps;
    let mut sums: [[v128; VECTORS]; ROWS] =
        core::array::from_fn(|_| core::array::from_fn(|at| load(tile.initial, at * 4)));
    if let Some(factors) = tile.factors {
        for (row, sums) in sums.iter_mut().enumerate() {
            let row_sum = i32x4_splat(block.row_sums[first + row]);
            for (at, sums) in sums.iter_mut().enumerate() {
                *sums = i32x4_add(*sums, i32x4_mul(load(factors, at * 4), row_sum));
            }
        }
    }
    // SAFETY: inside the block, by the function's contract.
    let mut rows: [*const Step; ROWS] = core::array::from_fn(|row| unsafe {
        block
            .values
            .as_ptr()
            .add((first + row) * block.stride)
            .cast()
    });
    let mut weights: *const Columns = tile.packed.as_ptr().cast();
    for _ in 0..steps / D::UNROLL {
        // SAFETY: `packed` holds `steps` columns' weights, each row `steps` times four bytes.
        unsafe {
            for at in 0..D::UNROLL {
                step(dot, &rows, &*weights.add(at), at, &mut sums);
            }
            weights = weights.add(D::UNROLL);
            for row in &mut rows {
                *row = row.add(D::UNROLL);
            }
        }
    }
    for at in 0..steps % D::UNROLL {
        // SAFETY: the last of them.
        unsafe { step(dot, &rows, &*weights.add(at), at, &mut sums) };
    }
    for (row, &sums) in sums.iter().enumerate() {
        for (at, lanes) in sums.into_iter().enumerate() {
            // SAFETY: by the contract.
            unsafe { v128_store(to.add(row * stride + at * 4).cast(), lanes) };
        }
    }
}
