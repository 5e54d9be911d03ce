//! GatherBlockQuantized: rows of a table of 2, 4 or 8 bits in blocks, looked up and dequantized.

use super::Operator;
use super::Property::OnlyQuantized;
use super::node_context::{NodeContext, Validation, ensure};
use super::shape_context::ShapeContext;
use crate::inferred_value::{InferredValue, position};
use crate::{Dim, Node};
use octet_onnx::schema::DataType;

/// Default block size and number of bits.
const BLOCK: i64 = 128;
const BITS: i64 = 4;

pub(super) static OPERATORS: &[Operator] = &[Operator::microsoft("GatherBlockQuantized")
    .with(&[OnlyQuantized])
    .requires(3)
    .at_most(4)
    .ranks(&[(0, 1)])
    .checks(table)
    .infers(rows)];

/// Integers in an element of the table: bytes hold several, other types one.
fn packed(node: &Node, element: DataType) -> usize {
    match (element, node.int("bits").unwrap_or(BITS)) {
        (DataType::Uint8, bits @ (2 | 4)) => 8 / bits as usize,
        _ => 1,
    }
}

fn rows(ctx: &ShapeContext) -> Option<InferredValue> {
    let (data, scales) = (ctx.input(0)?, ctx.input(2)?);
    let unknown = InferredValue::new(scales.element, None);
    let indices = ctx.input(1).and_then(|indices| indices.shape.as_deref());
    let (Some(shape), Some(indices)) = (data.shape.as_deref(), indices) else {
        return Some(unknown);
    };
    let mut shape = shape.to_vec();
    if let Some(Dim::Known(last)) = shape.last_mut() {
        *last *= packed(ctx.node, data.element);
    }
    let axis = position(ctx.node.int("gather_axis").unwrap_or(0), shape.len())?;
    let dims = [&shape[..axis], indices, &shape[axis + 1..]].concat();
    Some(InferredValue::new(scales.element, Some(dims)))
}

fn table(ctx: &NodeContext) -> Validation {
    let bits = ctx.positive("bits", Some(BITS))?;
    ensure(matches!(bits, 2 | 4 | 8), "bits", bits, "2, 4 or 8")?;
    let block = ctx.positive("block_size", Some(BLOCK))?;
    let sound = block >= 16 && (block as u64).is_power_of_two();
    ensure(sound, "block_size", block, "a power of two of at least 16")?;
    let Some(data) = ctx.input(0) else {
        return Ok(());
    };
    let Some(shape) = data.shape.as_deref() else {
        return Ok(());
    };
    let axis = |key: &str, usual: i64| {
        let axis = ctx.node.int(key).unwrap_or(usual);
        let found = position(axis, shape.len());
        let expected = format!("an axis of its input of shape {shape:?}");
        ensure(found.is_some(), key, axis, expected).map(|()| found.unwrap_or_default())
    };
    let (gathered, blocked) = (axis("gather_axis", 0)?, axis("quantize_axis", 1)?);
    if data.element == DataType::Uint8 {
        ensure(
            gathered == 0,
            "gather_axis",
            gathered,
            "0 for a table of bytes",
        )?;
        let last = shape.len() - 1;
        let expected = format!("{last}, the last axis, for a table of bytes");
        ensure(
            blocked == last && last > 0,
            "quantize_axis",
            blocked,
            expected,
        )?;
    }
    let packed = packed(ctx.node, data.element);
    let blocks = |size: usize| (size * packed).div_ceil(block as usize);
    let each = |slot: usize, of: &dyn Fn(usize) -> usize| {
        let Some(own) = ctx.shape(slot) else {
            return Ok(());
        };
        let expected = shape.iter().enumerate().map(|(axis, dim)| match dim {
            Dim::Known(size) if axis == blocked => Dim::Known(of(*size)),
            Dim::Known(size) => Dim::Known(*size),
            _ => Dim::Unknown,
        });
        let expected: Vec<Dim> = expected.collect();
        let fits = own.len() == expected.len()
            && own.iter().zip(&expected).all(|pair| match pair {
                (Dim::Known(own), Dim::Known(expected)) => own == expected,
                _ => true,
            });
        ensure(
            fits,
            &format!("the shape of its input {slot}"),
            own,
            format!("{expected:?}"),
        )
    };
    each(2, &blocks)?;
    each(3, &|size| blocks(size).div_ceil(packed))
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::{Floats, Integers};
    use super::super::test_models::{checked, model};
    use crate::{Attribute, MICROSOFT, Node};

    /// A lookup in a table of 4 rows of 32 numbers of one element each.
    fn lookup(attributes: &[(&str, i64)], scales: &[usize]) -> Result<(), String> {
        let mut node = Node::new("GatherBlockQuantized", "the node", &["x"], &["y"]);
        node.domain = Some(MICROSOFT.into());
        for (name, usual) in [("block_size", 16), ("bits", 8), ("gather_axis", 0)] {
            let changed = attributes.iter().find(|(key, _)| *key == name);
            let value = changed.map_or(usual, |&(_, value)| value);
            node = node.with(Attribute::int(name, value));
        }
        let numbers = vec![1.0; scales.iter().product()];
        let extra = [Integers(&[0, 3]), Floats(scales, &numbers)];
        checked(&model(node, &[4, 32], &extra), None)
    }

    #[test]
    fn a_table_in_blocks_has_all_of_its_scales() {
        assert!(lookup(&[], &[4, 2]).is_ok());
        assert!(lookup(&[], &[4, 1]).is_err());
        assert!(lookup(&[], &[2, 4]).is_err());
        for (name, value) in [
            ("gather_axis", 2),
            ("gather_axis", -3),
            ("bits", 3),
            ("block_size", 24),
        ] {
            assert!(lookup(&[(name, value)], &[4, 2]).is_err(), "{name} {value}");
        }
    }
}
