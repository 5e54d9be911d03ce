//! Integers of a few bits in bytes.

/// Packs integers of `bits` bits into bytes, the first in the lowest bits. The rest of the last
/// byte is 0.
pub fn packed(integers: &[u8], bits: u8) -> Vec<u8> {
    let in_byte = usize::from(8 / bits);
    let byte = |group: &[u8]| {
        let parts = group.iter().zip(0u8..);
        parts.fold(0, |byte, (integer, place)| byte | integer << (place * bits))
    };
    integers.chunks(in_byte).map(byte).collect()
}

/// Packs the zero points of columns with `per_column` blocks. Each column starts a new byte, and its
/// last byte is filled with the middle of the integers.
pub fn packed_zero_points(
    zero_points: impl Iterator<Item = f32>,
    per_column: usize,
    bits: u8,
) -> Vec<u8> {
    let filled = per_column.next_multiple_of(usize::from(8 / bits));
    let whole: Vec<u8> = zero_points.map(|zero_point| zero_point as u8).collect();
    let column = |column: &[u8]| {
        let mut column = column.to_vec();
        column.resize(filled, 1 << (bits - 1));
        packed(&column, bits)
    };
    whole.chunks(per_column.max(1)).flat_map(column).collect()
}

/// Packs integers into bytes, like [`packed`]. The bytes behind them stay as they are.
#[inline(always)]
pub(super) fn pack_into(integers: &[u8], bits: u8, bytes: &mut [u8]) {
    match bits {
        4 => {
            let (pairs, rest) = integers.as_chunks::<2>();
            for (byte, [first, second]) in bytes.iter_mut().zip(pairs) {
                *byte = first | second << 4;
            }
            if let ([last], Some(byte)) = (rest, bytes.get_mut(pairs.len())) {
                *byte = *last;
            }
        }
        8 => bytes[..integers.len()].copy_from_slice(integers),
        _ => {
            let packed = packed(integers, bits);
            bytes[..packed.len()].copy_from_slice(&packed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_integer_is_in_the_low_bits() {
        assert_eq!(packed(&[1, 2, 3], 4), [0x21, 0x03]);
        assert_eq!(packed(&[1, 2, 3, 0, 3], 2), [0b00_11_10_01, 3]);
        assert_eq!(packed(&[200, 7], 8), [200, 7]);
    }

    #[test]
    fn zero_points_of_a_column_end_with_the_middle() {
        let zero_points = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let bytes = packed_zero_points(zero_points.into_iter(), 3, 4);
        assert_eq!(bytes, [0x21, 0x83, 0x54, 0x86]);
        let bytes = packed_zero_points([0.0, 255.0].into_iter(), 1, 8);
        assert_eq!(bytes, [0, 255]);
    }
}
