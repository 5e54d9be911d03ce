//! MultiHeadAttention of ONNX Runtime, with padding masks and keys and values of earlier tokens.

use tract_onnx::tract_hir::internal::*;

use super::attention::{Attention, HeadView, ScoreAddend};
use super::{NativeCall, NativeKernel};

pub(super) static KERNELS: &[NativeKernel] = &[NativeKernel::several("MultiHeadAttention", attend)];

const BIAS: usize = 3;
const MASK: usize = 4;
const ADDEND: usize = 5;
const PAST: [usize; 2] = [6, 7];
/// Default addend of the scores of masked tokens.
const MASKED_SCORE: f32 = -10000.0;

/// Queries, keys or values: where they lie, and how many tokens there are.
struct HeadPart<'a> {
    view: HeadView<'a>,
    tokens: usize,
}

/// The queries, keys and values in any of the forms of the operator.
fn parts<'a>(call: &NativeCall<'a>, heads: usize) -> TractResult<[HeadPart<'a>; 3]> {
    let query = call.tensor(0)?.shape();
    let tokens = query.get(1).copied().unwrap_or(0);
    let flat = |slot: usize| {
        let [_, tokens, wide] = call.sizes(slot)?;
        let view = HeadView::by_token(call.floats(slot)?, tokens, heads, 0, wide / heads);
        Ok::<_, TractError>(HeadPart { view, tokens })
    };
    // Several vectors of each head one after the other.
    let joined = |slot: usize, of: usize, which: usize| {
        let [_, tokens, _, _, width] = call.sizes(slot)?;
        let row = heads * of * width;
        let view = HeadView {
            floats: call.floats(slot)?,
            first: which * width,
            strides: [tokens * row, of * width, row],
            width,
        };
        Ok::<_, TractError>(HeadPart { view, tokens })
    };
    let by_head = |slot: usize| {
        let [_, _, tokens, width] = call.sizes(slot)?;
        let view = HeadView::by_head(call.floats(slot)?, heads, tokens, width);
        Ok::<_, TractError>(HeadPart { view, tokens })
    };
    let either = |slot: usize| match call.tensor(slot)?.shape().len() {
        4 => by_head(slot),
        _ => flat(slot),
    };
    Ok(match (call.input(1), call.input(2)) {
        (None, _) => {
            ensure!(
                query.len() == 5,
                "without keys its queries must have 5 axes"
            );
            [joined(0, 3, 0)?, joined(0, 3, 1)?, joined(0, 3, 2)?]
        }
        (Some(_), None) => [flat(0)?, joined(1, 2, 0)?, joined(1, 2, 1)?],
        (Some(_), Some(_)) => {
            ensure!(
                query.len() == 3,
                "with keys its queries must have 3 axes, and have {tokens}"
            );
            [flat(0)?, either(1)?, either(2)?]
        }
    })
}

