//! Sixteen channels in WebAssembly's SIMD, by the same instructions as in gemm: rows of the image are brought together
//! (`bundle`), and strips of the output run along them (`strip`).

use core::arch::wasm32::{
    f32x4_add, f32x4_convert_i32x4, f32x4_mul, i32x4_splat, v128, v128_store,
};
use core::ops::Range;

#[cfg(target_feature = "relaxed-simd")]
use super::super::Form;
#[cfg(target_feature = "relaxed-simd")]
use super::super::gemm::relaxed::{Fused, Split};
use super::super::gemm::simd128::{Dot, Wide};
use super::super::output::Output;
use super::super::vector::{Ends, load, store};
#[cfg(target_feature = "relaxed-simd")]
use super::bundle::Four;
use super::bundle::{Bundles, Interleave, Two, VECTORS};
use super::strip::{Places, Strip, TAP, columns};
use super::{Job, WIDE, portable};

/// Places of the output that are computed together: of one row, or of several narrow ones.
const TOGETHER: usize = 128;

/// Runs the job in its form.
pub(super) fn run(job: &Job, output: Output) {
    let places = job.width.min(TOGETHER);
    if columns(job.window, places) > places * job.window.kernel[1] {
        // Most of what would be brought together, no tap looks at.
        return portable::run(job, output);
    }
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

#[inline(never)]
fn run_with<I: Interleave>(dot: impl Dot, interleave: I, job: &Job, mut output: Output) {
    // Strips of one width, and the rest of the rows.
    let whole = job.width.min(TOGETHER);
    let end = job.width / whole * whole;
    for (columns, places) in [(0..end, whole), (end..job.width, job.width - end)] {
        if !columns.is_empty() {
            let places = Places::new(job.window, places);
            run_strips(dot, interleave, job, columns, &places, &mut output);
        }
    }
}

/// Computes some columns of the output, strip by strip.
#[inline(always)]
fn run_strips<I: Interleave>(
    dot: impl Dot,
    interleave: I,
    job: &Job,
    columns: Range<usize>,
    places: &Places,
    output: &mut Output,
) {
    let (weights, window) = (job.weights, job.window);
    let each = window.kernel[0].div_ceil(I::DEEP);
    let blocks = weights.packed.chunks_exact(each * window.kernel[1] * TAP);
    let needed = weights.channels.div_ceil(WIDE);
    assert_eq!(blocks.len(), needed, "packed for this form");
    // Whole rows lie one behind the other.
    let rows = match places.count == job.width {
        true => (TOGETHER / places.count).min(job.rows.len()),
        false => 1,
    };
    let mut bundles = Bundles::new(interleave, job.image, window, places, rows);
    let mut found = Vec::new();
    let mut sums = vec![i32x4_splat(0); rows * places.count * VECTORS];
    for (block, packed) in blocks.enumerate() {
        let first = weights.first_channel(block);
        for from in columns.clone().step_by(places.count) {
            bundles.begin(from, first);
            for y in job.rows.clone().step_by(rows) {
                let rows = y..job.rows.end.min(y + rows);
                let each_group = rows.len() * places.count;
                bundles.of(rows, &mut found);
                let sums = &mut sums[..each_group * VECTORS];
                for (group, sums) in sums.chunks_exact_mut(each_group).enumerate() {
                    let strip = Strip {
                        places,
                        vectors: bundles.vectors(),
                        bundles: &found,
                        each,
                        nothing: bundles.nothing(),
                        from: group * places.wide,
                        weights: &packed[group * 16..],
                        beginning: load(job.beginnings, first + group * 4),
                    };
                    strip.run(dot, sums);
                }
                let place = (y - job.rows.start) * job.width + from;
                finish(output, place, first, sums);
            }
        }
    }
}

/// Writes sixteen channels of neighbouring places, from sums of four channels after the other.
#[inline(never)]
fn finish(output: &mut Output, first_place: usize, first: usize, sums: &[v128]) {
    let places = sums.len() / VECTORS;
    let groups: [&[v128]; VECTORS] = core::array::from_fn(|at| &sums[at * places..][..places]);
    match output {
        Output::Requantized { values, stride, by } => {
            let ends = Ends::new(by.zero_point, by.low, by.high);
            let multipliers: [v128; VECTORS] =
                core::array::from_fn(|at| load(by.multipliers, first + at * 4));
            let values = &mut values[first_place * *stride + first..];
            let needed = (places - 1) * *stride + WIDE;
            assert!(values.len() >= needed, "room for all places");
            let mut to = values.as_mut_ptr();
            let [a, b, c, d] = groups.map(|sums| sums.iter());
            for (((a, b), c), d) in a.zip(b).zip(c).zip(d) {
                let steps =
                    |sums: &v128, at| f32x4_mul(f32x4_convert_i32x4(*sums), multipliers[at]);
                let bytes = ends.sixteen([steps(a, 0), steps(b, 1), steps(c, 2), steps(d, 3)]);
                // SAFETY: asserted above.
                unsafe { v128_store(to.cast(), bytes) };
                to = to.wrapping_add(*stride);
            }
        }
        Output::Accumulators { values, stride } => {
            for (at, sums) in groups.iter().enumerate() {
                for (place, &sums) in (first_place..).zip(*sums) {
                    store(values, place * *stride + first + at * 4, sums);
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
                for (place, &sums) in (first_place..).zip(sums) {
                    let value = f32x4_mul(f32x4_convert_i32x4(sums), scales);
                    let value = bias.map_or(value, |bias| f32x4_add(value, bias));
                    store(values, place * *stride + channel, value);
                }
            }
        }
    }
}
