//! GEMM with few columns, as in convolutions that output a mask or a heat map.
//!
//! Vectors lie along the depth of a row and of a column, and their lanes are added at the end. A
//! tile kernel would take the same time for one column as for [`NR`].

use super::super::output::Output;
use super::{Block, NR, Weights};

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) use simd128::multiply_with;

/// Multiplies a block of i16 values in loops that the compiler can vectorize.
#[inline(always)]
pub(super) fn multiply(block: &Block, weights: &Weights, mut output: Output) {
    let length = weights.steps() * 4;
    for row in 0..block.rows {
        let values = &block.values[row * block.stride..][..length];
        let mut sums = [[0; NR]];
        for column in block.columns.clone() {
            let packed = &weights.packed[column * length..][..length];
            sums[0][column] =
                initial_accumulator(block, weights, row, column).wrapping_add(dot(values, packed));
        }
        output.put_tile([row, 0], &sums, block.columns.len());
    }
}

/// Returns the initial accumulator of a row and a column.
#[inline(always)]
fn initial_accumulator(block: &Block, weights: &Weights, row: usize, column: usize) -> i32 {
    let more = match weights.row_factors.get(column) {
        Some(factor) => factor.wrapping_mul(block.row_sums[row]),
        None => 0,
    };
    block.initial[column].wrapping_add(more)
}

/// Returns the dot product of two i16 rows.
#[inline(always)]
fn dot(a: &[u8], b: &[u8]) -> i32 {
    let (a, b) = (a.as_chunks::<2>().0, b.as_chunks::<2>().0);
    a.iter().zip(b).fold(0i32, |sum, (&a, &b)| {
        let [a, b] = [a, b].map(|word| i32::from(i16::from_le_bytes(word)));
        sum.wrapping_add(a * b)
    })
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128 {
    use core::arch::wasm32::{i32x4_add, i32x4_shuffle, i32x4_splat, v128, v128_load};
    use core::ops::Range;

    use super::super::super::output::Output;
    use super::super::super::vector::store;
    use super::super::dot::{Dot, EPILOGUE_ROWS};
    use super::super::pack::VECTOR_STEPS;
    use super::super::{Block, Epilogue, MR, NR, Weights};
    use super::initial_accumulator;

    /// Multiplies a block.
    #[inline(never)]
    pub(in super::super) fn multiply_with(
        dot: impl Dot,
        block: &Block,
        weights: &Weights,
        mut output: Output,
    ) {
        let mut sums = [[0; NR]; EPILOGUE_ROWS];
        for first in (0..block.rows).step_by(EPILOGUE_ROWS) {
            let rows = first..block.rows.min(first + EPILOGUE_ROWS);
            let sums = &mut sums[..rows.len()];
            for column in block.columns.clone() {
                sum_rows(dot, block, rows.clone(), weights, column, sums);
            }
            Epilogue::new(&mut output, 0, block.columns.len()).rows(first, sums);
        }
    }

    /// Computes the sums of some rows with one column.
    #[inline(always)]
    fn sum_rows(
        dot: impl Dot,
        block: &Block,
        rows: Range<usize>,
        weights: &Weights,
        column: usize,
        sums: &mut [[i32; NR]],
    ) {
        let length = weights.steps() * 4;
        let packed = &weights.packed[column * length..][..length];
        for (first, sums) in rows.clone().step_by(MR).zip(sums.chunks_mut(MR)) {
            let values: [&[u8]; MR] = core::array::from_fn(|at| {
                // Missing rows repeat the last one; their results are discarded.
                let row = (first + at).min(rows.end - 1);
                &block.values[row * block.stride..][..length]
            });
            let mut lanes = [0; MR];
            store(&mut lanes, 0, four_sums(dot, values, packed));
            for (at, (sums, sum)) in sums.iter_mut().zip(lanes).enumerate() {
                let begin = initial_accumulator(block, weights, first + at, column);
                sums[column] = begin.wrapping_add(sum);
            }
        }
    }

    /// Returns the dot products of four rows with a column, one per lane. All have the same length,
    /// in whole vectors.
    #[inline(always)]
    fn four_sums(dot: impl Dot, rows: [&[u8]; MR], packed: &[u8]) -> v128 {
        let mut sums = [i32x4_splat(0); MR];
        for at in (0..packed.len() / (4 * VECTOR_STEPS)).map(|vector| vector * 4 * VECTOR_STEPS) {
            let load = |bytes: &[u8]| {
                debug_assert!(at + 16 <= bytes.len());
                // SAFETY: all slices are as long as `packed`, and this is a whole vector of it.
                unsafe { v128_load(bytes.as_ptr().add(at).cast()) }
            };
            let weights = load(packed);
            for (sums, row) in sums.iter_mut().zip(rows) {
                *sums = dot.dot(*sums, load(row), weights);
            }
        }
        let pairs = |a: v128, b: v128| {
            let (even, odd) = (
                i32x4_shuffle::<0, 4, 2, 6>(a, b),
                i32x4_shuffle::<1, 5, 3, 7>(a, b),
            );
            i32x4_add(even, odd)
        };
        let [a, b, c, d] = sums;
        let (low, high) = (pairs(a, b), pairs(c, d));
        i32x4_add(
            i32x4_shuffle::<0, 1, 4, 5>(low, high),
            i32x4_shuffle::<2, 3, 6, 7>(low, high),
        )
    }
}
