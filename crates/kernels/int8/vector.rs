//! Shared vector conversions in WebAssembly SIMD: i32 or f32 lanes to bytes and back.

use core::arch::wasm32::{
    f32x4_add, f32x4_div, f32x4_eq, f32x4_mul, f32x4_pmax, f32x4_pmin, f32x4_splat, f32x4_sub,
    i16x8_add, i16x8_narrow_i32x4, i16x8_shuffle, i16x8_splat, i32x4_sub, u8x16_narrow_i16x8,
    u16x8_extend_high_u8x16, u16x8_extend_low_u8x16, v128, v128_and, v128_load, v128_store,
    v128_store64_lane,
};

use super::output::MAGIC;
use super::scale::Scale;

/// Vector form of `requantize`: clamps and rounds values in steps of the output.
#[derive(Clone, Copy)]
pub(super) struct Requantizer {
    low: v128,
    high: v128,
    magic: v128,
    zero: v128,
}

impl Requantizer {
    #[inline(always)]
    pub(super) fn new(zero_point: u8, low: u8, high: u8) -> Requantizer {
        let bound = |value: u8| opaque(f32x4_splat(f32::from(value) - f32::from(zero_point)));
        Requantizer {
            low: bound(low),
            high: bound(high),
            magic: opaque(f32x4_splat(MAGIC)),
            zero: opaque(i16x8_splat(i16::from(zero_point))),
        }
    }

    /// Converts sixteen values, none NaN, to bytes.
    #[inline(always)]
    pub(super) fn sixteen(self, [a, b, c, d]: [v128; 4]) -> v128 {
        u8x16_narrow_i16x8(self.to_words(a, b), self.to_words(c, d))
    }

    /// Converts eight values, none NaN, to bytes. The upper eight bytes are unspecified.
    #[inline(always)]
    pub(super) fn eight(self, [a, b]: [v128; 2]) -> v128 {
        u8x16_narrow_i16x8(self.to_words(a, b), self.zero)
    }

    /// Converts eight values to i16 in 0..=255.
    ///
    /// The standard library implements narrowing in generic operations, which the compiler folds
    /// back to the instruction. It does not fold two consecutive narrowings, so the zero point is
    /// added between them. The mask tells the compiler that no value exceeds a byte.
    #[inline(always)]
    fn to_words(self, a: v128, b: v128) -> v128 {
        let words = i16x8_narrow_i32x4(self.round(a), self.round(b));
        v128_and(i16x8_add(words, self.zero), i16x8_splat(0xFF))
    }

    /// Clamps and rounds four values.
    #[inline(always)]
    fn round(self, steps: v128) -> v128 {
        let steps = f32x4_pmin(self.high, f32x4_pmax(self.low, steps));
        i32x4_sub(f32x4_add(steps, self.magic), self.magic)
    }
}

/// Loads four lanes from a slice.
#[inline(always)]
pub(super) fn load<T: Copy>(values: &[T], at: usize) -> v128 {
    const { assert!(size_of::<T>() == 4) };
    // SAFETY: four values of four bytes.
    unsafe { v128_load(values[at..][..4].as_ptr().cast()) }
}

/// Stores four lanes to a slice.
#[inline(always)]
pub(super) fn store<T: Copy>(values: &mut [T], at: usize, lanes: v128) {
    const { assert!(size_of::<T>() == 4) };
    // SAFETY: four values of four bytes.
    unsafe { v128_store(values[at..][..4].as_mut_ptr().cast(), lanes) }
}

/// Stores the low eight bytes.
#[inline(always)]
pub(super) fn store_eight(values: &mut [u8; 8], bytes: v128) {
    // SAFETY: eight bytes.
    unsafe { v128_store64_lane::<0>(bytes, values.as_mut_ptr().cast()) }
}

/// Stores sixteen bytes.
#[inline(always)]
pub(super) fn store_sixteen(values: &mut [u8; 16], bytes: v128) {
    // SAFETY: sixteen bytes.
    unsafe { v128_store(values.as_mut_ptr().cast(), bytes) }
}

/// Vector form of `Scale::byte`.
pub(super) struct Quantizer {
    scale: v128,
    requantizer: Requantizer,
}

impl Quantizer {
    #[inline(always)]
    pub(super) fn new(to: Scale) -> Quantizer {
        Quantizer {
            scale: opaque(f32x4_splat(to.scale)),
            requantizer: Requantizer::new(to.zero_point, 0, u8::MAX),
        }
    }

    #[inline(always)]
    pub(super) fn sixteen(&self, values: &[f32; 16]) -> [u8; 16] {
        let lanes = |at: usize| {
            let steps = f32x4_div(load(values, at), self.scale);
            // NaN becomes zero.
            v128_and(steps, f32x4_eq(steps, steps))
        };
        let lanes = [lanes(0), lanes(4), lanes(8), lanes(12)];
        let mut bytes = [0; 16];
        store_sixteen(&mut bytes, self.requantizer.sixteen(lanes));
        bytes
    }
}

/// Vector conversion of bytes to floats minus the zero point.
#[derive(Clone, Copy)]
pub(super) struct CenteredBytes {
    /// 2^23 plus the zero point.
    zero: v128,
}

impl CenteredBytes {
    #[inline(always)]
    pub(super) fn new(zero_point: u8) -> CenteredBytes {
        let zero = 8_388_608.0 + f32::from(zero_point);
        CenteredBytes {
            zero: opaque(f32x4_splat(zero)),
        }
    }

    /// Converts sixteen bytes to floats minus the zero point.
    ///
    /// 2^23 plus a byte is an f32 whose low bits are the byte. The float is assembled from bits
    /// rather than converted.
    #[inline(always)]
    pub(super) fn floats(self, bytes: v128) -> [v128; 4] {
        let high_half = i16x8_splat(0x4B00);
        let (low, high) = (
            u16x8_extend_low_u8x16(bytes),
            u16x8_extend_high_u8x16(bytes),
        );
        [
            f32x4_sub(
                i16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(low, high_half),
                self.zero,
            ),
            f32x4_sub(
                i16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(low, high_half),
                self.zero,
            ),
            f32x4_sub(
                i16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(high, high_half),
                self.zero,
            ),
            f32x4_sub(
                i16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(high, high_half),
                self.zero,
            ),
        ]
    }
}

/// Hides a vector from the compiler. Otherwise it rematerializes constants in every iteration.
#[inline(always)]
pub(super) fn opaque(lanes: v128) -> v128 {
    core::hint::black_box(lanes)
}

/// Vector form of `Scale::value`.
pub(super) struct Dequantizer {
    scale: v128,
    centered: CenteredBytes,
}

impl Dequantizer {
    #[inline(always)]
    pub(super) fn new(from: Scale) -> Dequantizer {
        Dequantizer {
            scale: opaque(f32x4_splat(from.scale)),
            centered: CenteredBytes::new(from.zero_point),
        }
    }

    #[inline(always)]
    pub(super) fn sixteen(&self, bytes: &[u8; 16]) -> [f32; 16] {
        // SAFETY: sixteen bytes.
        let bytes = unsafe { v128_load(bytes.as_ptr().cast()) };
        let mut values = [0.0; 16];
        for (at, lanes) in self.centered.floats(bytes).into_iter().enumerate() {
            store(&mut values, 4 * at, f32x4_mul(lanes, self.scale));
        }
        values
    }
}
