//! What one look at many values tells.

use crate::vectors::in_vectors;

/// What one look at the values tells; it means something only where all are finite.
pub struct Ends {
    /// The least, the greatest, the least magnitude.
    pub reach: [f32; 3],
    /// How many are zero, of either sign.
    pub zeros: u64,
    /// Whether none is infinite or NaN.
    pub all_finite: bool,
}

impl Ends {
    /// Looks at values.
    pub fn of(values: &[f32]) -> Ends {
        in_vectors(|| {
            let mut look = Look::<16>::default();
            look.take(values);
            look.ends()
        })
    }
}

/// A look under way, written in lanes, so that it becomes vector code.
pub(crate) struct Look<const LANES: usize> {
    least: [f32; LANES],
    greatest: [f32; LANES],
    nearest: [f32; LANES],
    /// A lane counts up to 2^32 zeros, of as many values at least.
    zeros: [u32; LANES],
    /// Zero for as long as everything is finite; NaN from then on.
    finite: [f32; LANES],
}

impl<const LANES: usize> Default for Look<LANES> {
    fn default() -> Look<LANES> {
        Look {
            least: [f32::INFINITY; LANES],
            greatest: [f32::NEG_INFINITY; LANES],
            nearest: [f32::INFINITY; LANES],
            zeros: [0; LANES],
            finite: [0.0; LANES],
        }
    }
}

impl<const LANES: usize> Look<LANES> {
    /// Looks at more values.
    #[inline(always)]
    pub(crate) fn take(&mut self, values: &[f32]) {
        let (blocks, rest) = values.as_chunks::<LANES>();
        for (lane, &value) in rest.iter().enumerate() {
            self.take_one(lane, value);
        }
        for block in blocks {
            for (lane, &value) in block.iter().enumerate() {
                self.take_one(lane, value);
            }
        }
    }

    #[inline(always)]
    fn take_one(&mut self, lane: usize, value: f32) {
        let lesser = |a: f32, b: f32| if a < b { a } else { b };
        let greater = |a: f32, b: f32| if a > b { a } else { b };
        self.least[lane] = lesser(value, self.least[lane]);
        self.greatest[lane] = greater(value, self.greatest[lane]);
        self.nearest[lane] = lesser(value.abs(), self.nearest[lane]);
        self.zeros[lane] += u32::from(value == 0.0);
        self.finite[lane] += value * 0.0;
    }

    /// What was seen.
    pub(crate) fn ends(&self) -> Ends {
        let least = |lanes: &[f32]| lanes.iter().copied().fold(f32::INFINITY, f32::min);
        let greatest = self.greatest.iter().copied();
        Ends {
            reach: [
                least(&self.least),
                greatest.fold(f32::NEG_INFINITY, f32::max),
                least(&self.nearest),
            ],
            zeros: self.zeros.iter().map(|&count| u64::from(count)).sum(),
            all_finite: self.finite.iter().all(|&sum| sum == 0.0),
        }
    }
}
