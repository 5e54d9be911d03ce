//! Rows of one operator shared out among the threads.
//!
//! Each thread computes whole elements of the output from what nobody writes, so the bits are the same for any number
//! of them.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use octet_kernels::int8::Error;

use super::team;

/// What costs less is not worth waking threads for. A unit is an element that is moved or computed, or
/// [`MULTIPLICATIONS`] of a product.
pub(super) const LEAST: usize = 1 << 13;

/// What costs more is cut into two pieces a thread, which evens out what else the machine does.
pub(super) const MUCH: usize = 1 << 18;

/// Multiplications of a product that cost as much as an element.
const MULTIPLICATIONS: usize = 16;

/// What a product of so many multiplications costs, in the units of [`share`].
pub(in super::super) fn cost_of_product(multiplications: usize) -> usize {
    multiplications / MULTIPLICATIONS
}

/// Runs `part` on rows of the output, of which the last may be shorter, on several threads where there is enough to do.
pub(in super::super) fn share<T: Send>(
    output: &mut [T],
    row: usize,
    cost: usize,
    part: impl Fn(Range<usize>, &mut [T]) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    cut(output, row, cost, &part)
}

/// What [`share`] does, compiled once for all that is shared.
fn cut<T: Send>(
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
    let threads = rayon::current_num_threads();
    if threads == 1 || rows < 2 || cost < LEAST {
        return part(0..rows, output);
    }
    let count = threads * if cost > MUCH { 2 } else { 1 };
    let count = count.min(rows);
    // Pieces that differ by a row at most, the longer ones at both ends, where they are begun first: who waits waits for the last.
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
    team::run(count, |piece| {
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
