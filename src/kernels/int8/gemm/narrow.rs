//! Products with few columns, as of a convolution that makes a mask or a heat map: vectors lie along the depth of a row and of a
//! column, and their lanes are added up in the end. A tile would be as slow with one column as with [`WIDE`].

use super::super::output::Output;
use super::{Block, WIDE, Weights};

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) use simd128::multiply_with;

/// Multiplies a block of words in plain loops, of which a compiler can make vector code.
#[inline(always)]
pub(super) fn multiply(block: &Block, weights: &Weights, mut output: Output) {
    let length = weights.steps() * 4;
    for row in 0..block.rows {
        let values = &block.values[row * block.stride..][..length];
        let mut sums = [[0; WIDE]];
        for column in block.columns.clone() {
            let packed = &weights.packed[column * length..][..length];
            sums[0][column] =
                beginning(block, weights, row, column).wrapping_add(dot(values, packed));
        }
        output.put_tile([row, 0], &sums, block.columns.len());
    }
}

/// What the sum of a row and a column begins with.
#[inline(always)]
fn beginning(block: &Block, weights: &Weights, row: usize, column: usize) -> i32 {
    let more = match weights.row_factors.get(column) {
        Some(factor) => factor.wrapping_mul(block.row_sums[row]),
        None => 0,
    };
    block.beginnings[column].wrapping_add(more)
}

/// The products of two rows of i16.
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
    use super::super::pack::STEPS;
    use super::super::simd128::{Dot, TOGETHER};
    use super::super::{Block, Finish, HIGH, WIDE, Weights};
    use super::beginning;

    /// Multiplies a block.
    #[inline(never)]
    pub(in super::super) fn multiply_with(
        dot: impl Dot,
        block: &Block,
        weights: &Weights,
        mut output: Output,
    ) {
        let mut sums = [[0; WIDE]; TOGETHER];
        for first in (0..block.rows).step_by(TOGETHER) {
            let rows = first..block.rows.min(first + TOGETHER);
            let sums = &mut sums[..rows.len()];
            for column in block.columns.clone() {
                sum_rows(dot, block, rows.clone(), weights, column, sums);
            }
            Finish::new(&mut output, 0, block.columns.len()).rows(first, sums);
        }
    }

    /// The sums of some rows with a column.
    #[inline(always)]
    fn sum_rows(
        dot: impl Dot,
        block: &Block,
        rows: Range<usize>,
        weights: &Weights,
        column: usize,
        sums: &mut [[i32; WIDE]],
    ) {
        let length = weights.steps() * 4;
        let packed = &weights.packed[column * length..][..length];
        for (first, sums) in rows.clone().step_by(HIGH).zip(sums.chunks_mut(HIGH)) {
            let values: [&[u8]; HIGH] = core::array::from_fn(|at| {
                // A row that isn't there is the last one again.
                let row = (first + at).min(rows.end - 1);
                &block.values[row * block.stride..][..length]
            });
            let mut lanes = [0; HIGH];
            store(&mut lanes, 0, four_sums(dot, values, packed));
            for (at, (sums, sum)) in sums.iter_mut().zip(lanes).enumerate() {
                let begin = beginning(block, weights, first + at, column);
                sums[column] = begin.wrapping_add(sum);
            }
        }
    }

    /// The products of four rows with a column, a lane each. All are of one length, whole vectors.
    #[inline(always)]
    fn four_sums(dot: impl Dot, rows: [&[u8]; HIGH], packed: &[u8]) -> v128 {
        let mut sums = [i32x4_splat(0); HIGH];
        for at in (0..packed.len() / (4 * STEPS)).map(|vector| vector * 4 * STEPS) {
            let load = |bytes: &[u8]| {
                debug_assert!(at + 16 <= bytes.len());
                // SAFETY: all are as long as `packed`, of which this is a whole vector.
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
