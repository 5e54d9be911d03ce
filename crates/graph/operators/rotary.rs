//! RotaryEmbedding: rotates pairs within each head by angles of the token's position.

use super::Operator;
use super::Property::ChangesVectors;
use super::node_context::{NodeContext, Validation, ensure};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("RotaryEmbedding")
        .with(&[ChangesVectors])
        .requires(3)
        .at_most(4)
        .checks(|ctx| rotated(ctx, 1))
        .infers_same(),
    Operator::microsoft("RotaryEmbedding")
        .with(&[ChangesVectors])
        .requires(4)
        .at_most(4)
        .checks(|ctx| rotated(ctx, 2))
        .infers_same(),
];

/// Checks the input, and the tables of cosines and sines, which begin at this slot.
fn rotated(ctx: &NodeContext, tables: usize) -> Validation {
    let Some(shape) = ctx.shape(0) else {
        return Ok(());
    };
    let rank = shape.len();
    let what = "the shape of its input 0";
    ensure(matches!(rank, 3 | 4), what, shape, "of 3 or 4 axes")?;
    let heads = ctx.node.int("num_heads").filter(|&heads| heads != 0);
    if let (3, Some(heads)) = (rank, heads) {
        let wide = ctx.size(0, 2).unwrap_or_default();
        let expected = format!("a divisor of the last size of its input, {wide}");
        ensure(heads > 0 && wide % heads == 0, "num_heads", heads, expected)?;
    }
    let last = |slot: usize| {
        let rank = ctx.shape(slot)?.len();
        ctx.size(slot, rank.checked_sub(1)?)
    };
    let [cosines, sines] = [tables, tables + 1].map(last);
    if let (Some(cosines), Some(sines)) = (cosines, sines) {
        let what = "the last size of its sines";
        let expected = format!("{cosines}, as that of its cosines");
        ensure(cosines == sines, what, sines, expected)?;
    }
    let part = ctx.node.int("rotary_embedding_dim").unwrap_or(0);
    let expected = "an even number of at least 0";
    ensure(
        part >= 0 && part % 2 == 0,
        "rotary_embedding_dim",
        part,
        expected,
    )?;
    if let Some(cosines) = cosines.filter(|_| part > 0) {
        let what = "the last size of its cosines";
        let expected = format!("half of its rotary_embedding_dim, {part}");
        ensure(2 * cosines == part, what, cosines, expected)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::Floats;
    use super::super::test_models::{int, refused, taken};

    #[test]
    fn tables_have_half_of_the_rotated_width() {
        let table = [0.5; 12];
        let tables = |wide: usize| [4, wide].map(|_| Floats(&[3, 4], &table[..12]));
        let rotation = |name, value| int("RotaryEmbedding", name, value);
        let shape = &[1, 3, 16];
        taken(rotation("num_heads", 2), shape, &tables(4));
        refused(rotation("num_heads", 3), shape, &tables(4));
        refused(rotation("num_heads", -2), shape, &tables(4));
        refused(rotation("rotary_embedding_dim", 7), shape, &tables(4));
        refused(rotation("rotary_embedding_dim", 6), shape, &tables(4));
        refused(rotation("num_heads", 2), &[3, 16], &tables(4));
    }
}
