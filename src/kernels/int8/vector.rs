//! The vector forms' common end: i32 or f32 lanes to what is written.

use core::arch::wasm32::{
    f32x4_add, f32x4_convert_i32x4, f32x4_div, f32x4_eq, f32x4_mul, f32x4_pmax, f32x4_pmin,
    f32x4_splat, i16x8_add, i16x8_narrow_i32x4, i16x8_splat, i16x8_sub, i32x4_extend_high_i16x8,
    i32x4_extend_low_i16x8, i32x4_sub, u8x16_narrow_i16x8, u16x8_extend_high_u8x16,
    u16x8_extend_low_u8x16, v128, v128_and, v128_load, v128_store, v128_store64_lane,
};

use super::convert::Scale;
use super::output::MAGIC;

/// Clamps and rounds values in steps of the output: `requantized`, lane by lane.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    low: v128,
    high: v128,
    magic: v128,
    zero: v128,
}

impl Ends {
    #[inline(always)]
    pub(super) fn new(zero_point: u8, low: u8, high: u8) -> Ends {
        let end = |value: u8| f32x4_splat(f32::from(value) - f32::from(zero_point));
        Ends {
            low: end(low),
            high: end(high),
            magic: f32x4_splat(core::hint::black_box(MAGIC)),
            zero: i16x8_splat(i16::from(zero_point)),
        }
    }

    /// Sixteen steps (none NaN) to bytes.
    #[inline(always)]
    pub(super) fn sixteen(self, [a, b, c, d]: [v128; 4]) -> v128 {
        u8x16_narrow_i16x8(self.words(a, b), self.words(c, d))
    }

    /// Eight steps (none NaN) to bytes, of which the other eight are anything.
    #[inline(always)]
    pub(super) fn eight(self, [a, b]: [v128; 2]) -> v128 {
        let words = self.words(a, b);
        u8x16_narrow_i16x8(words, self.zero)
    }

    /// Eight steps to i16 in 0..=255.
    ///
    /// The compiler writes a narrowing in plain operations and finds the instruction again, but not where one narrowing
    /// follows the other; so the zero point is added between them. That nothing is beyond a byte, the mask tells it.
    #[inline(always)]
    fn words(self, a: v128, b: v128) -> v128 {
        let words = i16x8_narrow_i32x4(self.rounded(a), self.rounded(b));
        v128_and(i16x8_add(words, self.zero), i16x8_splat(0xFF))
    }

    /// Four steps, clamped and rounded.
    #[inline(always)]
    fn rounded(self, steps: v128) -> v128 {
        let steps = f32x4_pmin(self.high, f32x4_pmax(self.low, steps));
        i32x4_sub(f32x4_add(steps, self.magic), self.magic)
    }
}

/// Four lanes from a slice.
#[inline(always)]
pub(super) fn load<T: Copy>(values: &[T], at: usize) -> v128 {
    const { assert!(size_of::<T>() == 4) };
    // SAFETY: four values of four bytes.
    unsafe { v128_load(values[at..][..4].as_ptr().cast()) }
}

/// Stores four lanes into a slice.
#[inline(always)]
pub(super) fn store<T: Copy>(values: &mut [T], at: usize, lanes: v128) {
    const { assert!(size_of::<T>() == 4) };
    // SAFETY: four values of four bytes.
    unsafe { v128_store(values[at..][..4].as_mut_ptr().cast(), lanes) }
}

/// Stores the first eight bytes.
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

/// `Scale::byte` of sixteen values.
#[inline(always)]
pub(super) fn quantized(values: &[f32; 16], to: Scale) -> [u8; 16] {
    let (scale, ends) = (f32x4_splat(to.scale), Ends::new(to.zero_point, 0, u8::MAX));
    let lanes = |at: usize| {
        let steps = f32x4_div(load(values, at), scale);
        // What is no number is no step.
        v128_and(steps, f32x4_eq(steps, steps))
    };
    let lanes = [lanes(0), lanes(4), lanes(8), lanes(12)];
    let mut bytes = [0; 16];
    store_sixteen(&mut bytes, ends.sixteen(lanes));
    bytes
}

/// `Scale::value` of sixteen bytes.
#[inline(always)]
pub(super) fn dequantized(bytes: &[u8; 16], from: Scale) -> [f32; 16] {
    let (scale, zero) = (
        f32x4_splat(from.scale),
        i16x8_splat(i16::from(from.zero_point)),
    );
    // SAFETY: sixteen bytes.
    let bytes = unsafe { v128_load(bytes.as_ptr().cast()) };
    let low = i16x8_sub(u16x8_extend_low_u8x16(bytes), zero);
    let high = i16x8_sub(u16x8_extend_high_u8x16(bytes), zero);
    let mut values = [0.0; 16];
    let lanes = [
        i32x4_extend_low_i16x8(low),
        i32x4_extend_high_i16x8(low),
        i32x4_extend_low_i16x8(high),
        i32x4_extend_high_i16x8(high),
    ];
    for (at, lanes) in lanes.into_iter().enumerate() {
        store(
            &mut values,
            4 * at,
            f32x4_mul(f32x4_convert_i32x4(lanes), scale),
        );
    }
    values
}
