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

/// Packs integers into bytes, like [`packed`]. The bytes behind them stay as they are.
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
}
