//! The float GEMM microkernel: MR rows of weights times a packed panel of NR columns.
//!
//! The MR × NR tile of sums stays in registers over the whole depth. Each step loads NR values and
//! MR weights and adds MR · NR products. These sizes fill x86-64's sixteen vector registers, with
//! room for the operands.

use super::FloatBytes;
use super::lanes::Lanes;

pub(super) const MR: usize = 4;
pub(super) const NR_VECTORS: usize = 2;
pub(super) const NR: usize = 4 * NR_VECTORS;

/// The accumulators of a tile, row by row.
pub(super) type AccumulatorTile = [[Lanes; NR_VECTORS]; MR];

/// Returns `start` plus the products of MR weight rows with one panel, summed in the order of the
/// depth. The weights are read as stored in the file.
#[inline(always)]
pub(super) fn tile(rows: [&[FloatBytes]; MR], panel: &[f32], start: [f32; MR]) -> AccumulatorTile {
    let mut sums = start.map(|bias| [Lanes::splat(bias); NR_VECTORS]);
    let [a, b, c, d] = rows;
    let steps = a.iter().zip(b).zip(c.iter().zip(d));
    for (((a, b), (c, d)), values) in steps.zip(panel.chunks_exact(NR)) {
        // SAFETY: a chunk of the panel has NR floats.
        let values: [Lanes; NR_VECTORS] =
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
