//! Numbers as little-endian bytes, and back.

/// Appends the bytes of numbers; the loop compiles to a copy.
pub(super) fn append<const N: usize, T: Copy>(
    raw: &mut Vec<u8>,
    numbers: &[T],
    bytes: impl Fn(T) -> [u8; N],
) {
    let from = raw.len();
    raw.resize(from + numbers.len() * N, 0);
    for (to, &number) in raw[from..].as_chunks_mut().0.iter_mut().zip(numbers) {
        *to = bytes(number);
    }
}

/// Decodes every `N` bytes as one number.
pub(super) fn decoded<const N: usize, T>(raw: &[u8], number: impl Fn([u8; N]) -> T) -> Vec<T> {
    raw.as_chunks::<N>()
        .0
        .iter()
        .map(|&chunk| number(chunk))
        .collect()
}
