//! Loops over floats whose output the threads of a run share.

use std::ops::Range;

/// Runs `part` on ranges of rows of the output, which have `row` floats each. A thread of the pool
/// runs one of several samples, so it has no others to share with.
pub(super) fn share_rows(
    output: &mut [f32],
    row: usize,
    cost: usize,
    part: impl Fn(Range<usize>, &mut [f32]) + Sync,
) {
    if octet_int8::is_worker() {
        return part(0..output.len().div_ceil(row.max(1)), output);
    }
    // The parts return no error, so the whole doesn't.
    let _ = octet_int8::with_pool(|| {
        octet_int8::split_rows(output, row, cost, |rows, output| {
            part(rows, output);
            Ok(())
        })
    });
}
