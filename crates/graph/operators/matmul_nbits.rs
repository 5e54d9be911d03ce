//! MatMulNBits: a product with a weight of 2, 4 or 8 bits in blocks.

use super::Operator;
use super::Property::{MatrixProduct, OnlyQuantized};
use super::node_context::{MAX_ELEMENTS, NodeContext, Validation, ensure};
use super::properties::MacRule;
use super::shape_context::ShapeContext;
use crate::Dim;
use crate::inferred_value::{InferredValue, count};
use octet_onnx::schema::DataType;

pub(super) static OPERATORS: &[Operator] = &[Operator::microsoft("MatMulNBits")
    .requires(0)
    .checks(blocks)
    .with(&[MatrixProduct, OnlyQuantized])
    .infers(product)
    .macs(MacRule::Product)];

/// The shape of the input, with the matrix' columns as its last axis.
fn product(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let columns = ctx.node.int("N").and_then(|n| usize::try_from(n).ok());
    let mut shape = input.shape.clone();
    if let Some(last) = shape.as_mut().and_then(|shape| shape.last_mut()) {
        *last = columns.map_or(Dim::Unknown, Dim::Known);
    }
    Some(InferredValue::new(input.element, shape))
}

fn blocks(ctx: &NodeContext) -> Validation {
    let [depth, columns] = [ctx.positive("K", None)?, ctx.positive("N", None)?];
    let bits = ctx.positive("bits", Some(4))?;
    ensure(matches!(bits, 2 | 4 | 8), "bits", bits, "2, 4 or 8")?;
    let block = ctx.positive("block_size", None)?;
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
    holds(
        ctx,
        1,
        "its matrix B",
        bytes(blocks * (block * bits) as u64),
    )?;
    holds(ctx, 2, "its scales", columns as u64 * blocks)?;
    let packed = ctx.input(3).is_some_and(|z| z.element == DataType::Uint8);
    let zero_points = match packed {
        true => bytes(blocks * bits as u64),
        false => columns as u64 * blocks,
    };
    holds(ctx, 3, "its zero points", zero_points)?;
    let last = ctx.shape(0).and_then(|shape| shape.len().checked_sub(1));
    if let Some(actual) = last.and_then(|last| ctx.size(0, last)) {
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
fn holds(ctx: &NodeContext, slot: usize, what: &str, expected: u64) -> Validation {
    let actual = ctx.input(slot).and_then(InferredValue::sizes);
    let actual = actual.map(|sizes| count(&sizes) as u64);
    ensure(
        actual.is_none_or(|actual| actual == expected),
        what,
        format_args!("{} elements", actual.unwrap_or_default()),
        format!("{expected}, as its K, N, bits and block_size say"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::Floats;
    use super::super::test_models::{checked, model};
    use crate::{Attribute, MICROSOFT, Node};

    /// A MatMulNBits of 32 rows and 8 columns.
    fn product(attributes: &[(&str, i64)], matrix: usize, scales: usize) -> Result<(), String> {
        let all = [("K", 32), ("N", 8), ("bits", 4), ("block_size", 16)];
        let mut product = Node::new("MatMulNBits", "the node", &["x"], &["y"]);
        product.domain = Some(MICROSOFT.into());
        for (name, usual) in all {
            let changed = attributes.iter().find(|(key, _)| *key == name);
            let value = changed.map_or(usual, |&(_, value)| value);
            product = product.with(Attribute::int(name, value));
        }
        let (matrix, scales) = ([matrix], [scales]);
        let numbers = vec![0.0; matrix[0].max(scales[0])];
        let extra = [
            Floats(&matrix, &numbers[..matrix[0]]),
            Floats(&scales, &numbers[..scales[0]]),
        ];
        checked(&model(product, &[2, 32], &extra), None)
    }

    #[test]
    fn a_matrix_in_blocks_has_all_of_its_numbers() {
        assert!(product(&[], 128, 16).is_ok());
        assert!(product(&[], 112, 16).is_err());
        assert!(product(&[], 128, 8).is_err());
        for (name, value) in [
            ("block_size", 0),
            ("block_size", 24),
            ("block_size", 1 << 40),
            ("K", 1 << 40),
            ("K", 31),
            ("N", 1 << 40),
            ("N", 0),
            ("bits", 3),
        ] {
            assert!(
                product(&[(name, value)], 128, 16).is_err(),
                "{name} {value}"
            );
        }
    }
}
