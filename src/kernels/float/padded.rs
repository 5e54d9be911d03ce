//! A picture with its zeros around it, so that no window needs to ask where it ends.

use super::Geometry;
use super::lanes::Lanes;

/// A plane split by what its rows and columns leave over when divided by the stride: what neighbouring windows
/// read at the same point of the window is side by side in one part, whatever the stride.
///
/// Part (y, x) begins at `(y * stride + x) * part` and holds the points (row * stride + y, column * stride + x).
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// Columns of a part: the distance of its rows.
    pub(super) pitch: usize,
    /// Floats of a part.
    pub(super) part: usize,
    stride: [usize; 2],
}

impl Parts {
    /// `slack` floats may be read after the last point of each part.
    pub(super) fn new(geometry: &Geometry, slack: usize) -> Parts {
        let sizes = [0, 1].map(|axis| {
            let whole = geometry
                .reach(axis)
                .max(geometry.pad[axis] + geometry.input[axis]);
            whole.div_ceil(geometry.stride[axis])
        });
        Parts {
            pitch: sizes[1],
            part: sizes[0] * sizes[1] + slack,
            stride: geometry.stride,
        }
    }

    /// Floats of all parts of a plane.
    pub(super) fn len(&self) -> usize {
        self.part * self.stride[0] * self.stride[1]
    }

    /// Where the point of a window that is `row`, `column` from its first is, from where the window is.
    pub(super) fn offset(&self, row: usize, column: usize) -> usize {
        let [rows, columns] = self.stride;
        ((row % rows) * columns + column % columns) * self.part
            + (row / rows) * self.pitch
            + column / columns
    }

    /// Copies a plane into its parts. Where the zeros are, `parts` is zero before and after.
    pub(super) fn fill(&self, geometry: &Geometry, plane: &[f32], parts: &mut [f32]) {
        let [stride_rows, stride_columns] = self.stride;
        let width = geometry.input[1];
        for (row, line) in plane.chunks_exact(width).enumerate() {
            let row = row + geometry.pad[0];
            let start =
                (row % stride_rows) * stride_columns * self.part + (row / stride_rows) * self.pitch;
            if stride_columns == 1 {
                let at = start + geometry.pad[1];
                parts[at..at + width].copy_from_slice(line);
                continue;
            }
            for phase in 0..stride_columns {
                // The first column of the picture in this part.
                let first =
                    (phase + stride_columns - geometry.pad[1] % stride_columns) % stride_columns;
                let at = start + phase * self.part + (first + geometry.pad[1]) / stride_columns;
                let Some(line) = line.get(first..) else {
                    continue;
                };
                let count = line.len().div_ceil(stride_columns);
                every(stride_columns, line, &mut parts[at..at + count]);
            }
        }
    }
}

/// Takes every `stride`-th float of a line, from the first on.
fn every(stride: usize, line: &[f32], to: &mut [f32]) {
    let mut done = 0;
    if stride == 2 {
        let vectors = line.chunks_exact(8).zip(to.chunks_exact_mut(4));
        done = vectors.len();
        for (from, to) in vectors {
            // SAFETY: there are eight floats to read and four to write.
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
