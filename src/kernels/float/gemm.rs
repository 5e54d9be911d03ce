//! The product of rows of weights and a packed panel of columns.
//!
//! A tile of `ROWS` × `COLUMNS` sums stays in registers while the depth is walked once: each step reads
//! `COLUMNS` values and `ROWS` weights and makes `ROWS * COLUMNS` products. The sizes are what fits into the
//! sixteen vector registers of x86-64 with room for what is read.

use super::Raw;
use super::lanes::Lanes;

pub(super) const ROWS: usize = 4;
pub(super) const LANES: usize = 2;
pub(super) const COLUMNS: usize = 4 * LANES;

/// A tile of sums, row after row.
pub(super) type Tile = [[Lanes; LANES]; ROWS];

/// The products of `ROWS` rows of weights, as they lie in a file, and one panel, summed in the order of the depth onto `start`.
#[inline(always)]
pub(super) fn tile(rows: [&[Raw]; ROWS], panel: &[f32], start: [f32; ROWS]) -> Tile {
    let mut sums = start.map(|bias| [Lanes::splat(bias); LANES]);
    let [a, b, c, d] = rows;
    let steps = a.iter().zip(b).zip(c.iter().zip(d));
    for (((a, b), (c, d)), values) in steps.zip(panel.chunks_exact(COLUMNS)) {
        // SAFETY: a chunk of the panel has COLUMNS floats.
        let values: [Lanes; LANES] =
            std::array::from_fn(|lane| unsafe { Lanes::load(values.as_ptr().add(4 * lane)) });
        for (sums, weight) in sums.iter_mut().zip([a, b, c, d]) {
            let weight = Lanes::splat(f32::from_le_bytes(*weight));
            for (sum, &value) in sums.iter_mut().zip(&values) {
                *sum = sum.add_product(value, weight);
            }
        }
    }
    sums
}