fn attend(call: &NativeCall, made: &mut [Tensor]) -> TractResult<()> {
    ensure!(
        call.output_place(3).is_none(),
        "its output of scores is not supported; export the model without qk"
    );
    ensure!(
        call.input(8).is_none() && call.input(9).is_none(),
        "a cache that is shared by past and present is not supported; export it without past_sequence_length"
    );
    let heads = call
        .node
        .int("num_heads")
        .and_then(|heads| usize::try_from(heads).ok());
    let heads = heads
        .filter(|&heads| heads > 0)
        .context("its num_heads is missing")?;
    let batches = call.tensor(0)?.shape()[0];
    let [query, key, value] = parts(call, heads)?;
    ensure!(
        key.tokens == value.tokens && query.view.width == key.view.width && query.view.width > 0,
        "its {} keys of {} numbers and {} values do not fit queries of {}",
        key.tokens,
        key.view.width,
        value.tokens,
        query.view.width
    );
    let past = match call.input(PAST[0]) {
        Some(_) => call.sizes::<4>(PAST[0])?[2],
        None => 0,
    };
    let keys = past + key.tokens;
    let bias = call.optional_floats(BIAS)?;
    let (wide, deep) = (heads * query.view.width, heads * value.view.width);
    ensure!(
        bias.is_none_or(|bias| bias.len() == 2 * wide + deep),
        "its bias must have {} numbers",
        2 * wide + deep
    );
    let bias = |from: usize, wide: usize| bias.map(|bias| &bias[from..from + wide]);
    let biases = [bias(0, wide), bias(wide, wide), bias(2 * wide, deep)];
    let [queries, all_keys, all_values] = [
        joined(call, batches, heads, &query, None, biases[0])?,
        joined(call, batches, heads, &key, Some(PAST[0]), biases[1])?,
        joined(call, batches, heads, &value, Some(PAST[1]), biases[2])?,
    ];
    let hidden = match call.input(MASK) {
        Some(mask) => Some(hidden(call, mask, [batches, query.tokens, keys])?),
        None => None,
    };
    let mask = hidden.as_ref().map(|(floats, queries)| ScoreAddend {
        floats,
        sizes: [batches, 1, *queries, keys],
    });
    let addend = call.input(ADDEND);
    let addend = addend.map(|given| ScoreAddend::new(given, [batches, heads, query.tokens, keys]));
    let scale = call.node.float("scale").filter(|&scale| scale != 0.0);
    let attention = Attention {
        batches,
        heads,
        shared: heads,
        queries: query.tokens,
        keys,
        query: HeadView::by_head(&queries, heads, query.tokens, query.view.width),
        key: HeadView::by_head(&all_keys, heads, keys, query.view.width),
        value: HeadView::by_head(&all_values, heads, keys, value.view.width),
        scale: scale.unwrap_or_else(|| 1.0 / (query.view.width as f32).sqrt()),
        cap: 0.0,
        sinks: None,
        addends: [mask, addend.transpose()?],
    };
    let is_causal = call.is_set("unidirectional") && query.tokens > 1;
    let seen = |_, token: usize| 0..if is_causal { past + token + 1 } else { keys };
    let output = call
        .output_place(0)
        .context("its first output is omitted")?;
    attention.run(seen, made[output].try_as_plain_ram_mut()?.as_slice_mut()?)?;
    call.fill(made, 1, &all_keys)?;
    call.fill(made, 2, &all_values)
}

/// Earlier tokens and new ones with their bias, as [batch, heads, tokens, width].
fn joined(
    call: &NativeCall,
    batches: usize,
    heads: usize,
    part: &HeadPart,
    past: Option<usize>,
    bias: Option<&[f32]>,
) -> TractResult<Vec<f32>> {
    let width = part.view.width;
    let earlier = past
        .map(|slot| call.optional_floats(slot))
        .transpose()?
        .flatten();
    let earlier = earlier.unwrap_or_default();
    let before = earlier.len() / (batches * heads * width).max(1);
    let view = HeadView::by_head(earlier, heads, before, width);
    let mut made = Vec::with_capacity(batches * heads * (before + part.tokens) * width);
    for batch in 0..batches {
        for head in 0..heads {
            for token in 0..before {
                made.extend_from_slice(view.at(batch, head, token)?);
            }
            for token in 0..part.tokens {
                let vector = part.view.at(batch, head, token)?;
                match bias {
                    Some(bias) => {
                        let bias = &bias[head * width..][..width];
                        made.extend(vector.iter().zip(bias).map(|(value, bias)| value + bias));
                    }
                    None => made.extend_from_slice(vector),
                }
            }
        }
    }
    Ok(made)
}

/// The addend that hides masked keys, [batch, queries or 1, keys], and its number of queries.
fn hidden(
    call: &NativeCall,
    mask: &Tensor,
    [batches, queries, keys]: [usize; 3],
) -> TractResult<(Vec<f32>, usize)> {
    let by = call.node.float("mask_filter_value").unwrap_or(MASKED_SCORE);
    let list = call.integers(MASK)?;
    let addend = |is_shown: bool| if is_shown { 0.0 } else { by };
    let shape = mask.shape();
    let shown: Vec<f32> = match *shape {
        [lines] if lines == batches => {
            let all = list
                .iter()
                .flat_map(|&count| (0..keys as i64).map(move |key| key < count));
            all.map(addend).collect()
        }
        [lines, columns] if [lines, columns] == [batches, keys] => {
            list.iter().map(|&flag| addend(flag > 0)).collect()
        }
        [lines, rows, columns] if [lines, rows, columns] == [batches, queries, keys] => {
            list.iter().map(|&flag| addend(flag > 0)).collect()
        }
        _ => bail!(
            "its mask of shape {shape:?} must have the shape [{batches}], [{batches}, {keys}] or [{batches}, {queries}, {keys}]"
        ),
    };
    Ok((shown, if shape.len() == 3 { queries } else { 1 }))
}
