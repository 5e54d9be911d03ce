//! The core of the attentions: each query's scores, their softmax, and the mix of values. Queries,
//! keys and values are read where they lie, in any order of batch, heads and tokens.

use std::ops::Range;

use octet_int8::{cost_of_product, split_rows, with_pool};
use octet_kernels::attention::{Vectors, mix, scores, softmax};
use tract_onnx::tract_hir::internal::*;

/// Vectors by batch, head and token.
#[derive(Clone, Copy)]
pub(super) struct HeadView<'a> {
    pub(super) floats: &'a [f32],
    /// Place of the first vector.
    pub(super) first: usize,
    /// Distances between batches, heads and tokens.
    pub(super) strides: [usize; 3],
    pub(super) width: usize,
}

impl<'a> HeadView<'a> {
    /// Vectors of the shape [batch, tokens, all heads · width], from this head on.
    pub(super) fn by_token(
        floats: &'a [f32],
        tokens: usize,
        all: usize,
        from: usize,
        width: usize,
    ) -> HeadView<'a> {
        let row = all * width;
        HeadView {
            floats,
            first: from * width,
            strides: [tokens * row, width, row],
            width,
        }
    }

    /// Vectors of the shape [batch, heads, tokens, width].
    pub(super) fn by_head(
        floats: &'a [f32],
        heads: usize,
        tokens: usize,
        width: usize,
    ) -> HeadView<'a> {
        let head = tokens * width;
        HeadView {
            floats,
            first: 0,
            strides: [heads * head, head, width],
            width,
        }
    }

    pub(super) fn at(&self, batch: usize, head: usize, token: usize) -> TractResult<&'a [f32]> {
        let [batches, heads, tokens] = self.strides;
        let from = self.first + batch * batches + head * heads + token * tokens;
        let found = self
            .floats
            .get(from..)
            .and_then(|rest| rest.get(..self.width));
        found.context("a head lies outside its input")
    }

    fn head(&self, batch: usize, head: usize, tokens: usize) -> TractResult<Vectors<'a>> {
        let [batches, heads, step] = self.strides;
        let from = self.first + batch * batches + head * heads;
        let rest = self.floats.get(from..).unwrap_or_default();
        let found = Vectors::new(rest, step, self.width, tokens);
        found.context("a head lies outside its input")
    }
}

/// An addend of the scores: batch, heads and queries are of their number, or one for all.
pub(super) struct ScoreAddend<'a> {
    pub(super) floats: &'a [f32],
    pub(super) sizes: [usize; 4],
}

impl<'a> ScoreAddend<'a> {
    /// Fails if the addend doesn't fit these numbers of batches, heads, queries and keys.
    pub(super) fn new(
        tensor: &'a Tensor,
        [batches, heads, queries, keys]: [usize; 4],
    ) -> TractResult<ScoreAddend<'a>> {
        let shape = tensor.shape();
        let expected = [batches, heads, queries];
        let fits = shape.len() == 4
            && (shape.iter().zip(expected)).all(|(&size, of)| size == 1 || size == of)
            && shape[3] >= keys;
        ensure!(
            fits,
            "the addend of its scores of shape {shape:?} must have the shape [{batches} or 1, {heads} or 1, {queries} or 1, {keys}]"
        );
        Ok(ScoreAddend {
            floats: tensor.try_as_plain_ram()?.as_slice()?,
            sizes: [shape[0], shape[1], shape[2], shape[3]],
        })
    }

    fn row(&self, batch: usize, head: usize, query: usize) -> &'a [f32] {
        let [batches, heads, queries, keys] = self.sizes;
        let place = |at: usize, of: usize| if of == 1 { 0 } else { at };
        let row = (place(batch, batches) * heads + place(head, heads)) * queries;
        &self.floats[(row + place(query, queries)) * keys..][..keys]
    }
}

