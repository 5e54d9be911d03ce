//! Sixteen channels in WebAssembly's SIMD: the bytes of two or four taps are interleaved, so that each channel's lie
//! together, and then one dot product adds all of them: the same instructions as in gemm.

use core::arch::wasm32::{
    f32x4_add, f32x4_convert_i32x4, f32x4_mul, i8x16_shuffle, u16x8_extend_high_u8x16,
    u16x8_extend_low_u8x16, v128, v128_load,
};

#[cfg(target_feature = "relaxed-simd")]
use super::super::Form;
#[cfg(target_feature = "relaxed-simd")]
use super::super::gemm::relaxed::{Fused, Split};
use super::super::gemm::simd128::{Dot, Wide};
use super::super::output::Output;
use super::super::vector::{Ends, load, store, store_sixteen};
use super::{Job, WIDE};

/// Vectors of i32 for sixteen channels.
const VECTORS: usize = WIDE / 4;

/// Runs the job in its form.
pub(super) fn run(job: &Job, output: Output) {
    #[cfg(target_feature = "relaxed-simd")]
    if let Some(operands) = job.weights.form.operands() {
        return match (job.weights.form, operands.signed) {
            (Form::RelaxedSplit, false) => run_with(Split::<false>, Four, job, output),
            (Form::RelaxedSplit, true) => run_with(Split::<true>, Four, job, output),
            (_, false) => run_with(Fused::<false>, Four, job, output),
            (_, true) => run_with(Fused::<true>, Four, job, output),
        };
    }
    run_with(Wide, Two, job, output);
}

/// Brings the taps of a step together.
trait Interleave: Copy {
    /// How many taps.
    const DEEP: usize;

    /// # Safety
    ///
    /// There are [`Self::DEEP`] pixels, and sixteen bytes can be read from `at` of each.
    unsafe fn step(self, pixels: *const *const u8, at: usize) -> [v128; VECTORS];
}

/// Sixteen bytes of a tap's pixel.
///
/// # Safety
///
/// There is such a pixel, and it has them.
#[inline(always)]
unsafe fn sixteen(pixels: *const *const u8, tap: usize, at: usize) -> v128 {
    // SAFETY: by the contract.
    unsafe { v128_load((*pixels.add(tap)).add(at).cast()) }
}

/// Two taps, as i16.
#[derive(Clone, Copy)]
struct Two;

impl Interleave for Two {
    const DEEP: usize = 2;

    #[inline(always)]
    unsafe fn step(self, pixels: *const *const u8, at: usize) -> [v128; VECTORS] {
        // SAFETY: by the contract.
        let (a, b) = unsafe { (sixteen(pixels, 0, at), sixteen(pixels, 1, at)) };
        let [low, high] = interleaved(a, b);
        [
            u16x8_extend_low_u8x16(low),
            u16x8_extend_high_u8x16(low),
            u16x8_extend_low_u8x16(high),
            u16x8_extend_high_u8x16(high),
        ]
    }
}

/// Four taps, as bytes.
#[cfg(target_feature = "relaxed-simd")]
#[derive(Clone, Copy)]
struct Four;

#[cfg(target_feature = "relaxed-simd")]
impl Interleave for Four {
    const DEEP: usize = 4;

    #[inline(always)]
    unsafe fn step(self, pixels: *const *const u8, at: usize) -> [v128; VECTORS] {
        // SAFETY: by the contract.
        let (a, b) = unsafe { (sixteen(pixels, 0, at), sixteen(pixels, 1, at)) };
        // SAFETY: likewise.
        let (c, d) = unsafe { (sixteen(pixels, 2, at), sixteen(pixels, 3, at)) };
        let ([ab_low, ab_high], [cd_low, cd_high]) = (interleaved(a, b), interleaved(c, d));
        let [first, second] = interleaved_pairs(ab_low, cd_low);
        let [third, fourth] = interleaved_pairs(ab_high, cd_high);
        [first, second, third, fourth]
    }
}

/// a0 b0 a1 b1 …, low half and high half.
#[inline(always)]
fn interleaved(a: v128, b: v128) -> [v128; 2] {
    [
        i8x16_shuffle::<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(a, b),
        i8x16_shuffle::<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(a, b),
    ]
}

/// The same with pairs of bytes.
#[cfg(target_feature = "relaxed-simd")]
#[inline(always)]
fn interleaved_pairs(a: v128, b: v128) -> [v128; 2] {
    use core::arch::wasm32::i16x8_shuffle;
    [
        i16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(a, b),
        i16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(a, b),
    ]
}

#[inline(always)]
fn run_with<I: Interleave>(dot: impl Dot, interleave: I, job: &Job, mut output: Output) {
    let weights = job.weights;
    let taps = weights.taps();
    let steps = taps.div_ceil(I::DEEP);
    let blocks = weights.channels.div_ceil(WIDE);
    let step_bytes = WIDE * 4;
    assert_eq!(
        weights.packed.len(),
        blocks * steps * step_bytes,
        "packed for this form"
    );
    // The last step is filled up: its weights are zero, so any pixel will do.
    let mut addresses = vec![job.taps.padding.as_ptr(); steps * I::DEEP];
    for y in job.rows.clone() {
        let rows = job.taps.rows(y);
        for x in 0..job.width {
            job.taps.look(&rows, x, &mut addresses[..taps]);
            let place = (y - job.rows.start) * job.width + x;
            let mut packed = weights.packed.as_ptr();
            for block in 0..blocks {
                let first = weights.first_channel(block);
                let mut sums: [v128; VECTORS] =
                    core::array::from_fn(|at| load(job.beginnings, first + at * 4));
                let mut pixels = addresses.as_ptr();
                for _ in 0..steps {
                    // SAFETY: a step has DEEP addresses and VECTORS times sixteen bytes of weights, by the lengths of
                    // both; each pixel has `channels` bytes, and the block ends at the last of them or before.
                    unsafe {
                        let bytes = interleave.step(pixels, first);
                        for (at, sum) in sums.iter_mut().enumerate() {
                            *sum = dot.dot(*sum, bytes[at], v128_load(packed.add(at * 16).cast()));
                        }
                        pixels = pixels.add(I::DEEP);
                        packed = packed.add(step_bytes);
                    }
                }
                finish(&mut output, place, first, sums);
            }
        }
    }
}

/// Writes sixteen channels of a pixel.
#[inline(always)]
fn finish(output: &mut Output, place: usize, first: usize, sums: [v128; VECTORS]) {
    match output {
        Output::Requantized { values, stride, by } => {
            let ends = Ends::new(by.zero_point, by.low, by.high);
            let bytes = core::array::from_fn(|at| {
                let multiplier = load(by.multipliers, first + at * 4);
                ends.of(f32x4_mul(f32x4_convert_i32x4(sums[at]), multiplier))
            });
            let values = &mut values[place * *stride + first..][..WIDE];
            if let Ok(values) = values.try_into() {
                store_sixteen(values, bytes);
            }
        }
        Output::Accumulators { values, stride } => {
            for (at, &sums) in sums.iter().enumerate() {
                store(values, place * *stride + first + at * 4, sums);
            }
        }
        Output::Floats {
            values,
            stride,
            scales,
            bias,
        } => {
            for (at, &sums) in sums.iter().enumerate() {
                let channel = first + at * 4;
                let value = f32x4_mul(f32x4_convert_i32x4(sums), load(scales, channel));
                let value = match bias {
                    Some(bias) => f32x4_add(value, load(bias, channel)),
                    None => value,
                };
                store(values, place * *stride + channel, value);
            }
        }
    }
}
