//! GroupQueryAttention: several query heads share a head of keys and values, which a cache keeps
//! from run to run.

use tract_onnx::tract_hir::internal::*;

use super::attention::{Attention, HeadView, ScoreAddend};
use super::rms_norm::normalize;
use super::rotary::RotaryTable;
use super::{NativeCall, NativeKernel};

pub(super) static KERNELS: &[NativeKernel] =
    &[NativeKernel::several("GroupQueryAttention", attend)];

const QUERY: usize = 0;
const KEY: usize = 1;
const PAST: [usize; 2] = [3, 4];
const LENGTHS: usize = 5;
const TOTAL: usize = 6;
const COSINES: usize = 7;
const POSITIONS: usize = 9;
const ADDEND: usize = 10;
const SINKS: usize = 11;
const NORMS: [usize; 2] = [14, 15];

/// Sizes of one attention.
struct GroupSizes {
    batches: usize,
    /// Number of new tokens.
    tokens: usize,
    heads: usize,
    shared: usize,
    width: usize,
    /// Number of tokens that the caches of past and present have room for.
    past: usize,
    present: usize,
    /// Number of tokens of each sequence before and with the new ones.
    before: Vec<usize>,
    with_new: Vec<usize>,
    /// All tokens are new, so the cache is empty.
    is_first: bool,
}

impl GroupSizes {
    fn new(call: &NativeCall, present: usize) -> TractResult<GroupSizes> {
        let count = |key: &str| {
            let count = call
                .node
                .int(key)
                .and_then(|count| usize::try_from(count).ok());
            count
                .filter(|&count| count > 0)
                .with_context(|| format!("its {key} is missing"))
        };
        let (heads, shared) = (count("num_heads")?, count("kv_num_heads")?);
        let [batches, tokens, wide] = call.sizes(QUERY)?;
        let packed = call.input(KEY).is_none();
        let parts = if packed { heads + 2 * shared } else { heads };
        let width = wide / parts;
        ensure!(
            width > 0 && wide % parts == 0 && heads % shared == 0,
            "its {heads} and {shared} heads do not fit an input of {wide} columns"
        );
        let past = match call.input(PAST[0]) {
            Some(_) => call.sizes::<4>(PAST[0])?[2],
            None => 0,
        };
        let one = |slot: usize| call.integers(slot);
        let total = one(TOTAL)?.first().copied().unwrap_or(-1);
        let lengths = one(LENGTHS)?;
        ensure!(
            lengths.len() == batches,
            "its seqlens_k has {} numbers and must have {batches}, one for each sequence",
            lengths.len()
        );
        let is_first = total == tokens as i64;
        ensure!(
            is_first || tokens <= 1 || batches == 1,
            "with earlier tokens it must get one new token or one sequence, and has {tokens} tokens of {batches} sequences"
        );
        let mut sizes = GroupSizes {
            batches,
            tokens,
            heads,
            shared,
            width,
            past,
            present,
            before: Vec::new(),
            with_new: Vec::new(),
            is_first,
        };
        for length in lengths {
            let all = length.saturating_add(1);
            let before = if is_first { 0 } else { all - tokens as i64 };
            let sound =
                (1..=total).contains(&all) && (0..=past as i64).contains(&before) || tokens == 0;
            ensure!(
                sound,
                "its seqlens_k of {length} does not fit {tokens} new tokens, a cache of {past} and the total_sequence_length {total}"
            );
            sizes.before.push(before.max(0) as usize);
            sizes.with_new.push(all.max(0) as usize);
        }
        Ok(sizes)
    }

    /// The rotation of the new tokens, and the row of its tables for each.
    fn rotation<'a>(
        &self,
        call: &NativeCall<'a>,
    ) -> TractResult<Option<(RotaryTable<'a>, Vec<usize>)>> {
        if !call.is_set("do_rotary") {
            return Ok(None);
        }
        let table = RotaryTable::new(call, COSINES, call.is_set("rotary_interleaved"))?;
        ensure!(
            2 * table.pairs <= self.width,
            "its cosines rotate {} numbers of a head of {}",
            2 * table.pairs,
            self.width
        );
        let given = call
            .input(POSITIONS)
            .map(|_| call.integers(POSITIONS))
            .transpose()?;
        let mut places = Vec::with_capacity(self.batches * self.tokens);
        for batch in 0..self.batches {
            for token in 0..self.tokens {
                let position = match &given {
                    // Only the first number counts in a run without earlier tokens.
                    Some(given) if self.is_first => given
                        .first()
                        .map(|first| first.saturating_add(token as i64)),
                    Some(given) => given.get(batch * self.tokens + token).copied(),
                    None => Some((self.before[batch] + token) as i64),
                };
                let position = position.context("its position_ids are too few")?;
                places.push(table.place(position)?);
            }
        }
        Ok(Some((table, places)))
    }
}

