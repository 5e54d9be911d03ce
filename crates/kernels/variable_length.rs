//! Signed integers of variable length: seven bits a byte, the lowest first, and the sign in the
//! lowest bit of all. Files of statistics hold millions of them.

/// The most bytes of a number.
const LONGEST: usize = 10;

/// Reads as many numbers as `out` has places. Returns the number of bytes that they take, or `None`
/// if the bytes end early or a number is too long.
#[must_use]
pub fn read_signed(bytes: &[u8], out: &mut [i64]) -> Option<usize> {
    let mut at = 0;
    for out in out {
        // The usual number ends within eight bytes, which are taken at once.
        let eight = bytes
            .get(at..at + 8)
            .and_then(|eight| eight.try_into().ok());
        let number = match eight.and_then(|eight| short(u64::from_le_bytes(eight))) {
            Some((number, length)) => {
                at += length;
                number
            }
            None => long(bytes, &mut at)?,
        };
        *out = (number >> 1) as i64 ^ -((number & 1) as i64);
    }
    Some(at)
}

/// The number at the begin of eight bytes, and its length. `None` if it is longer.
fn short(eight: u64) -> Option<(u64, usize)> {
    const MORE: u64 = 0x8080_8080_8080_8080;
    let ends = !eight & MORE;
    if ends == 0 {
        return None;
    }
    let bits = ends.trailing_zeros() + 1;
    let own = eight & (u64::MAX >> (64 - bits)) & !MORE;
    // Pairs of seven bits move together, then pairs of fourteen, then of twenty-eight.
    let pairs = (own & 0x007f_007f_007f_007f) | (own & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    let all = (fours & 0x0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4;
    Some((all, bits as usize / 8))
}

/// Reads a number byte by byte.
fn long(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0;
    for place in 0..LONGEST {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a number by definition.
    fn written(number: i64) -> Vec<u8> {
        let mut rest = ((number << 1) ^ (number >> 63)) as u64;
        let mut bytes = Vec::new();
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes
    }

    #[test]
    fn numbers_of_all_lengths_come_back() {
        let near = |bit: u32| [-2, -1, 0, 1, 2].map(|more: i64| (1i64 << bit).wrapping_add(more));
        let mut numbers: Vec<i64> = (0..64).flat_map(near).collect();
        numbers.extend(numbers.clone().into_iter().map(i64::wrapping_neg));
        numbers.extend([i64::MIN, i64::MAX, 0, -1]);
        let bytes: Vec<u8> = numbers.iter().copied().flat_map(written).collect();
        let mut read = vec![7; numbers.len()];
        assert_eq!(read_signed(&bytes, &mut read), Some(bytes.len()));
        assert_eq!(read, numbers);
        // One at a time, so that each ends with the bytes.
        for number in numbers {
            let bytes = written(number);
            let mut one = [0];
            assert_eq!(read_signed(&bytes, &mut one), Some(bytes.len()));
            assert_eq!(one, [number]);
            assert_eq!(read_signed(&bytes[..bytes.len() - 1], &mut one), None);
        }
    }

    #[test]
    fn bytes_behind_the_numbers_stay() {
        let mut two = [0; 2];
        assert_eq!(
            read_signed(&[2, 1, 9, 9, 9, 9, 9, 9, 9, 9], &mut two),
            Some(2)
        );
        assert_eq!(two, [1, -1]);
        assert_eq!(read_signed(&[0x80; 11], &mut two), None);
        assert_eq!(read_signed(&[], &mut []), Some(0));
    }
}
