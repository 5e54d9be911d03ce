//! The tile in plain loops, written so that a compiler can make vector code of them.

use super::super::output::Output;
use super::{Block, HIGH, WIDE, Weights, narrow};

/// Multiplies a block.
pub(super) fn multiply(block: &Block, weights: &Weights, output: Output) {
    multiply_with(block, weights, output, tile);
}

/// The walk over the tiles. `tile` gets the rows' bytes and the tile's weights, and adds to the accumulators.
#[inline(always)]
pub(super) fn multiply_with(
    block: &Block,
    weights: &Weights,
    mut output: Output,
    tile: impl Fn([&[u8]; HIGH], &[u8], &mut [[i32; WIDE]; HIGH]),
) {
    if weights.narrow {
        return narrow::multiply(block, weights, output);
    }
    let row_bytes = weights.steps() * 4;
    let tile_bytes = row_bytes * WIDE;
    for first_column in block.columns.clone().step_by(WIDE) {
        let columns = WIDE.min(block.columns.end - first_column);
        let at = first_column - block.columns.start;
        let packed = &weights.packed[first_column / WIDE * tile_bytes..][..tile_bytes];
        let mut beginning = [0; WIDE];
        beginning.copy_from_slice(&block.beginnings[at..][..WIDE]);
        for first_row in (0..block.rows).step_by(HIGH) {
            let rows = HIGH.min(block.rows - first_row);
            let mut sums = [beginning; HIGH];
            if let Some(factors) = weights.row_factors.get(first_column..first_column + WIDE) {
                for (sums, &row_sum) in sums.iter_mut().zip(&block.row_sums[first_row..]) {
                    for (sum, &factor) in sums.iter_mut().zip(factors) {
                        *sum = sum.wrapping_add(factor.wrapping_mul(row_sum));
                    }
                }
            }
            // A row that isn't there is the last one again.
            let row = |row: usize| {
                &block.values[(first_row + row.min(rows - 1)) * block.stride..][..row_bytes]
            };
            tile([row(0), row(1), row(2), row(3)], packed, &mut sums);
            output.put_tile([first_row, at], &sums[..rows], columns);
        }
    }
}

/// Where the sums of a tile's columns go, of any row.
#[cfg(not(target_arch = "wasm32"))]
pub(in crate::int8) struct Finish<'o, 'a> {
    output: &'o mut Output<'a>,
    column: usize,
    columns: usize,
}

#[cfg(not(target_arch = "wasm32"))]
impl<'o, 'a> Finish<'o, 'a> {
    pub(in crate::int8) fn new(output: &'o mut Output<'a>, column: usize, columns: usize) -> Self {
        Finish {
            output,
            column,
            columns,
        }
    }

    /// A row of sums.
    #[inline(always)]
    pub(in crate::int8) fn sums(&mut self, row: usize, sums: &[i32; WIDE]) {
        let tile = core::slice::from_ref(sums);
        self.output.put_tile([row, self.column], tile, self.columns);
    }
}

#[inline(always)]
fn tile(rows: [&[u8]; HIGH], packed: &[u8], sums: &mut [[i32; WIDE]; HIGH]) {
    for (row, sums) in rows.into_iter().zip(sums) {
        let steps = row.as_chunks::<4>().0.iter();
        for (step, weights) in steps.zip(packed.as_chunks::<{ WIDE * 4 }>().0) {
            let [first, second] = [[step[0], step[1]], [step[2], step[3]]]
                .map(|bytes| i32::from(i16::from_le_bytes(bytes)));
            for (column, sum) in sums.iter_mut().enumerate() {
                let [a, b] = [0, 2].map(|at| {
                    let bytes = [weights[column * 4 + at], weights[column * 4 + at + 1]];
                    i32::from(i16::from_le_bytes(bytes))
                });
                *sum = sum.wrapping_add(first * a + second * b);
            }
        }
    }
}
