//! Sliding windows over up to three axes, as runs of values that lie at equal distances.

use octet_kernels::dot_of_floats;

/// A window along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowAxis {
    /// Values along the axis.
    pub extent: usize,
    /// Positions of the window.
    pub places: usize,
    /// Values of a window.
    pub taps: usize,
    /// Distance of two positions.
    pub stride: usize,
    /// Distance of two taps.
    pub dilation: usize,
    /// Padding before the values; negative where values are skipped.
    pub before: i64,
}

impl WindowAxis {
    /// An axis without a window.
    pub const NONE: WindowAxis = WindowAxis {
        extent: 1,
        places: 1,
        taps: 1,
        stride: 1,
        dilation: 1,
        before: 0,
    };

    /// The value under a tap; `None` in the padding.
    fn value(&self, place: usize, tap: usize) -> Option<usize> {
        let value = (place * self.stride + tap * self.dilation) as i64 - self.before;
        usize::try_from(value)
            .ok()
            .filter(|&value| value < self.extent)
    }
}

/// Values under one tap of neighbouring positions.
#[derive(Clone, Copy)]
pub(super) struct WindowRun {
    /// The first position, counted from the first row that was asked for.
    pub(super) place: usize,
    /// The first value, in the plane.
    pub(super) value: usize,
    pub(super) count: usize,
}

impl WindowRun {
    /// Calls `each` with the value of each position in a row, and that of the plane under the tap.
    #[inline(always)]
    pub(super) fn to_row(
        self,
        (plane, step): (&[f32], usize),
        row: &mut [f32],
        each: impl Fn(&mut f32, f32),
    ) {
        let to = row[self.place..][..self.count].iter_mut();
        let from = &plane[self.value..];
        match step {
            // A loop of its own, which is vectorized.
            1 => to.zip(from).for_each(|(to, &value)| each(to, value)),
            _ => {
                let from = from.iter().step_by(step);
                to.zip(from).for_each(|(to, &value)| each(to, value));
            }
        }
    }

    /// Adds the values of a row, times a weight, to those of the plane under the tap.
    #[inline(always)]
    pub(super) fn add_to_plane(self, row: &[f32], weight: f32, (plane, step): (&mut [f32], usize)) {
        let from = &row[self.place..][..self.count];
        let to = &mut plane[self.value..];
        match step {
            1 => {
                let pairs = to.iter_mut().zip(from);
                pairs.for_each(|(to, value)| *to += weight * value);
            }
            _ => {
                let pairs = to.iter_mut().step_by(step).zip(from);
                pairs.for_each(|(to, value)| *to += weight * value);
            }
        }
    }

    /// The sum of the products of a row and the values of the plane under the tap.
    #[inline(always)]
    pub(super) fn dot(self, row: &[f32], (plane, step): (&[f32], usize)) -> f32 {
        let row = &row[self.place..][..self.count];
        let values = &plane[self.value..];
        match step {
            1 => dot_of_floats(row, values),
            _ => {
                let values = values.iter().step_by(step);
                row.iter().zip(values).map(|(row, x)| row * x).sum()
            }
        }
    }
}

fn quotient_up(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}

/// Windows over planes of values. Missing axes come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneWindows(pub [WindowAxis; 3]);

impl PlaneWindows {
    fn product(&self, of: impl Fn(&WindowAxis) -> usize) -> usize {
        self.0.iter().map(of).product()
    }

    /// Values of a plane.
    pub fn plane(&self) -> usize {
        self.product(|axis| axis.extent)
    }

    /// Positions of the window.
    pub fn places(&self) -> usize {
        self.product(|axis| axis.places)
    }

    /// Values of a window.
    pub fn taps(&self) -> usize {
        self.product(|axis| axis.taps)
    }

    /// Positions of a row, along the last axis.
    pub(super) fn width(&self) -> usize {
        self.0[2].places
    }

    /// Distance between the values of a run.
    pub(super) fn step(&self) -> usize {
        self.0[2].stride
    }

    /// True if the positions are the values themselves.
    pub(super) fn is_identity(&self) -> bool {
        let same = |axis: &WindowAxis| {
            axis.taps == 1 && axis.stride == 1 && axis.before == 0 && axis.places == axis.extent
        };
        self.0.iter().all(same)
    }

    /// Visits the values under a tap, for some rows of positions.
    pub(super) fn runs(
        &self,
        tap: usize,
        rows: std::ops::Range<usize>,
        visit: &mut dyn FnMut(WindowRun),
    ) {
        let [depth, height, width] = self.0;
        let taps = [
            tap / (height.taps * width.taps),
            tap / width.taps % height.taps,
            tap % width.taps,
        ];
        // The positions along a row whose values are inside: value = place · stride − shift.
        let shift = width.before - (taps[2] * width.dilation) as i64;
        let (stride, extent) = (width.stride as i64, width.extent as i64);
        let first = quotient_up(shift.max(0), stride);
        let end = quotient_up((extent + shift).max(0), stride).min(width.places as i64);
        if first >= end {
            return;
        }
        let (column, count) = ((first * stride - shift) as usize, (end - first) as usize);
        let first = first as usize;
        for row in rows.clone() {
            let (z, y) = (row / height.places, row % height.places);
            let (Some(z), Some(y)) = (depth.value(z, taps[0]), height.value(y, taps[1])) else {
                continue;
            };
            visit(WindowRun {
                place: (row - rows.start) * width.places + first,
                value: (z * height.extent + y) * width.extent + column,
                count,
            });
        }
    }
}
