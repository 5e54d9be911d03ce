//! Sums over histogram edges for the expected rounding error. `calibrate/expected_error.rs` derives
//! them.

/// Integer range to which scaled values are rounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundingGrid {
    /// Number of steps in an interval of length one: the inverse scale.
    pub of_one: f64,
    /// First and last integer.
    pub ends: [f64; 2],
}

/// Adding and subtracting this constant rounds to the nearest integer, ties to even. The pair
/// vectorizes.
const ROUNDER: f64 = 6_755_399_441_055_744.0; // 1.5·2^52

impl RoundingGrid {
    /// Returns `Σ fall · (n/4 + r·|r|/2)` over all edges. `n` is the nearest integer and `r` the
    /// distance to it.
    pub fn absolute(&self, edges: &[f64], falls: &[f64]) -> f64 {
        self.over_edges(edges, falls, |n, r| n * 0.25 + 0.5 * r * r.abs())
    }

    /// Returns `Σ fall · (n/12 + r³/3)` over all edges.
    pub fn squared(&self, edges: &[f64], falls: &[f64]) -> f64 {
        let integral = |n: f64, r: f64| n * (1.0 / 12.0) + r * r * r * (1.0 / 3.0);
        self.over_edges(edges, falls, integral)
    }

    /// Returns `Σ fall · integral(n, r)` over all edges, in lanes so that it vectorizes.
    #[inline(always)]
    fn over_edges(&self, edges: &[f64], falls: &[f64], integral: impl Fn(f64, f64) -> f64) -> f64 {
        const LANES: usize = 4;
        let [lowest, highest] = self.ends;
        let term = |edge: f64, fall: f64| {
            let steps = edge * self.of_one;
            let clamped = if steps < lowest { lowest } else { steps };
            let clamped = if clamped > highest { highest } else { clamped };
            let n = (clamped + ROUNDER) - ROUNDER;
            fall * integral(n, steps - n)
        };
        let mut sums = [0.0; LANES];
        let (edges, last) = edges.as_chunks::<LANES>();
        let (falls, falls_of_last) = falls.as_chunks::<LANES>();
        let last = last.iter().zip(falls_of_last);
        let rest: f64 = last.map(|(&edge, &fall)| term(edge, fall)).sum();
        for (edges, falls) in edges.iter().zip(falls) {
            for lane in 0..LANES {
                sums[lane] += term(edges[lane], falls[lane]);
            }
        }
        sums.iter().sum::<f64>() + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_edge_counts_with_its_fall() {
        let steps = RoundingGrid {
            of_one: 2.0,
            ends: [0.0, 3.0],
        };
        // 0.5, -1.5 and 4.25 steps have the nearest integers 0, 0 and 3. Many edges sum to the same
        // as one by one.
        let (edges, falls) = ([0.25, -0.75, 2.125], [1.0, 10.0, 100.0]);
        let squared = [0.125 / 3.0, -1.125, 0.25 + 1.25f64.powi(3) / 3.0];
        let absolute = [0.125, -1.125, 0.75 + 0.78125];
        let summed = |terms: [f64; 3]| (0..3).map(|at| falls[at] * terms[at]).sum::<f64>();
        for times in [1, 5] {
            let (edges, falls) = (edges.repeat(times), falls.repeat(times));
            let times = times as f64;
            let (actual, expected) = (steps.squared(&edges, &falls), times * summed(squared));
            assert!((actual - expected).abs() < 1e-9, "{actual} {expected}");
            let (actual, expected) = (steps.absolute(&edges, &falls), times * summed(absolute));
            assert!((actual - expected).abs() < 1e-9, "{actual} {expected}");
        }
    }
}
