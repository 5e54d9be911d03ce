//! GatherBlockQuantized: rows of a table in blocks, dequantized.

use octet_graph::prepare::count;
use tract_onnx::tract_hir::internal::*;

use super::{NativeCall, NativeKernel};
use crate::operator_inputs::{axis_of, integers};

pub(super) static KERNELS: &[NativeKernel] =
    &[NativeKernel::several("GatherBlockQuantized", gather)];

/// Integers of a tensor: in bytes that hold several, or one an element.
enum Integers<'a> {
    /// `bits` bits each, the first in the lowest.
    Packed(&'a [u8], usize),
    Signed(&'a [i8]),
}

impl<'a> Integers<'a> {
    fn new(tensor: &'a Tensor, bits: usize) -> TractResult<Integers<'a>> {
        let plain = tensor.try_as_plain_ram()?;
        Ok(match tensor.datum_type() {
            DatumType::U8 => Integers::Packed(plain.as_slice()?, bits),
            DatumType::I8 => Integers::Signed(plain.as_slice()?),
            other => bail!("its table of type {other:?} must be of uint8, int4 or uint4"),
        })
    }

    fn at(&self, place: usize) -> i32 {
        match *self {
            Integers::Packed(bytes, bits) => {
                let each = 8 / bits;
                let byte = bytes[place / each] >> (place % each * bits);
                i32::from(byte) & ((1 << bits) - 1)
            }
            Integers::Signed(list) => i32::from(list[place]),
        }
    }
}

fn gather(call: &NativeCall, made: &mut [Tensor]) -> TractResult<()> {
    let data = call.tensor(0)?;
    let bits = call.node.int("bits").unwrap_or(4);
    ensure!(
        matches!(bits, 2 | 4 | 8),
        "its bits {bits} must be 2, 4 or 8"
    );
    let bits = bits as usize;
    let table = Integers::new(data, bits)?;
    let mut shape = data.shape().to_vec();
    let each = match table {
        Integers::Packed(..) => 8 / bits,
        Integers::Signed(_) => 1,
    };
    *shape.last_mut().context("its table is a scalar")? *= each;
    let axis = axis_of(call.node.int("gather_axis").unwrap_or(0), shape.len())?;
    let along = axis_of(call.node.int("quantize_axis").unwrap_or(1), shape.len())?;
    let block = call.node.int("block_size").unwrap_or(128).max(1) as usize;
    let mut blocks = shape.clone();
    blocks[along] = blocks[along].div_ceil(block);
    let scales = call.floats(2)?;
    ensure!(
        scales.len() == count(&blocks),
        "its scales must have the shape {blocks:?}"
    );
    let zero_points = call
        .input(3)
        .map(|list| Integers::new(list, bits))
        .transpose()?;
    // Zero points of a row begin with a byte.
    let line = blocks.last().copied().unwrap_or(1).max(1);
    let zero_line = line.next_multiple_of(each);
    if let Some(tensor) = call.input(3) {
        let expected = count(&blocks) / line * zero_line / each;
        ensure!(
            tensor.len() == expected,
            "its zero points must be {expected} elements"
        );
    }
    let middle = match table {
        Integers::Packed(..) => 1 << (bits - 1),
        Integers::Signed(_) => 0,
    };
    let (before, rows, behind) = (
        count(&shape[..axis]),
        shape[axis],
        count(&shape[axis + 1..]),
    );
    let indices = integers(call.tensor(1)?)?;
    let steps = (count(&shape[along + 1..]), shape[along]);
    let mut output = made[0].try_as_plain_ram_mut()?;
    let output = output.as_slice_mut::<f32>()?;
    ensure!(
        output.len() == before * indices.len() * behind,
        "its output has another size"
    );
    for (place, row) in output.chunks_exact_mut(behind.max(1)).enumerate() {
        let (outer, index) = (place / indices.len(), indices[place % indices.len()]);
        let actual = if index < 0 {
            index + rows as i64
        } else {
            index
        };
        let inside = (0..rows as i64).contains(&actual);
        ensure!(inside, "its index {index} is outside an axis of {rows}");
        let first = (outer * rows + actual as usize) * behind;
        for (at, value) in row.iter_mut().enumerate() {
            let place = first + at;
            let (inner, rest) = (place % steps.0, place / steps.0);
            let of_block = (rest / steps.1 * steps.1.div_ceil(block) + rest % steps.1 / block)
                * steps.0
                + inner;
            let zero = match &zero_points {
                Some(list) => list.at(of_block / line * zero_line + of_block % line),
                None => middle,
            };
            *value = (table.at(place) - zero) as f32 * scales[of_block];
        }
    }
    Ok(())
}
