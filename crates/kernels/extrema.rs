//! Extrema of a slice in one pass.

use crate::dispatch::vectorized;

/// Extrema of a slice. They are meaningful only if all values are finite.
pub struct Extrema {
    /// Minimum, maximum and least magnitude.
    pub reach: [f32; 3],
    /// Number of zeros of either sign.
    pub zeros: u64,
    /// True if no value is infinite or NaN.
    pub all_finite: bool,
}

impl Extrema {
    /// Scans the values.
    pub fn of(values: &[f32]) -> Extrema {
        vectorized!({
            let mut scan = ExtremaScan::<16>::default();
            scan.add(values);
            scan.extrema()
        })
    }
}

/// A scan in progress. It keeps one state per lane, so that the loop vectorizes.
pub(crate) struct ExtremaScan<const LANES: usize> {
    min: [f32; LANES],
    max: [f32; LANES],
    abs_min: [f32; LANES],
    /// Zeros per lane; a lane can count up to 2^32.
    zeros: [u32; LANES],
    /// Zero while all values are finite, NaN afterwards.
    finite: [f32; LANES],
}

impl<const LANES: usize> Default for ExtremaScan<LANES> {
    fn default() -> ExtremaScan<LANES> {
        ExtremaScan {
            min: [f32::INFINITY; LANES],
            max: [f32::NEG_INFINITY; LANES],
            abs_min: [f32::INFINITY; LANES],
            zeros: [0; LANES],
            finite: [0.0; LANES],
        }
    }
}

impl<const LANES: usize> ExtremaScan<LANES> {
    /// Adds values to the scan.
    #[inline(always)]
    pub(crate) fn add(&mut self, values: &[f32]) {
        let (blocks, rest) = values.as_chunks::<LANES>();
        for (lane, &value) in rest.iter().enumerate() {
            self.add_one(lane, value);
        }
        for block in blocks {
            for (lane, &value) in block.iter().enumerate() {
                self.add_one(lane, value);
            }
        }
    }

    #[inline(always)]
    fn add_one(&mut self, lane: usize, value: f32) {
        let min = |a: f32, b: f32| if a < b { a } else { b };
        let max = |a: f32, b: f32| if a > b { a } else { b };
        self.min[lane] = min(value, self.min[lane]);
        self.max[lane] = max(value, self.max[lane]);
        self.abs_min[lane] = min(value.abs(), self.abs_min[lane]);
        self.zeros[lane] += u32::from(value == 0.0);
        self.finite[lane] += value * 0.0;
    }

    /// Combines the lanes.
    pub(crate) fn extrema(&self) -> Extrema {
        let least = |lanes: &[f32]| lanes.iter().copied().fold(f32::INFINITY, f32::min);
        let greatest = self.max.iter().copied();
        Extrema {
            reach: [
                least(&self.min),
                greatest.fold(f32::NEG_INFINITY, f32::max),
                least(&self.abs_min),
            ],
            zeros: self.zeros.iter().map(|&count| u64::from(count)).sum(),
            all_finite: self.finite.iter().all(|&sum| sum == 0.0),
        }
    }
}
