//! Maxima and means of windows.

use super::windows::{PlaneWindows, WindowRun};

/// Pooling of planes.
#[derive(Clone, Debug)]
pub struct Pooling {
    /// Number of planes.
    pub planes: usize,
    /// Windows of a plane.
    pub windows: PlaneWindows,
    /// The number of values of the mean at each position; empty for maxima.
    pub counts: Vec<f32>,
}

impl Pooling {
    /// The mean of a window. With `padded`, zeros around the values count.
    pub fn mean(planes: usize, windows: PlaneWindows, padded: bool) -> Pooling {
        let taps = windows.taps();
        let mut counts = vec![if padded { taps as f32 } else { 0.0 }; windows.places()];
        let rows = counts.len() / windows.width().max(1);
        for tap in 0..if padded { 0 } else { taps } {
            windows.runs(tap, 0..rows, &mut |run: WindowRun| {
                let own = &mut counts[run.place..][..run.count];
                own.iter_mut().for_each(|count| *count += 1.0);
            });
        }
        Pooling {
            planes,
            windows,
            counts,
        }
    }

    /// Visits all values under all taps: plane, tap and run.
    fn visit(&self, of_run: &mut dyn FnMut(usize, usize, WindowRun)) {
        let rows = self.windows.places() / self.windows.width().max(1);
        for plane in 0..self.planes {
            for tap in 0..self.windows.taps() {
                let mut visit = |run| of_run(plane, tap, run);
                self.windows.runs(tap, 0..rows, &mut visit);
            }
        }
    }

    /// Writes the results, and for maxima the tap of each.
    pub(super) fn forward(&self, x: &[f32], y: &mut [f32], taps: &mut Vec<u16>) {
        let (plane_len, places, step) = (
            self.windows.plane(),
            self.windows.places(),
            self.windows.step(),
        );
        let maxima = self.counts.is_empty();
        y.fill(if maxima { f32::NEG_INFINITY } else { 0.0 });
        taps.clear();
        taps.resize(if maxima { y.len() } else { 0 }, 0);
        self.visit(&mut |plane, tap, run| {
            let first = plane * places + run.place;
            let values = x[plane * plane_len + run.value..].iter().step_by(step);
            for (place, &value) in (first..first + run.count).zip(values) {
                if !maxima {
                    y[place] += value;
                } else if value > y[place] {
                    (y[place], taps[place]) = (value, tap as u16);
                }
            }
        });
        for (y, count) in y.iter_mut().zip(self.counts.iter().cycle()) {
            *y /= count.max(1.0);
        }
    }

    pub(super) fn backward(&self, taps: &[u16], slope: &[f32], by_x: &mut [f32]) {
        let (plane_len, places, step) = (
            self.windows.plane(),
            self.windows.places(),
            self.windows.step(),
        );
        let maxima = self.counts.is_empty();
        self.visit(&mut |plane, tap, run| {
            let first = plane * places + run.place;
            let to = by_x[plane * plane_len + run.value..]
                .iter_mut()
                .step_by(step);
            for (place, to) in (run.place..run.place + run.count).zip(to) {
                let slope = slope[plane * places + place];
                if !maxima {
                    *to += slope / self.counts[place].max(1.0);
                } else if usize::from(taps[first + place - run.place]) == tap {
                    *to += slope;
                }
            }
        });
    }
}
