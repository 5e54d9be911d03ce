//! Rows of one operator shared out among the threads.
//!
//! Each thread computes whole elements of the output from what nobody writes, so the bits are the same for any number
//! of them.

use std::ops::Range;

use octet_kernels::int8::Error;
use rayon::prelude::*;

/// What costs less is not worth waking threads for. A unit is an element that is moved or computed, or
/// [`MULTIPLICATIONS`] of a product.
const LEAST: usize = 1 << 15;

/// Multiplications of a product that cost as much as an element.
const MULTIPLICATIONS: usize = 16;

/// What a product of so many multiplications costs, in the units of [`share`].
pub(super) fn cost_of_product(multiplications: usize) -> usize {
    multiplications / MULTIPLICATIONS
}

/// Runs `part` on rows of the output, on several threads where there is enough to do.
pub(super) fn share<T: Send>(
    output: &mut [T],
    row: usize,
    cost: usize,
    part: impl Fn(Range<usize>, &mut [T]) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let rows = output.len().checked_div(row).unwrap_or(0);
    let threads = rayon::current_num_threads();
    if threads == 1 || rows < 2 || cost < LEAST {
        return part(0..rows, output);
    }
    // A few pieces a thread even out what else the machine does.
    let each = rows.div_ceil(threads * 2).max(1);
    output
        .par_chunks_mut(each * row)
        .enumerate()
        .try_for_each(|(piece, output)| {
            let first = piece * each;
            part(first..first + output.len() / row, output)
        })
}
