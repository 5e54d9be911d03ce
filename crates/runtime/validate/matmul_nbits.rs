//! Checks MatMulNBits: the block-wise weight of 2, 4 or 8 bits, its scales and its zero points.

use super::{InvalidNode, MAX_ELEMENTS, NodeValidator, Validation, ensure};
use octet_graph::prepare::{InferredValue, count};
use octet_onnx::schema::DataType;

impl NodeValidator<'_> {
    pub(super) fn matmul_nbits(&self) -> Validation {
        let [depth, columns] = [self.positive("K", None)?, self.positive("N", None)?];
        let bits = self.positive("bits", Some(4))?;
        ensure(matches!(bits, 2 | 4 | 8), "bits", bits, "2, 4 or 8")?;
        let block = self.positive("block_size", None)?;
        let sound = block >= 16 && (block as u64).is_power_of_two();
        ensure(sound, "block_size", block, "a power of two of at least 16")?;
        // K and N have 31 bits each, so their product fits.
        let all = depth.saturating_mul(columns);
        let expected = format!("of at most {MAX_ELEMENTS} elements");
        ensure(
            all as u64 <= MAX_ELEMENTS as u64,
            "its matrix",
            [depth, columns],
            expected,
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
        if let Some(actual) = last.and_then(|last| self.size(0, last)) {
            let expected = format!("its K, {depth}");
            ensure(
                actual == depth,
                "the last size of its input",
                actual,
                expected,
            )?;
        }
        Ok(())
    }

    /// Fails if an input of known shape doesn't have `expected` elements.
    fn holds(&self, slot: usize, what: &str, expected: u64) -> Result<(), InvalidNode> {
        let actual = self.input(slot).and_then(InferredValue::sizes);
        let actual = actual.map(|sizes| count(&sizes) as u64);
        ensure(
            actual.is_none_or(|actual| actual == expected),
            what,
            format_args!("{} elements", actual.unwrap_or_default()),
            format!("{expected}, as its K, N, bits and block_size say"),
        )
    }
}
