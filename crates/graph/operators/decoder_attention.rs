//! The attentions of exported decoders: GroupQueryAttention and MultiHeadAttention, with keys and
//! values of earlier tokens as inputs and outputs.

use super::Operator;
use super::Property::Attention;
use super::node_context::{NodeContext, Refusal, Validation, ensure};
use super::shape_context::ShapeContext;
use crate::Dim;
use crate::inferred_value::InferredValue;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::microsoft("GroupQueryAttention")
        .with(&[Attention])
        .scalars(&[6])
        .checks(group_query)
        .infers_all(group_query_outputs)
        .shape_from(&[6]),
    Operator::microsoft("MultiHeadAttention")
        .with(&[Attention])
        .checks(multi_head)
        .infers_all(multi_head_outputs),
];

/// The size along an axis, divided and multiplied; unknown if it is not a multiple.
fn part(dim: &Dim, by: usize, times: usize) -> Dim {
    match dim {
        Dim::Known(size) if by > 0 && size % by == 0 => Dim::Known(size / by * times),
        _ => Dim::Unknown,
    }
}

fn sum(one: &Dim, other: &Dim) -> Dim {
    match (one, other) {
        (Dim::Known(one), Dim::Known(other)) => Dim::Known(one + other),
        (Dim::Known(0), named) | (named, Dim::Known(0)) => named.clone(),
        _ => Dim::Unknown,
    }
}

/// An attribute that counts heads.
fn count(ctx: &ShapeContext, key: &str) -> Option<usize> {
    let heads = usize::try_from(ctx.node.int(key)?).ok()?;
    (1..1 << 20).contains(&heads).then_some(heads)
}

/// The outputs of an attention whose shapes are unknown: they have the element type of the queries.
fn elements(ctx: &ShapeContext) -> Vec<Option<InferredValue>> {
    let element = ctx.input(0).map(|query| query.element);
    let of = |_| Some(InferredValue::new(element?, None));
    (0..ctx.node.output.len()).map(of).collect()
}

fn group_query_outputs(ctx: &ShapeContext) -> Vec<Option<InferredValue>> {
    let outputs = || {
        let query = ctx.input(0)?;
        let [batch, length, wide] = query.shape.as_deref()? else {
            return None;
        };
        let (heads, shared) = (count(ctx, "num_heads")?, count(ctx, "kv_num_heads")?);
        let packed = ctx.node.input_at(1).is_none();
        let all = if packed { heads + 2 * shared } else { heads };
        let output = [batch.clone(), length.clone(), part(wide, all, heads)];
        let past = match ctx.node.input_at(3) {
            None => Dim::Known(0),
            Some(_) => match ctx.input(3).and_then(|past| past.shape.as_deref()) {
                Some([_, _, past, _]) => past.clone(),
                _ => Dim::Unknown,
            },
        };
        let total = ctx.input(6).and_then(InferredValue::first_integer);
        let total = total.and_then(|total| usize::try_from(total).ok());
        let present = match (total, past) {
            (Some(total), Dim::Known(past)) => Dim::Known(total.max(past)),
            _ => Dim::Unknown,
        };
        let cache = [
            batch.clone(),
            Dim::Known(shared),
            present,
            part(wide, all, 1),
        ];
        let of = |shape: &[Dim]| Some(InferredValue::new(query.element, Some(shape.to_vec())));
        Some(vec![of(&output), of(&cache), of(&cache)])
    };
    outputs().unwrap_or_else(|| elements(ctx))
}

fn multi_head_outputs(ctx: &ShapeContext) -> Vec<Option<InferredValue>> {
    let outputs = || {
        let query = ctx.input(0)?;
        let shape = |slot: usize| ctx.input(slot)?.shape.as_deref();
        let heads = count(ctx, "num_heads")?;
        let (batch, length) = (
            query.shape.as_deref()?.first()?,
            query.shape.as_deref()?.get(1)?,
        );
        let width = match query.shape.as_deref()? {
            [_, _, wide] => part(wide, heads, 1),
            [_, _, _, _, wide] => wide.clone(),
            _ => return None,
        };
        // New keys, and the width of a value.
        let keys = match ctx.node.input_at(1) {
            None => length.clone(),
            Some(_) => match shape(1)? {
                [_, _, keys, _] | [_, keys, _] | [_, keys, _, _, _] => keys.clone(),
                _ => return None,
            },
        };
        let deep = match ctx.node.input_at(2) {
            None => width.clone(),
            Some(_) => match shape(2)? {
                [_, _, wide] => part(wide, heads, 1),
                [_, _, _, wide] => wide.clone(),
                _ => return None,
            },
        };
        let total = match ctx.node.input_at(6) {
            None => keys,
            Some(_) => sum(shape(6)?.get(2)?, &keys),
        };
        let of = |shape: &[Dim]| Some(InferredValue::new(query.element, Some(shape.to_vec())));
        let cache = |wide: &Dim| {
            of(&[
                batch.clone(),
                Dim::Known(heads),
                total.clone(),
                wide.clone(),
            ])
        };
        let scores = [
            batch.clone(),
            Dim::Known(heads),
            length.clone(),
            total.clone(),
        ];
        Some(vec![
            of(&[batch.clone(), length.clone(), part(&deep, 1, heads)]),
            cache(&width),
            cache(&deep),
            of(&scores),
        ])
    };
    outputs().unwrap_or_else(|| elements(ctx))
}

