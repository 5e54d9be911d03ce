//! The product of packed weights and a packed panel of columns.
//!
//! A tile of `ROWS` × `COLUMNS` sums stays in registers while the depth is walked once: each step reads
//! `COLUMNS` values and `ROWS` weights and makes `ROWS * COLUMNS` products. The sizes are what fits into the
//! sixteen vector registers of x86-64 with room for what is read.

use super::lanes::Lanes;

pub(super) const ROWS: usize = 4;
const LANES: usize = 2;
pub(super) const COLUMNS: usize = 4 * LANES;

/// A tile of sums, row after row.
pub(super) type Tile = [[Lanes; LANES]; ROWS];

/// Packs the rows of a matrix of `depth` columns behind what is packed: `ROWS` rows side by side, the missing
/// ones zero.
pub(super) fn pack_rows(matrix: &[f32], depth: usize, packed: &mut Vec<f32>) {
    let rows = matrix.len() / depth;
    packed.reserve_exact(rows.next_multiple_of(ROWS) * depth);
    for rows in matrix.chunks(ROWS * depth) {
        let mut row = [&[][..]; ROWS];
        for (row, values) in row.iter_mut().zip(rows.chunks_exact(depth)) {
            *row = values;
        }
        for step in 0..depth {
            packed.extend(row.map(|values| values.get(step).copied().unwrap_or(0.0)));
        }
    }
}

/// The products of one tile of rows and one panel, summed in the order of the depth onto `start`.
#[inline(always)]
pub(super) fn tile(rows: &[f32], panel: &[f32], start: [f32; ROWS]) -> Tile {
    let mut sums = start.map(|bias| [Lanes::splat(bias); LANES]);
    for (weights, values) in rows.chunks_exact(ROWS).zip(panel.chunks_exact(COLUMNS)) {
        // SAFETY: a chunk of the panel has COLUMNS floats.
        let values: [Lanes; LANES] =
            std::array::from_fn(|lane| unsafe { Lanes::load(values.as_ptr().add(4 * lane)) });
        for (sums, &weight) in sums.iter_mut().zip(weights) {
            let weight = Lanes::splat(weight);
            for (sum, &value) in sums.iter_mut().zip(&values) {
                *sum = sum.add_product(value, weight);
            }
        }
    }
    sums
}
