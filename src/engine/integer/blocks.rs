//! MatMulNBits, ONNX Runtime's product with a matrix of few bits in blocks, as a product with that matrix in floats.
//!
//! What it saves is the file's size: multiplying by blocks of four bits takes longer than by floats wherever the
//! matrix fits the caches. It has one form here, for any number of bits, and the memory of the float model.

use crate::graph::Model;
use crate::onnx::schema::{NodeProto, TensorProto};

/// The matrix, [depth, columns]; `None` where the node says something that is not known here, or its sizes don't fit.
pub(super) fn matrix(node: &NodeProto, name: &str, model: &Model) -> Option<TensorProto> {
    let number = |key: &str| usize::try_from(node.int(key)?).ok().filter(|&n| n > 0);
    let constant = |slot: usize| model.graph.initializers.get(node.input_at(slot)?);
    let (depth, columns) = (number("K")?, number("N")?);
    let (bits, size) = (number("bits").unwrap_or(4), number("block_size")?);
    // An order of its own for the rows would be input 4.
    if !matches!(bits, 2 | 4 | 8) || node.input_at(4).is_some() {
        return None;
    }
    let blocks = depth.div_ceil(size);
    let bytes_of_block = size.checked_mul(bits)? / 8;
    let packed = bytes(constant(1)?)?;
    let scales = constant(2)?.to_f32().ok()?;
    let count = columns.checked_mul(blocks)?;
    if packed.len() != count.checked_mul(bytes_of_block)? || scales.len() != count {
        return None;
    }
    let zeros = match node.input_at(3) {
        None => vec![(1u32 << (bits - 1)) as f32; count],
        Some(_) => zero_points(constant(3)?, [columns, blocks], bits)?,
    };
    let mut values = vec![0.0; depth.checked_mul(columns)?];
    let at = |bytes: &[u8], place: usize| value_at(bytes, place, bits);
    for column in 0..columns {
        for row in 0..depth {
            let block = column * blocks + row / size;
            let bytes = &packed[block * bytes_of_block..][..bytes_of_block];
            values[row * columns + column] = (at(bytes, row % size) - zeros[block]) * scales[block];
        }
    }
    Some(TensorProto::from_f32(name, &[depth, columns], &values))
}

/// The integer at a place of a packed row, the lowest bits first.
fn value_at(bytes: &[u8], place: usize, bits: usize) -> f32 {
    let shift = place * bits % 8;
    let mask = (1u32 << bits) - 1;
    (u32::from(bytes[place * bits / 8]) >> shift & mask) as f32
}

/// One a block: floats, or integers whose rows each begin with a byte.
fn zero_points(
    tensor: &TensorProto,
    [columns, blocks]: [usize; 2],
    bits: usize,
) -> Option<Vec<f32>> {
    let count = columns * blocks;
    let Some(packed) = bytes(tensor) else {
        return tensor.to_f32().ok().filter(|zeros| zeros.len() == count);
    };
    let row = (blocks * bits).div_ceil(8);
    if packed.len() != columns * row {
        return None;
    }
    let of = |at: usize| value_at(&packed[at / blocks * row..][..row], at % blocks, bits);
    Some((0..count).map(of).collect())
}

/// The bytes of a tensor of bytes.
fn bytes(tensor: &TensorProto) -> Option<Vec<u8>> {
    use crate::onnx::schema::DataType;
    let whole = matches!(tensor.element(), Ok(DataType::Uint8));
    let integers = whole.then(|| tensor.to_i64().ok()).flatten()?;
    Some(integers.into_iter().map(|v| v as u8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_integers_lie_with_their_lowest_bits_first() {
        for (bits, expected) in [
            (2, &[3.0, 2.0, 1.0, 0.0, 1.0][..]),
            (4, &[11.0, 1.0, 9.0]),
            (8, &[27.0, 201.0]),
        ] {
            let found: Vec<f32> = (0..expected.len())
                .map(|place| value_at(&[0b0001_1011, 0b1100_1001], place, bits))
                .collect();
            assert_eq!(found, expected, "{bits}");
        }
    }
}
