//! Sums over the edges of a histogram's bins, for the error that rounding is expected to make (`calibrate/expected_error.rs` derives them).

/// Whole numbers that values are rounded to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steps {
    /// How many steps a value of one is.
    pub of_one: f64,
    /// The first and the last of them.
    pub ends: [f64; 2],
}

/// Adding and taking away this rounds to the nearest whole number, ties to even, and is vector code.
const ROUNDER: f64 = 6_755_399_441_055_744.0; // 1.5·2^52

impl Steps {
    /// The sum over edges of the fall times n/4 + r·|r|/2, n being the nearest number and r how far it is.
    pub fn absolute(&self, edges: &[f64], falls: &[f64]) -> f64 {
        self.over_edges(edges, falls, |n, r| n * 0.25 + 0.5 * r * r.abs())
    }

    /// The same of n/12 + r³/3.
    pub fn squared(&self, edges: &[f64], falls: &[f64]) -> f64 {
        let integral = |n: f64, r: f64| n * (1.0 / 12.0) + r * r * r * (1.0 / 3.0);
        self.over_edges(edges, falls, integral)
    }

    /// The sum of `integral(n, r)` over all edges. In lanes, so that it becomes vector code.
    #[inline(always)]
    fn over_edges(&self, edges: &[f64], falls: &[f64], integral: impl Fn(f64, f64) -> f64) -> f64 {
        const LANES: usize = 4;
        let [lowest, highest] = self.ends;
        let term = |edge: f64, fall: f64| {
            let place = edge * self.of_one;
            let inside = if place < lowest { lowest } else { place };
            let inside = if inside > highest { highest } else { inside };
            let n = (inside + ROUNDER) - ROUNDER;
            fall * integral(n, place - n)
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
        let steps = Steps {
            of_one: 2.0,
            ends: [0.0, 3.0],
        };
        // 0.5, -1.5 and 4.25 steps are nearest to 0, 0 and 3; of many more edges the sums are those one by one.
        let (edges, falls) = ([0.25, -0.75, 2.125], [1.0, 10.0, 100.0]);
        let squared = [0.125 / 3.0, -1.125, 0.25 + 1.25f64.powi(3) / 3.0];
        let absolute = [0.125, -1.125, 0.75 + 0.78125];
        let summed = |terms: [f64; 3]| (0..3).map(|at| falls[at] * terms[at]).sum::<f64>();
        for times in [1, 5] {
            let (edges, falls) = (edges.repeat(times), falls.repeat(times));
            let times = times as f64;
            let (found, wanted) = (steps.squared(&edges, &falls), times * summed(squared));
            assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
            let (found, wanted) = (steps.absolute(&edges, &falls), times * summed(absolute));
            assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
        }
    }
}
