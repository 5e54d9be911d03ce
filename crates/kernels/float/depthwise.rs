//! Depthwise convolutions: every output channel reads one input channel.
//!
//! [`Polyphase`] lays out a plane. Each tap of output (row, column) then lies at a fixed offset
//! from `row * pitch + column`. A plane is thus computed as one run of `rows * pitch` floats.
//! Values between the end of a row and the next are dropped when rows are copied out.

use std::ops::Range;

use super::lanes::Lanes;
use super::polyphase::Polyphase;
use super::shared_floats::SharedFloats;
use super::{Epilogue, FloatBytes, Geometry};

/// Vectors per step. Enough independent sums hide the latency of an addition.
const STEP_VECTORS: usize = 8;

/// Vectors per step for the remainder of a plane.
const TAIL_VECTORS: usize = 2;

#[derive(Clone, Debug)]
pub(super) struct Depthwise {
    /// Offset of each tap.
    offsets: Vec<usize>,
    phases: Polyphase,
}

impl Depthwise {
    pub(super) fn new(geometry: &Geometry) -> Depthwise {
        let phases = Polyphase::new(geometry, 4 * TAIL_VECTORS);
        let [rows, columns] = geometry.kernel;
        let [down, right] = geometry.dilation;
        let taps = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let offsets = taps.map(|(row, column)| phases.offset(row * down, column * right));
        Depthwise {
            offsets: offsets.collect(),
            phases,
        }
    }

    /// Computes whole channels of the output.
    ///
    /// # Safety
    ///
    /// There is no other reference to the floats of these channels.
    pub(super) unsafe fn run(
        &self,
        geometry: &Geometry,
        weights: &[FloatBytes],
        input: &[f32],
        (channels, output): (Range<usize>, &SharedFloats<'_>),
        epilogue: Epilogue<'_>,
    ) {
        let plane = geometry.input[0] * geometry.input[1];
        let [rows, columns] = geometry.output;
        let pitch = self.phases.pitch;
        let line = (rows - 1) * pitch + columns;
        let mut phases = vec![0.0; self.phases.len()];
        let mut sums = vec![0.0; line.next_multiple_of(4 * TAIL_VECTORS)];
        let (low, high) = (Lanes::splat(epilogue.low), Lanes::splat(epilogue.high));
        let mut filled = None;
        for channel in channels {
            // SAFETY: only this loop refers to the channel.
            let out = unsafe { output.slice(channel * rows * columns, rows * columns) };
            let from = channel / geometry.outputs_per_group();
            if filled != Some(from) {
                self.phases
                    .fill(geometry, &input[from * plane..][..plane], &mut phases);
                filled = Some(from);
            }
            let taps = self.offsets.len();
            let weights = &weights[channel * taps..][..taps];
            let line = Line {
                phases: &phases,
                offsets: &self.offsets,
                weights,
                bias: Lanes::splat(epilogue.bias[channel]),
                low,
                high,
            };
            let mut long = sums.chunks_exact_mut(4 * STEP_VECTORS);
            let mut at = 0;
            for sums in &mut long {
                line.step::<STEP_VECTORS>(at, sums);
                at += 4 * STEP_VECTORS;
            }
            for sums in long.into_remainder().chunks_exact_mut(4 * TAIL_VECTORS) {
                line.step::<TAIL_VECTORS>(at, sums);
                at += 4 * TAIL_VECTORS;
            }
            for (row, out) in out.chunks_exact_mut(columns).enumerate() {
                out.copy_from_slice(&sums[row * pitch..][..columns]);
            }
        }
    }
}

/// Operands of one channel.
struct Line<'a> {
    phases: &'a [f32],
    offsets: &'a [usize],
    weights: &'a [FloatBytes],
    bias: Lanes,
    low: Lanes,
    high: Lanes,
}

impl Line<'_> {
    /// Computes the `4 * N` sums from `at` on.
    #[inline(always)]
    fn step<const N: usize>(&self, at: usize, sums: &mut [f32]) {
        let sums = &mut sums[..4 * N];
        let mut acc = [self.bias; N];
        for (&offset, weight) in self.offsets.iter().zip(self.weights) {
            let window = &self.phases[offset + at..][..4 * N];
            let weight = Lanes::splat(f32::from_le_bytes(*weight));
            for (lane, acc) in acc.iter_mut().enumerate() {
                // SAFETY: 4 * N floats were sliced.
                let values = unsafe { Lanes::load(window.as_ptr().add(4 * lane)) };
                *acc = acc.add_product(values, weight);
            }
        }
        for (lane, acc) in acc.into_iter().enumerate() {
            // SAFETY: 4 * N floats were sliced.
            unsafe {
                acc.clamp(self.low, self.high)
                    .store(sums.as_mut_ptr().add(4 * lane));
            }
        }
    }
}
