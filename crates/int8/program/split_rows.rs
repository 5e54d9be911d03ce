//! Splits the rows of one operator between threads.
//!
//! Each thread computes whole elements of the output and no input changes meanwhile. The result is
//! therefore the same for any number of threads.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use octet_kernels::int8::Error;

use super::costs::{MAX_PIECES_PER_THREAD, MIN_PARALLEL_COST, MIN_PIECE_COST};
use super::spin_pool;
use super::thread_limit::threads;

/// Number of pieces for an operator of this cost, on the threads of this run; one if it is not
/// worth a division.
pub fn pieces(cost: usize) -> usize {
    let threads = threads();
    if threads == 1 || cost < MIN_PARALLEL_COST {
        return 1;
    }
    (cost / MIN_PIECE_COST).clamp(threads, threads * MAX_PIECES_PER_THREAD)
}

/// Runs `part` on ranges of rows of the output, in parallel if the cost justifies it. The last row
/// may be shorter.
pub fn split_rows<T: Send>(
    output: &mut [T],
    row: usize,
    cost: usize,
    part: impl Fn(Range<usize>, &mut [T]) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    split_rows_dyn(output, row, cost, &part)
}

/// Implementation of [`split_rows`] behind a `dyn` closure, so it is compiled only once per element
/// type.
fn split_rows_dyn<T: Send>(
    output: &mut [T],
    row: usize,
    cost: usize,
    part: &(dyn Fn(Range<usize>, &mut [T]) -> Result<(), Error> + Sync),
) -> Result<(), Error> {
    let rows = if row == 0 {
        0
    } else {
        output.len().div_ceil(row)
    };
    let count = pieces(cost).min(rows);
    if count < 2 {
        return part(0..rows, output);
    }
    // Sizes of pieces differ by one row at most. The longer ones are at both ends, where they start
    // first, because the slowest piece determines the time.
    let (each, more) = (rows / count, rows % count);
    let (front, back) = (more.div_ceil(2), more / 2);
    let first = |piece: usize| {
        let longer = piece.min(front) + (piece + back).saturating_sub(count);
        piece * each + longer
    };
    let mut left = output;
    let mut pieces = Vec::with_capacity(count);
    for piece in 0..count {
        let length = (first(piece + 1) - first(piece)) * row;
        let (cut, rest) = left.split_at_mut(length.min(left.len()));
        pieces.push(Mutex::new(Some(cut)));
        left = rest;
    }
    let failed = Mutex::new(None);
    spin_pool::run(count, |piece| {
        let output = pieces[piece]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let done = output.map(|output| part(first(piece)..first(piece + 1), output));
        if let Some(Err(error)) = done {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(()), Err)
}
