//! Short byte copies as vector moves. In wasm the compiler would emit calls to `memory.copy`, which
//! cost more than the few dozen bytes of a pixel.

/// Copies between slices of equal length.
#[inline]
pub(super) fn copy(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "one length");
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    simd128::copy(from, to);
    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    to.copy_from_slice(from);
}

/// Widens bytes to little-endian i16.
#[inline]
pub(super) fn widen(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len() * 2, to.len(), "two bytes for one");
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    simd128::widen(from, to);
    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    for (to, &value) in to.as_chunks_mut::<2>().0.iter_mut().zip(from) {
        *to = u16::from(value).to_le_bytes();
    }
}

/// Maximum overrun of [`copy_over`] and [`widen_over`] in bytes.
pub(super) const OVER: usize = 16;

/// Copies the first `count` bytes in whole vectors, which overrun the end. Returns false if there
/// is no room for that.
#[inline(always)]
#[must_use]
pub(super) fn copy_over(from: &[u8], count: usize, to: &mut [u8]) -> bool {
    over(from, count, to, |bytes: &[u8; 16]| *bytes)
}

/// Widens the first `count` bytes to i16 in whole vectors, as [`copy_over`] copies them.
#[inline(always)]
#[must_use]
pub(super) fn widen_over(from: &[u8], count: usize, to: &mut [u8]) -> bool {
    over(from, count, to, widened)
}

/// Converts every `BYTES` bytes to one vector.
#[inline(always)]
fn over<const BYTES: usize>(
    from: &[u8],
    count: usize,
    to: &mut [u8],
    made: impl Fn(&[u8; BYTES]) -> [u8; 16],
) -> bool {
    let vectors = count.div_ceil(BYTES);
    let (from, to) = (from.as_chunks().0, to.as_chunks_mut().0);
    let (Some(from), Some(to)) = (from.get(..vectors), to.get_mut(..vectors)) else {
        return false;
    };
    for (to, from) in to.iter_mut().zip(from) {
        *to = made(from);
    }
    true
}

/// Widens eight bytes to i16.
#[inline(always)]
fn widened(bytes: &[u8; 8]) -> [u8; 16] {
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    return simd128::widened(bytes);
    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    core::array::from_fn(|at| if at % 2 == 0 { bytes[at / 2] } else { 0 })
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128 {
    use core::arch::wasm32::{u16x8_load_extend_u8x8, v128_load, v128_store};

    pub(super) fn copy(from: &[u8], to: &mut [u8]) {
        let count = from.len();
        let (from, to) = (from.as_ptr(), to.as_mut_ptr());
        // SAFETY: every access ends at or before `count`, the length of both slices. The last
        // vector may overlap the one before; it rewrites the same bytes.
        unsafe {
            if count >= 16 {
                let mut at = 0;
                while at + 16 <= count {
                    v128_store(to.add(at).cast(), v128_load(from.add(at).cast()));
                    at += 16;
                }
                if at < count {
                    let last = count - 16;
                    v128_store(to.add(last).cast(), v128_load(from.add(last).cast()));
                }
            } else if count >= 4 {
                let mut at = 0;
                while at + 4 <= count {
                    let four = from.add(at).cast::<u32>().read_unaligned();
                    to.add(at).cast::<u32>().write_unaligned(four);
                    at += 4;
                }
                if at < count {
                    let four = from.add(count - 4).cast::<u32>().read_unaligned();
                    to.add(count - 4).cast::<u32>().write_unaligned(four);
                }
            } else {
                for at in 0..count {
                    to.add(at).write(from.add(at).read());
                }
            }
        }
    }

    #[inline(always)]
    pub(super) fn widened(bytes: &[u8; 8]) -> [u8; 16] {
        let mut words = [0; 16];
        // SAFETY: reads eight bytes and writes sixteen.
        unsafe {
            v128_store(
                words.as_mut_ptr().cast(),
                u16x8_load_extend_u8x8(bytes.as_ptr()),
            )
        };
        words
    }

    pub(super) fn widen(from: &[u8], to: &mut [u8]) {
        let count = from.len();
        let (from, to) = (from.as_ptr(), to.as_mut_ptr());
        // SAFETY: as above; `to` has two bytes for each of `from`.
        unsafe {
            if count >= 8 {
                let mut at = 0;
                while at + 8 <= count {
                    v128_store(to.add(at * 2).cast(), u16x8_load_extend_u8x8(from.add(at)));
                    at += 8;
                }
                if at < count {
                    let last = count - 8;
                    v128_store(
                        to.add(last * 2).cast(),
                        u16x8_load_extend_u8x8(from.add(last)),
                    );
                }
            } else {
                for at in 0..count {
                    to.add(at * 2)
                        .cast::<[u8; 2]>()
                        .write([from.add(at).read(), 0]);
                }
            }
        }
    }
}