/// Requires both inputs of a pair or none.
fn together(ctx: &NodeContext, [one, other]: [usize; 2]) -> Validation {
    let given = [one, other].map(|slot| ctx.node.input_at(slot).is_some());
    let what = format!("the presence of its inputs {one} and {other}");
    ensure(given[0] == given[1], &what, given, "the same of both")
}

/// Requires sizes of an input along its axes, where both are known; `None` allows any size.
fn sizes(ctx: &NodeContext, slot: usize, expected: &[Option<i64>]) -> Validation {
    let Some(shape) = ctx.shape(slot) else {
        return Ok(());
    };
    let fits = shape.len() == expected.len()
        && (shape.iter().zip(expected)).all(|pair| match pair {
            (Dim::Known(size), Some(expected)) => i64::try_from(*size) == Ok(*expected),
            _ => true,
        });
    let each = expected
        .iter()
        .map(|size| size.map_or("any".into(), |size| size.to_string()));
    let expected = format!("[{}]", each.collect::<Vec<_>>().join(", "));
    ensure(
        fits,
        &format!("the shape of its input {slot}"),
        shape,
        expected,
    )
}

/// The number of heads in an attribute.
fn heads(ctx: &NodeContext, key: &str) -> Result<i64, Refusal> {
    let heads = ctx.positive(key, None)?;
    let expected = "fewer than 2²⁰";
    ensure(heads < 1 << 20, key, heads, expected).map(|()| heads)
}

/// The width of each of the `heads` that share the last axis of an input.
fn width_of_a_head(slot: usize, wide: i64, heads: i64, expected: &str) -> Result<i64, Refusal> {
    let what = format!("the last size of its input {slot}");
    ensure(wide % heads == 0 && wide > 0, &what, wide, expected).map(|()| wide / heads)
}

fn group_query(ctx: &NodeContext) -> Validation {
    let (all, shared) = (heads(ctx, "num_heads")?, heads(ctx, "kv_num_heads")?);
    let expected = format!("a multiple of its kv_num_heads, {shared}");
    ensure(all % shared == 0, "num_heads", all, expected)?;
    for pair in [[1, 2], [3, 4], [7, 8], [14, 15]] {
        together(ctx, pair)?;
    }
    for slot in [5, 6] {
        let given = ctx.node.input_at(slot).is_some();
        ensure(given, &format!("its input {slot}"), "missing", "given")?;
    }
    if ctx.node.int("do_rotary") == Some(1) {
        let given = ctx.node.input_at(7).is_some();
        ensure(
            given,
            "its input 7",
            "missing",
            "given, as do_rotary is set",
        )?;
    }
    sizes(ctx, 0, &[None; 3])?;
    let [batch, length, wide] = [0, 1, 2].map(|axis| ctx.size(0, axis));
    let packed = ctx.node.input_at(1).is_none();
    let parts = if packed { all + 2 * shared } else { all };
    let mut width = None;
    if let Some(wide) = wide {
        let expected = format!("a multiple of {parts}, the number of its heads");
        width = Some(width_of_a_head(0, wide, parts, &expected)?);
    }
    if !packed {
        for slot in [1, 2] {
            sizes(
                ctx,
                slot,
                &[batch, length, width.map(|width| width * shared)],
            )?;
        }
    }
    let past = ctx.size(3, 2);
    for slot in [3, 4] {
        sizes(ctx, slot, &[batch, Some(shared), past, width])?;
    }
    let half = ctx.size(7, 1);
    for slot in [7, 8] {
        sizes(ctx, slot, &[None, half])?;
    }
    if let (Some(half), Some(width)) = (half, width) {
        let expected = format!("at most half of the width of a head, {width}");
        ensure(
            2 * half <= width,
            "the last size of its input 7",
            half,
            expected,
        )?;
    }
    sizes(ctx, 9, &[batch, length])?;
    sizes(ctx, 11, &[Some(all)])?;
    sizes(ctx, 14, &[width])?;
    sizes(ctx, 15, &[width])
}

