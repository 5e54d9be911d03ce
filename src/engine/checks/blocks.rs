//! Checks MatMulNBits: the block-wise weight of 2, 4 or 8 bits, its scales and its zero points.

use super::{Checked, Checking, MOST, Refusal, ensure};
use crate::onnx::schema::DataType;
use crate::prepare::{Known, count};

impl Checked<'_> {
    pub(super) fn blocks(&self) -> Checking {
        let [depth, columns] = [self.positive("K", None)?, self.positive("N", None)?];
        let bits = self.positive("bits", Some(4))?;
        ensure(matches!(bits, 2 | 4 | 8), "bits", bits, "2, 4 or 8")?;
        let block = self.positive("block_size", None)?;
        let sound = block >= 16 && (block as u64).is_power_of_two();
        ensure(sound, "block_size", block, "a power of two from 16 on")?;
        // K and N have 31 bits each, so their product fits.
        let all = depth.saturating_mul(columns);
        let wanted = format!("of {MOST} numbers at most");
        ensure(
            all as u64 <= MOST as u64,
            "its matrix",
            [depth, columns],
            wanted,
        )?;
        let blocks = (depth as u64).div_ceil(block as u64);
        let bytes = |bits: u64| columns as u64 * bits.div_ceil(8);
        // The last block is stored in full.
        self.holds(1, "its matrix B", bytes(blocks * (block * bits) as u64))?;
        self.holds(2, "its scales", columns as u64 * blocks)?;
        let packed = self.input(3).is_some_and(|z| z.element == DataType::Uint8);
        let zero_points = match packed {
            true => bytes(blocks * bits as u64),
            false => columns as u64 * blocks,
        };
        self.holds(3, "its zero points", zero_points)?;
        let last = self.shape(0).and_then(|shape| shape.len().checked_sub(1));
        if let Some(found) = last.and_then(|last| self.size(0, last)) {
            let wanted = format!("its K, {depth}");
            ensure(found == depth, "the last size of its input", found, wanted)?;
        }
        Ok(())
    }

    /// Fails if an input of known shape doesn't have `wanted` elements.
    fn holds(&self, slot: usize, what: &str, wanted: u64) -> Result<(), Refusal> {
        let found = self.input(slot).and_then(Known::sizes);
        let found = found.map(|sizes| count(&sizes) as u64);
        ensure(
            found.is_none_or(|found| found == wanted),
            what,
            format_args!("{} elements", found.unwrap_or_default()),
            format!("{wanted}, as its K, N, bits and block_size say"),
        )
    }
}