fn attend(call: &NativeCall, made: &mut [Tensor]) -> TractResult<()> {
    supported(call)?;
    let output = call
        .output_place(0)
        .context("its first output is omitted")?;
    // The length of the cache follows from the inputs, also if nobody reads it.
    let past = call
        .input(PAST[0])
        .map_or(0, |past| past.shape().get(2).copied().unwrap_or(0));
    let total = call.integers(TOTAL)?.first().copied().unwrap_or(0);
    let present = past.max(usize::try_from(total).unwrap_or(0));
    let sizes = GroupSizes::new(call, present)?;
    let GroupSizes {
        batches,
        tokens,
        heads,
        shared,
        width,
        ..
    } = sizes;
    let packed = call.input(KEY).is_none();
    let all = if packed { heads + 2 * shared } else { heads };
    let view = |slot: usize, from: usize| {
        let (slot, all, from) = match packed {
            true => (QUERY, all, from),
            false => (slot, if slot == QUERY { heads } else { shared }, 0),
        };
        Ok::<_, TractError>(HeadView::by_token(
            call.floats(slot)?,
            tokens,
            all,
            from,
            width,
        ))
    };
    let rotation = sizes.rotation(call)?;
    let rotation = rotation.as_ref();
    let norms = [
        call.optional_floats(NORMS[0])?,
        call.optional_floats(NORMS[1])?,
    ];
    ensure!(
        norms.iter().flatten().all(|norm| norm.len() == width),
        "its norm weights must have {width} numbers, as a head has"
    );
    let epsilon = call.node.float("qk_norm_epsilon").unwrap_or(1e-6);
    let turn = |norm: Option<&[f32]>, row: usize, head: &mut [f32]| {
        if let Some(norm) = norm {
            normalize(head, norm, epsilon);
        }
        if let Some((table, places)) = rotation {
            table.rotate(places[row], head);
        }
    };

    let queries = view(QUERY, 0)?;
    let mut turned = Vec::new();
    if rotation.is_some() || norms[0].is_some() {
        turned.reserve(batches * tokens * heads * width);
        for row in 0..batches * tokens {
            for head in 0..heads {
                let from = turned.len();
                turned.extend_from_slice(queries.at(row / tokens, head, row % tokens)?);
                turn(norms[0], row, &mut turned[from..]);
            }
        }
    }
    let queries = match turned.is_empty() {
        true => queries,
        false => HeadView::by_token(&turned, tokens, heads, 0, width),
    };
    let keys = cache(call, &sizes, PAST[0], view(KEY, heads)?, |row, head| {
        turn(norms[1], row, head)
    })?;
    let values = cache(
        call,
        &sizes,
        PAST[1],
        view(KEY + 1, heads + shared)?,
        |_, _| (),
    )?;

    let addend = call.input(ADDEND).map(|addend| {
        let most = sizes.with_new.iter().copied().max().unwrap_or(0);
        ScoreAddend::new(addend, [batches, heads, tokens, most])
    });
    let zeros = vec![0.0; heads];
    let sinks = match call.optional_floats(SINKS)? {
        Some(sinks) => Some(sinks),
        None => call.is_set("smooth_softmax").then_some(&zeros[..]),
    };
    ensure!(
        sinks.is_none_or(|sinks| sinks.len() == heads),
        "its head_sink must have {heads} numbers"
    );
    let scale = call.node.float("scale").filter(|&scale| scale != 0.0);
    let attention = Attention {
        batches,
        heads,
        shared,
        queries: tokens,
        keys: present,
        query: queries,
        key: HeadView::by_head(&keys, shared, present, width),
        value: HeadView::by_head(&values, shared, present, width),
        scale: scale.unwrap_or_else(|| 1.0 / (width as f32).sqrt()),
        cap: call.node.float("softcap").unwrap_or(0.0),
        sinks,
        addends: [addend.transpose()?, None],
    };
    let window = call
        .node
        .int("local_window_size")
        .and_then(|size| usize::try_from(size).ok());
    let window = window.filter(|&size| size > 0).unwrap_or(usize::MAX);
    let is_causal = call.node.int("causal").unwrap_or(1) != 0;
    let seen = |batch: usize, token: usize| {
        let all = sizes.with_new[batch];
        let end = match is_causal {
            // A padded token sees what the last valid one sees.
            true => (sizes.before[batch] + token + 1).min(all),
            false => all,
        };
        end.saturating_sub(window)..end
    };
    attention.run(seen, made[output].try_as_plain_ram_mut()?.as_slice_mut()?)?;
    call.fill(made, 1, &keys)?;
    call.fill(made, 2, &values)
}

/// Refuses variants that are not computed.
fn supported(call: &NativeCall) -> TractResult<()> {
    ensure!(
        call.output_place(3).is_none(),
        "its output of scores is not supported; export the model without output_qk"
    );
    ensure!(
        !call.is_set("sliding_window_cache"),
        "a cache of the size of its window is not supported; export it with sliding_window_cache = 0"
    );
    for key in ["k_quant_type", "v_quant_type"] {
        let kind = call.node.text(key).unwrap_or("NONE");
        ensure!(
            kind == "NONE",
            "a quantized cache ({key} = {kind}) is not supported; export it with a float cache"
        );
    }
    Ok(())
}

/// The present cache [batch, heads, tokens, width]: earlier tokens, then new ones, then zeros.
fn cache(
    call: &NativeCall,
    sizes: &GroupSizes,
    slot: usize,
    new: HeadView,
    turn: impl Fn(usize, &mut [f32]),
) -> TractResult<Vec<f32>> {
    let &GroupSizes {
        batches,
        tokens,
        shared,
        width,
        past,
        present,
        ..
    } = sizes;
    let earlier = call.optional_floats(slot)?.unwrap_or_default();
    let earlier = HeadView::by_head(earlier, shared, past, width);
    let mut made = vec![0.0; batches * shared * present * width];
    let each = made.chunks_exact_mut((present * width).max(1)).enumerate();
    for (place, made) in each {
        let (batch, head) = (place / shared, place % shared);
        for (token, made) in made.chunks_exact_mut(width).enumerate() {
            let before = sizes.before[batch];
            match token.checked_sub(before) {
                None => made.copy_from_slice(earlier.at(batch, head, token)?),
                Some(token) if token < tokens => {
                    made.copy_from_slice(new.at(batch, head, token)?);
                    turn(batch * tokens + token, made);
                }
                Some(_) => break,
            }
        }
    }
    Ok(made)
}