/// An attention of all queries to all keys that they see.
pub(super) struct Attention<'a> {
    pub(super) batches: usize,
    pub(super) heads: usize,
    /// Number of heads of keys and values, a divisor of `heads`.
    pub(super) shared: usize,
    pub(super) queries: usize,
    pub(super) keys: usize,
    pub(super) query: HeadView<'a>,
    pub(super) key: HeadView<'a>,
    pub(super) value: HeadView<'a>,
    pub(super) scale: f32,
    /// Limit that the scores approach, if it is not 0.
    pub(super) cap: f32,
    /// A score for each head that takes a share and has no value.
    pub(super) sinks: Option<&'a [f32]>,
    pub(super) addends: [Option<ScoreAddend<'a>>; 2],
}

fn add(scores: &mut [f32], addends: impl Iterator<Item = f32>) {
    for (score, addend) in scores.iter_mut().zip(addends) {
        *score += addend;
    }
}

impl Attention<'_> {
    /// Writes the output of shape [batch, queries, heads, width of a value]. `seen` gives the keys
    /// that a query of a batch sees.
    pub(super) fn run(
        &self,
        seen: impl Fn(usize, usize) -> Range<usize> + Sync,
        output: &mut [f32],
    ) -> TractResult<()> {
        let (heads, group) = (self.heads, self.heads / self.shared.max(1));
        let width = self.value.width;
        let expected = self.batches * self.queries * heads * width;
        ensure!(
            output.len() == expected,
            "its output has {expected} numbers in place of {}",
            output.len()
        );
        let mut every = Vec::with_capacity(self.batches * self.shared);
        for batch in 0..self.batches {
            for head in 0..self.shared {
                let key = self.key.head(batch, head, self.keys)?;
                every.push((key, self.value.head(batch, head, self.keys)?));
            }
        }
        if self.batches * self.queries > 0 {
            self.query
                .at(self.batches - 1, heads - 1, self.queries - 1)?;
        }
        let multiplications = output.len() / width.max(1) * self.keys;
        let cost = cost_of_product(multiplications * (width + self.query.width));
        let one = |row: usize, scored: &mut [f32], output: &mut [f32]| {
            let (token, head) = (row / heads, row % heads);
            let (batch, query) = (token / self.queries, token % self.queries);
            let (keys, values) = every[batch * self.shared + head / group];
            let seen = seen(batch, query);
            let seen = seen.start.min(self.keys)..seen.end.min(self.keys);
            let scored = &mut scored[..seen.len()];
            let Ok(vector) = self.query.at(batch, head, query) else {
                return;
            };
            scores(vector, keys, seen.start, self.scale, scored);
            if self.cap > 0.0 {
                for score in scored.iter_mut() {
                    *score = self.cap * (*score / self.cap).tanh();
                }
            }
            // Addends are added up first, as in ONNX Runtime: next to −10000 a score is rounded.
            match self
                .addends
                .each_ref()
                .map(|one| Some(one.as_ref()?.row(batch, head, query)))
            {
                [Some(one), Some(other)] => {
                    let both = one[seen.clone()].iter().zip(&other[seen.clone()]);
                    add(scored, both.map(|(one, other)| one + other));
                }
                [one, other] => {
                    let row = one.or(other).unwrap_or_default();
                    add(
                        scored,
                        row.get(seen.clone()).unwrap_or_default().iter().copied(),
                    );
                }
            }
            softmax(scored, self.sinks.map(|sinks| sinks[head]));
            mix(scored, values, seen.start, output);
        };
        let part = |rows: Range<usize>, output: &mut [f32]| {
            let mut scored = vec![0.0; self.keys];
            // One head after the other, so that its keys stay in the cache.
            for head in 0..heads.min(rows.len()) {
                for row in (rows.start + head..rows.end).step_by(heads) {
                    let output = &mut output[(row - rows.start) * width..][..width];
                    one(row, &mut scored, output);
                }
            }
            Ok(())
        };
        with_pool(|| split_rows(output, width, cost, part))?;
        Ok(())
    }
}
