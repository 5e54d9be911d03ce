//! Padded planes in polyphase layout, so that windows read without bounds checks.

use super::Geometry;
use super::lanes::Lanes;

/// BandLayout of a padded plane, split into one plane per phase of the stride.
///
/// Values that neighbouring windows read at the same tap are contiguous in one phase, for any
/// stride. Phase (y, x) begins at `(y * stride + x) * phase_len`. It holds the positions (row *
/// stride + y, column * stride + x).
#[derive(Clone, Copy, Debug)]
pub(super) struct Polyphase {
    /// Columns of a phase: the distance of its rows.
    pub(super) pitch: usize,
    /// Floats of a phase.
    pub(super) phase_len: usize,
    stride: [usize; 2],
}

impl Polyphase {
    /// Computes the layout. `slack` floats may be read beyond the last position of each phase.
    pub(super) fn new(geometry: &Geometry, slack: usize) -> Polyphase {
        let sizes = [0, 1].map(|axis| {
            let whole = geometry
                .reach(axis)
                .max(geometry.pad[axis] + geometry.input[axis]);
            whole.div_ceil(geometry.stride[axis])
        });
        Polyphase {
            pitch: sizes[1],
            phase_len: sizes[0] * sizes[1] + slack,
            stride: geometry.stride,
        }
    }

    /// Floats of all phases of a plane.
    pub(super) fn len(&self) -> usize {
        self.phase_len * self.stride[0] * self.stride[1]
    }

    /// Returns the offset of tap (`row`, `column`) relative to the window's origin.
    pub(super) fn offset(&self, row: usize, column: usize) -> usize {
        let [rows, columns] = self.stride;
        ((row % rows) * columns + column % columns) * self.phase_len
            + (row / rows) * self.pitch
            + column / columns
    }

    /// Copies a plane into its phases. Padding positions are zero beforehand and are not written.
    pub(super) fn fill(&self, geometry: &Geometry, plane: &[f32], phases: &mut [f32]) {
        let [stride_rows, stride_columns] = self.stride;
        let width = geometry.input[1];
        for (row, line) in plane.chunks_exact(width).enumerate() {
            let row = row + geometry.pad[0];
            let start = (row % stride_rows) * stride_columns * self.phase_len
                + (row / stride_rows) * self.pitch;
            if stride_columns == 1 {
                let at = start + geometry.pad[1];
                phases[at..at + width].copy_from_slice(line);
                continue;
            }
            for phase in 0..stride_columns {
                // First input column of this phase.
                let first =
                    (phase + stride_columns - geometry.pad[1] % stride_columns) % stride_columns;
                let at =
                    start + phase * self.phase_len + (first + geometry.pad[1]) / stride_columns;
                let Some(line) = line.get(first..) else {
                    continue;
                };
                let count = line.len().div_ceil(stride_columns);
                take_strided(stride_columns, line, &mut phases[at..at + count]);
            }
        }
    }
}

/// Copies every `stride`-th float, beginning with the first, until the line ends or `to` is full.
pub(super) fn take_strided(stride: usize, line: &[f32], to: &mut [f32]) {
    let mut done = 0;
    if stride == 2 {
        let vectors = line.chunks_exact(8).zip(to.chunks_exact_mut(4));
        done = vectors.len();
        for (from, to) in vectors {
            // SAFETY: eight floats are read and four written.
            unsafe {
                let (first, next) = (
                    Lanes::load(from.as_ptr()),
                    Lanes::load(from.as_ptr().add(4)),
                );
                first.every_other(next).store(to.as_mut_ptr());
            }
        }
    }
    let rest = line[done * 8..].iter().step_by(stride);
    for (to, &value) in to[done * 4..].iter_mut().zip(rest) {
        *to = value;
    }
}
