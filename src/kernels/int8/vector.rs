//! The vector forms' common end: i32 or f32 lanes to what is written.

use core::arch::wasm32::{
    f32x4_add, f32x4_pmax, f32x4_pmin, f32x4_splat, i16x8_narrow_i32x4, i32x4_splat, i32x4_sub,
    u8x16_narrow_i16x8, v128, v128_load, v128_store, v128_store64_lane,
};

use super::output::MAGIC;

/// Clamps and rounds four values in steps of the output: `requantized`, lane by lane.
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
            magic: f32x4_splat(MAGIC),
            zero: i32x4_splat(MAGIC.to_bits() as i32 - i32::from(zero_point)),
        }
    }

    /// Four steps (none NaN) to four i32 in 0..=255.
    #[inline(always)]
    pub(super) fn of(self, steps: v128) -> v128 {
        let steps = f32x4_pmin(self.high, f32x4_pmax(self.low, steps));
        i32x4_sub(f32x4_add(steps, self.magic), self.zero)
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

/// Stores eight bytes from lanes in 0..=255.
#[inline(always)]
pub(super) fn store_eight(values: &mut [u8; 8], [first, second]: [v128; 2]) {
    let words = i16x8_narrow_i32x4(first, second);
    // SAFETY: eight bytes.
    unsafe { v128_store64_lane::<0>(u8x16_narrow_i16x8(words, words), values.as_mut_ptr().cast()) }
}

/// Stores sixteen bytes from lanes in 0..=255.
#[inline(always)]
pub(super) fn store_sixteen(values: &mut [u8; 16], lanes: [v128; 4]) {
    let bytes = u8x16_narrow_i16x8(
        i16x8_narrow_i32x4(lanes[0], lanes[1]),
        i16x8_narrow_i32x4(lanes[2], lanes[3]),
    );
    // SAFETY: sixteen bytes.
    unsafe { v128_store(values.as_mut_ptr().cast(), bytes) }
}
