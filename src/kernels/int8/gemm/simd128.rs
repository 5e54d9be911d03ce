//! The tile in WebAssembly's SIMD: four rows by eight columns, eight accumulators of four lanes.
//!
//! One step is the same whatever the instruction: the four bytes of a row are broadcast and multiplied into four
//! columns' four bytes. Here these are two i16 (`i32x4.dot_i16x8_s`); `relaxed` has the others.

use core::arch::wasm32::{
    i32x4_add, i32x4_dot_i16x8, i32x4_mul, i32x4_splat, v128, v128_load, v128_load32_splat,
    v128_store,
};

use core::ops::Range;

use super::super::output::Output;
use super::super::vector::load;
use super::{Block, Finish, HIGH, WIDE, Weights, narrow};

/// Vectors of a tile's row.
const VECTORS: usize = WIDE / 4;

/// Adds products of a row's four bytes (broadcast) and four columns' weights.
pub(in crate::int8) trait Dot: Copy {
    /// Steps in a turn of gemm's loop. More than one makes the loop cheaper, but the compiler then loads ahead, and
    /// only where the product itself takes several instructions do registers suffice for that (with two, simd128 and
    /// the fused form were measured at half their speed).
    const STEPS: usize = 1;

    fn dot(self, sums: v128, row: v128, weights: v128) -> v128;
}

/// Two i16 each.
#[derive(Clone, Copy)]
pub(in crate::int8) struct Wide;

impl Dot for Wide {
    #[inline(always)]
    fn dot(self, sums: v128, row: v128, weights: v128) -> v128 {
        i32x4_add(sums, i32x4_dot_i16x8(row, weights))
    }
}

/// Rows whose sums wait for what becomes of them.
pub(super) const TOGETHER: usize = 64;

/// Multiplies a block.
pub(super) fn multiply(block: &Block, weights: &Weights, output: Output) {
    multiply_with(Wide, block, weights, output);
}

/// The walk over the tiles: a tile's weights stay in the cache while the rows go by. Products and what becomes of the sums take
/// turns, since the registers hold what one of both needs. A function of its own for each product, so that a browser has
/// only what runs to compile well before it is fast.
#[inline(never)]
pub(super) fn multiply_with(dot: impl Dot, block: &Block, weights: &Weights, mut output: Output) {
    if weights.narrow {
        return narrow::multiply_with(dot, block, weights, output);
    }
    if let Output::Accumulators { values, stride } = &mut output
        && block.columns.len() % WIDE == 0
    {
        for column in block.columns.clone().step_by(WIDE) {
            let tile = Tile::new(block, weights, column);
            let values = &mut values[column - block.columns.start..];
            sum_rows(dot, block, 0..block.rows, &tile, values, *stride);
        }
        return;
    }
    let mut sums = [0; TOGETHER * WIDE];
    for column in block.columns.clone().step_by(WIDE) {
        let columns = WIDE.min(block.columns.end - column);
        let at = column - block.columns.start;
        let tile = Tile::new(block, weights, column);
        for first in (0..block.rows).step_by(TOGETHER) {
            let rows = first..block.rows.min(first + TOGETHER);
            let sums = &mut sums[..rows.len() * WIDE];
            sum_rows(dot, block, rows, &tile, sums, WIDE);
            finish(&mut output, [first, at], sums.as_chunks().0, columns);
        }
    }
}

/// What becomes of the sums of neighbouring rows.
#[inline(never)]
fn finish(output: &mut Output, [row, column]: [usize; 2], sums: &[[i32; WIDE]], columns: usize) {
    Finish::new(output, column, columns).rows(row, sums);
}

/// Sums some rows of a tile; from a row's sums to the next it is `stride`.
///
/// Where one step is a turn of the loop, registers suffice in a function of its own (a tenth faster on deep products); where
/// two are, they don't in either place, and it is faster where it is called.
#[inline(always)]
fn sum_rows<D: Dot>(
    dot: D,
    block: &Block,
    which: Range<usize>,
    tile: &Tile,
    sums: &mut [i32],
    stride: usize,
) {
    match D::STEPS {
        1 => sum_rows_apart(dot, block, which, tile, sums, stride),
        _ => sum_rows_inline(dot, block, which, tile, sums, stride),
    }
}

#[inline(never)]
fn sum_rows_apart(
    dot: impl Dot,
    block: &Block,
    which: Range<usize>,
    tile: &Tile,
    sums: &mut [i32],
    stride: usize,
) {
    sum_rows_inline(dot, block, which, tile, sums, stride);
}

#[inline(always)]
fn sum_rows_inline(
    dot: impl Dot,
    block: &Block,
    which: Range<usize>,
    tile: &Tile,
    sums: &mut [i32],
    stride: usize,
) {
    let needed = which.len().saturating_sub(1) * stride + WIDE;
    assert!(sums.len() >= needed, "room for the sums");
    let (mut row, mut to) = (which.start, sums.as_mut_ptr());
    // SAFETY: as asserted; `multiply` of the module above has checked that the block holds its rows of whole steps.
    unsafe {
        while row + HIGH <= which.end {
            rows::<HIGH, _>(dot, block, row, tile, to, stride);
            row += HIGH;
            to = to.wrapping_add(HIGH * stride);
        }
        match which.end - row {
            3 => rows::<3, _>(dot, block, row, tile, to, stride),
            2 => rows::<2, _>(dot, block, row, tile, to, stride),
            1 => rows::<1, _>(dot, block, row, tile, to, stride),
            _ => {}
        }
    }
}

/// The weights of a tile's columns, and what its sums begin with.
struct Tile<'a> {
    packed: &'a [u8],
    steps: usize,
    beginnings: &'a [i32],
    factors: Option<&'a [i32]>,
}

impl<'a> Tile<'a> {
    fn new(block: &Block<'a>, weights: &'a Weights, column: usize) -> Tile<'a> {
        let steps = weights.steps();
        Tile {
            packed: &weights.packed[column * steps * 4..][..steps * WIDE * 4],
            steps,
            beginnings: &block.beginnings[column - block.columns.start..][..WIDE],
            factors: weights.row_factors.get(column..column + WIDE),
        }
    }
}

/// Four bytes of a row, and of a tile's columns, as they lie in memory.
type Step = [u8; 4];
type Columns = [[u8; 16]; VECTORS];

/// One step of a tile: the rows' bytes at a step from where they point.
///
/// # Safety
///
/// The rows have them.
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

/// A tile of `ROWS` rows.
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
        core::array::from_fn(|_| core::array::from_fn(|at| load(tile.beginnings, at * 4)));
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
    for _ in 0..steps / D::STEPS {
        // SAFETY: `packed` holds `steps` columns' weights, each row `steps` times four bytes.
        unsafe {
            for at in 0..D::STEPS {
                step(dot, &rows, &*weights.add(at), at, &mut sums);
            }
            weights = weights.add(D::STEPS);
            for row in &mut rows {
                *row = row.add(D::STEPS);
            }
        }
    }
    for at in 0..steps % D::STEPS {
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
