//! RotaryEmbedding, ONNX's and ONNX Runtime's.

use octet_graph::MICROSOFT;
use tract_onnx::tract_hir::internal::*;

use super::{NativeCall, NativeKernel};

pub(super) static KERNELS: &[NativeKernel] = &[NativeKernel::floats("RotaryEmbedding", rotate_all)];

/// Cosines and sines by position; a row has one for each pair.
pub(super) struct RotaryTable<'a> {
    cosines: &'a [f32],
    sines: &'a [f32],
    /// Number of pairs that are rotated.
    pub(super) pairs: usize,
    pub(super) interleaved: bool,
}

impl<'a> RotaryTable<'a> {
    pub(super) fn new(call: &NativeCall<'a>, slot: usize, interleaved: bool) -> TractResult<Self> {
        let [cosines, sines] = [slot, slot + 1].map(|slot| call.tensor(slot));
        let (cosines, sines) = (cosines?, sines?);
        ensure!(
            cosines.shape() == sines.shape(),
            "its cosines of shape {:?} and sines of shape {:?} must have one shape",
            cosines.shape(),
            sines.shape()
        );
        let pairs = cosines.shape().last().copied().unwrap_or(0);
        ensure!(pairs > 0, "its cosines are empty");
        Ok(RotaryTable {
            cosines: call.floats(slot)?,
            sines: call.floats(slot + 1)?,
            pairs,
            interleaved,
        })
    }

    /// Number of positions.
    pub(super) fn positions(&self) -> usize {
        self.cosines.len() / self.pairs
    }

    /// Fails if the table lacks this position.
    pub(super) fn place(&self, position: i64) -> TractResult<usize> {
        let place = usize::try_from(position).ok();
        place.filter(|&place| place < self.positions()).with_context(|| {
            format!(
                "the position {position} must be from 0 to {}, because its cosines have {} rows",
                self.positions() as i64 - 1,
                self.positions()
            )
        })
    }

    /// Rotates the first pairs of a head.
    pub(super) fn rotate(&self, place: usize, head: &mut [f32]) {
        let row = place * self.pairs..(place + 1) * self.pairs;
        let (cosines, sines) = (&self.cosines[row.clone()], &self.sines[row]);
        for (pair, (cosine, sine)) in cosines.iter().zip(sines).enumerate() {
            let (one, other) = match self.interleaved {
                true => (2 * pair, 2 * pair + 1),
                false => (pair, pair + self.pairs),
            };
            let (x, y) = (head[one], head[other]);
            head[one] = x * cosine - y * sine;
            head[other] = x * sine + y * cosine;
        }
    }
}

fn rotate_all(call: &NativeCall, made: &mut [f32]) -> TractResult<()> {
    let of_onnx = call.node.domain.as_deref() != Some(MICROSOFT);
    let (tables, positions) = if of_onnx { (1, 3) } else { (2, 1) };
    let table = RotaryTable::new(call, tables, call.is_set("interleaved"))?;
    let part = call.node.int("rotary_embedding_dim").unwrap_or(0);
    ensure!(
        part == 0 || part as usize == 2 * table.pairs,
        "its rotary_embedding_dim {part} must be twice the number of its cosines, {}",
        table.pairs
    );
    let heads = call.node.int("num_heads").unwrap_or(0).max(0) as usize;
    let (batches, tokens, heads, width, first_heads) = match *call.tensor(0)?.shape() {
        [batches, heads, tokens, width] => (batches, tokens, heads, width, true),
        [batches, tokens, all] => {
            let width = match heads {
                0 => 2 * table.pairs,
                heads => all / heads,
            };
            ensure!(
                width > 0 && all % width == 0,
                "its input of {all} columns is no multiple of a head of {width}"
            );
            (batches, tokens, all / width, width, false)
        }
        ref shape => bail!("its input of shape {shape:?} must have 3 or 4 axes"),
    };
    ensure!(
        2 * table.pairs <= width,
        "its cosines rotate {} numbers of a head of {width}",
        2 * table.pairs
    );
    let given = call
        .input(positions)
        .map(|_| call.integers(positions))
        .transpose()?;
    let places: TractResult<Vec<usize>> = match given {
        None => (0..batches * tokens)
            .map(|place| table.place(place as i64))
            .collect(),
        Some(given) if given.len() == 1 && !of_onnx => {
            let places = (0..batches * tokens).map(|place| (place % tokens) as i64);
            places
                .map(|place| table.place(given[0].saturating_add(place)))
                .collect()
        }
        Some(given) => {
            ensure!(
                given.len() == batches * tokens,
                "its {} positions must be {batches} · {tokens}",
                given.len()
            );
            given.into_iter().map(|place| table.place(place)).collect()
        }
    };
    let places = places?;
    made.copy_from_slice(call.floats(0)?);
    for (row, head) in made.chunks_exact_mut(width).enumerate() {
        let token = match first_heads {
            true => row / (heads * tokens) * tokens + row % tokens,
            false => row / heads,
        };
        table.rotate(places[token], head);
    }
    Ok(())
}
