//! Convolutions in which every output channel reads one input channel.
//!
//! A plane is laid out by [`Parts`]; then output (row, column) reads, for each point of the window, at a fixed
//! distance from `row * pitch + column`. So a whole plane is computed as one line of `rows * pitch` floats, and
//! what stands between the end of a row and the next is left behind when the rows are copied out.

use super::lanes::Lanes;
use super::padded::Parts;
use super::{Ends, Geometry, Raw};

/// Vectors computed at a time: with as many sums in flight, none waits for the one before.
const LONG: usize = 8;

/// The same for what is left of a plane.
const SHORT: usize = 2;

#[derive(Clone, Debug)]
pub(super) struct Depthwise {
    /// Where each tap reads.
    offsets: Vec<usize>,
    parts: Parts,
}

impl Depthwise {
    pub(super) fn new(geometry: &Geometry) -> Depthwise {
        let parts = Parts::new(geometry, 4 * SHORT);
        let [rows, columns] = geometry.kernel;
        let [down, right] = geometry.dilation;
        let taps = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let offsets = taps.map(|(row, column)| parts.offset(row * down, column * right));
        Depthwise {
            offsets: offsets.collect(),
            parts,
        }
    }

    pub(super) fn run(
        &self,
        geometry: &Geometry,
        weights: &[Raw],
        input: &[f32],
        output: &mut [f32],
        ends: Ends<'_>,
    ) {
        let plane = geometry.input[0] * geometry.input[1];
        let [rows, columns] = geometry.output;
        let pitch = self.parts.pitch;
        let line = (rows - 1) * pitch + columns;
        let mut parts = vec![0.0; self.parts.len()];
        let mut sums = vec![0.0; line.next_multiple_of(4 * SHORT)];
        let (low, high) = (Lanes::splat(ends.low), Lanes::splat(ends.high));
        let mut filled = None;
        for (channel, out) in output.chunks_exact_mut(rows * columns).enumerate() {
            let from = channel / geometry.outputs_per_group();
            if filled != Some(from) {
                self.parts
                    .fill(geometry, &input[from * plane..][..plane], &mut parts);
                filled = Some(from);
            }
            let taps = self.offsets.len();
            let weights = &weights[channel * taps..][..taps];
            let line = Line {
                parts: &parts,
                offsets: &self.offsets,
                weights,
                bias: Lanes::splat(ends.bias[channel]),
                low,
                high,
            };
            let mut long = sums.chunks_exact_mut(4 * LONG);
            let mut at = 0;
            for sums in &mut long {
                line.step::<LONG>(at, sums);
                at += 4 * LONG;
            }
            for sums in long.into_remainder().chunks_exact_mut(4 * SHORT) {
                line.step::<SHORT>(at, sums);
                at += 4 * SHORT;
            }
            for (row, out) in out.chunks_exact_mut(columns).enumerate() {
                out.copy_from_slice(&sums[row * pitch..][..columns]);
            }
        }
    }
}

/// What a channel's sums are made of.
struct Line<'a> {
    parts: &'a [f32],
    offsets: &'a [usize],
    weights: &'a [Raw],
    bias: Lanes,
    low: Lanes,
    high: Lanes,
}

impl Line<'_> {
    /// The `4 * N` sums from `at` on.
    #[inline(always)]
    fn step<const N: usize>(&self, at: usize, sums: &mut [f32]) {
        let sums = &mut sums[..4 * N];
        let mut acc = [self.bias; N];
        for (&offset, weight) in self.offsets.iter().zip(self.weights) {
            let window = &self.parts[offset + at..][..4 * N];
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