fn multi_head(ctx: &NodeContext) -> Validation {
    let heads = heads(ctx, "num_heads")?;
    together(ctx, [6, 7])?;
    let rank = |slot: usize| ctx.shape(slot).map(<[Dim]>::len);
    let ranks = |slot: usize, allowed: &[usize]| {
        let fits = rank(slot).is_none_or(|rank| allowed.contains(&rank));
        let what = format!("the number of axes of its input {slot}");
        ensure(
            fits,
            &what,
            rank(slot).unwrap_or_default(),
            format!("one of {allowed:?}"),
        )
    };
    let (has_key, has_value) = (
        ctx.node.input_at(1).is_some(),
        ctx.node.input_at(2).is_some(),
    );
    ranks(0, if has_key { &[3] } else { &[5] })?;
    ranks(1, if has_value { &[3, 4] } else { &[5] })?;
    let batch = ctx.size(0, 0);
    let of_heads = format!("a multiple of its num_heads, {heads}");
    let mut width = ctx.size(0, 4);
    if let (Some(3), Some(wide)) = (rank(0), ctx.size(0, 2)) {
        width = Some(width_of_a_head(0, wide, heads, &of_heads)?);
    }
    let whole = width.map(|width| width * heads);
    let mut keys = ctx.size(0, 1);
    match rank(1) {
        Some(3) => {
            keys = ctx.size(1, 1);
            sizes(ctx, 1, &[batch, None, whole])?;
        }
        Some(4) => {
            keys = ctx.size(1, 2);
            sizes(ctx, 1, &[batch, Some(heads), None, width])?;
        }
        Some(_) => {
            keys = ctx.size(1, 1);
            sizes(ctx, 1, &[batch, None, Some(heads), Some(2), width])?;
        }
        None if has_key => keys = None,
        None => sizes(ctx, 0, &[None, None, Some(heads), Some(3), None])?,
    }
    let mut deep = width;
    if has_value {
        ranks(2, &[3, 4])?;
        deep = match (rank(2), ctx.size(2, 2)) {
            (Some(3), Some(wide)) => Some(width_of_a_head(2, wide, heads, &of_heads)?),
            (Some(3), None) => None,
            _ => ctx.size(2, 3),
        };
        match rank(2) {
            Some(3) => sizes(ctx, 2, &[batch, keys, None])?,
            Some(_) => sizes(ctx, 2, &[batch, Some(heads), keys, None])?,
            None => {}
        }
    }
    let past = ctx.size(6, 2);
    sizes(ctx, 6, &[batch, Some(heads), past, width])?;
    sizes(ctx, 7, &[batch, Some(heads), past, deep])?;
    let bias = whole
        .zip(deep)
        .map(|(whole, deep)| 2 * whole + deep * heads);
    sizes(ctx, 3, &[bias])
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::{self, Floats, Integers, Nothing};
    use super::super::test_models::{checked, int, model};
    use crate::Attribute;
    use crate::MICROSOFT;

    const NUMBERS: [f32; 96] = [0.5; 96];

    /// An attention of 2 heads over 3 tokens of 16 numbers.
    fn attends(operator: &str, shared: i64, extra: &[ExtraInput]) -> Result<(), String> {
        let mut node = int(operator, "num_heads", 2);
        node = node.with(Attribute::int("kv_num_heads", shared));
        node.domain = Some(MICROSOFT.into());
        checked(&model(node, &[1, 3, 16], extra), None)
    }

    #[test]
    fn keys_and_values_fit_the_queries() {
        let of = |wide: usize| Floats(&[1, 3, 8], &NUMBERS[..3 * wide]);
        let known = |last| [of(8), of(8), Nothing, Nothing, Integers(&[2]), last];
        let one = |shared| attends("GroupQueryAttention", shared, &known(Integers(&[3])));
        assert!(one(1).is_ok());
        assert!(one(2).unwrap_err().contains("input 1"));
        assert!(one(3).unwrap_err().contains("num_heads"));
        assert!(one(0).unwrap_err().contains("kv_num_heads"));
        let error = attends("GroupQueryAttention", 1, &known(Nothing)).unwrap_err();
        assert!(error.contains("its input 6"), "{error}");
        let whole = || Floats(&[1, 3, 16], &NUMBERS[..48]);
        assert!(attends("MultiHeadAttention", 1, &[whole(), whole()]).is_ok());
        assert!(attends("MultiHeadAttention", 1, &[of(8), whole()]).is_err());
        assert!(attends("MultiHeadAttention", 1, &[]).is_err());
    }
}
