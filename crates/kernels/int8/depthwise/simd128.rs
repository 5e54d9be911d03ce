//! The depthwise kernel in WebAssembly SIMD, sixteen channels at a time, with GEMM's instructions.
//! Image rows are interleaved (`interleave`), and strips of the output run along them (`strip`).

use core::arch::wasm32::{
    f32x4_add, f32x4_convert_i32x4, f32x4_mul, i32x4_splat, v128, v128_store,
};
use core::ops::Range;

#[cfg(target_feature = "relaxed-simd")]
use super::super::Isa;
use super::super::gemm::dot::{Dot, I16Pairs};
#[cfg(target_feature = "relaxed-simd")]
use super::super::gemm::relaxed::{RelaxedFused, RelaxedSplit};
use super::super::output::Output;
use super::super::vector::{Requantizer, load, store};
#[cfg(target_feature = "relaxed-simd")]
use super::interleave::FourRows;
use super::interleave::{Interleave, InterleavedRows, TwoRows};
use super::strip::{ColumnMap, Strip, TAP_BYTES, columns};
use super::{CHANNEL_BLOCK, Job, VECTORS, portable};

/// Output pixels per strip, of one row or of several narrow ones.
const STRIP_PIXELS: usize = 128;

/// Computes the convolution on its ISA.
pub(super) fn run(job: &Job, output: Output) {
    let pixels = job.width.min(STRIP_PIXELS);
    if columns(job.window, pixels) > pixels * job.window.kernel[1] {
        // No tap reads most of the columns that would be interleaved.
        return portable::run(job, output);
    }
    #[cfg(target_feature = "relaxed-simd")]
    if let Some(dot) = job.weights.isa.relaxed_dot() {
        return match (job.weights.isa, dot.signed) {
            (Isa::RelaxedSplit, false) => run_with(RelaxedSplit::<false>, FourRows, job, output),
            (Isa::RelaxedSplit, true) => run_with(RelaxedSplit::<true>, FourRows, job, output),
            (_, false) => run_with(RelaxedFused::<false>, FourRows, job, output),
            (_, true) => run_with(RelaxedFused::<true>, FourRows, job, output),
        };
    }
    run_with(I16Pairs, TwoRows, job, output);
}

#[inline(never)]
fn run_with<I: Interleave>(dot: impl Dot, interleave: I, job: &Job, mut output: Output) {
    // Strips of equal width, then the remainder of the rows.
    let whole = job.width.min(STRIP_PIXELS);
    let end = job.width / whole * whole;
    for (columns, pixels) in [(0..end, whole), (end..job.width, job.width - end)] {
        if !columns.is_empty() {
            let map = ColumnMap::new(job.window, pixels);
            run_strips(dot, interleave, job, columns, &map, &mut output);
        }
    }
}

/// Computes some output columns, strip by strip.
#[inline(always)]
fn run_strips<I: Interleave>(
    dot: impl Dot,
    interleave: I,
    job: &Job,
    columns: Range<usize>,
    map: &ColumnMap,
    output: &mut Output,
) {
    let (weights, window) = (job.weights, job.window);
    let rows_per_output = window.kernel[0].div_ceil(I::ROWS);
    let blocks = weights
        .packed
        .chunks_exact(rows_per_output * window.kernel[1] * TAP_BYTES);
    let needed = weights.channels.div_ceil(CHANNEL_BLOCK);
    assert_eq!(blocks.len(), needed, "weights are packed for this ISA");
    // Only whole rows are contiguous.
    let rows = match map.count == job.width {
        true => (STRIP_PIXELS / map.count).min(job.rows.len()),
        false => 1,
    };
    let mut rows_cache = InterleavedRows::new(interleave, job.image, window, map, rows);
    let mut offsets = Vec::new();
    let mut sums = vec![i32x4_splat(0); rows * map.count * VECTORS];
    for (block, packed) in blocks.enumerate() {
        let first = weights.first_channel(block);
        for from in columns.clone().step_by(map.count) {
            rows_cache.start(from, first);
            for y in job.rows.clone().step_by(rows) {
                let rows = y..job.rows.end.min(y + rows);
                let group_sums = rows.len() * map.count;
                rows_cache.locate(rows, &mut offsets);
                let sums = &mut sums[..group_sums * VECTORS];
                for (group, sums) in sums.chunks_exact_mut(group_sums).enumerate() {
                    let strip = Strip {
                        map,
                        vectors: rows_cache.vectors(),
                        rows: &offsets,
                        rows_per_output,
                        padding_only: rows_cache.padding_only(),
                        from: group * map.wide,
                        weights: &packed[group * 16..],
                        initial: load(job.initial, first + group * 4),
                    };
                    strip.run(dot, sums);
                }
                let pixel = (y - job.rows.start) * job.width + from;
                apply_epilogue(output, pixel, first, sums);
            }
        }
    }
}

/// Applies the epilogue to sixteen channels of consecutive pixels. Sums are ordered by groups of
/// four channels.
#[inline(never)]
fn apply_epilogue(output: &mut Output, first_pixel: usize, first: usize, sums: &[v128]) {
    let pixels = sums.len() / VECTORS;
    let groups: [&[v128]; VECTORS] = core::array::from_fn(|at| &sums[at * pixels..][..pixels]);
    match output {
        Output::Requantized { values, stride, by } => {
            let requantizer = Requantizer::new(by.zero_point, by.low, by.high);
            let multipliers: [v128; VECTORS] =
                core::array::from_fn(|at| load(by.multipliers, first + at * 4));
            let values = &mut values[first_pixel * *stride + first..];
            let needed = (pixels - 1) * *stride + CHANNEL_BLOCK;
            assert!(values.len() >= needed, "room for all pixels");
            let mut to = values.as_mut_ptr();
            let [a, b, c, d] = groups.map(|sums| sums.iter());
            for (((a, b), c), d) in a.zip(b).zip(c).zip(d) {
                let steps =
                    |sums: &v128, at| f32x4_mul(f32x4_convert_i32x4(*sums), multipliers[at]);
                let bytes =
                    requantizer.sixteen([steps(a, 0), steps(b, 1), steps(c, 2), steps(d, 3)]);
                // SAFETY: asserted above.
                unsafe { v128_store(to.cast(), bytes) };
                to = to.wrapping_add(*stride);
            }
        }
        Output::Accumulators { values, stride } => {
            for (at, sums) in groups.iter().enumerate() {
                for (pixel, &sums) in (first_pixel..).zip(*sums) {
                    store(values, pixel * *stride + first + at * 4, sums);
                }
            }
        }
        Output::Floats {
            values,
            stride,
            scales,
            bias,
        } => {
            for (channel, sums) in (first..).step_by(4).zip(groups) {
                let scales = load(scales, channel);
                let bias = bias.map(|bias| load(bias, channel));
                for (pixel, &sums) in (first_pixel..).zip(sums) {
                    let value = f32x4_mul(f32x4_convert_i32x4(sums), scales);
                    let value = bias.map_or(value, |bias| f32x4_add(value, bias));
                    store(values, pixel * *stride + channel, value);
                }
            }
        }
    }
}
