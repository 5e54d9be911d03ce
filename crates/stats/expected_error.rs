//! The expected error of rounding to a quantization grid, from a distribution alone.
//!
//! Values are uniform within their bin. The error of a bin is then exact, for rounded and clipped
//! values and for any ratio of bin width to step. Let r be the distance of x from the nearest grid
//! point, in steps, and n the index of that point. The integral of r² from 0 to x, in steps, is
//! F(x) = n/12 + r³/3. Each whole step in between adds ∫r² dr = 1/12 from -½ to ½; the last term is
//! the part of x within its step. Beyond the ends of the grid n is constant and r grows, and the
//! formula still holds. A bin of density d from a to b costs d·(F(b) - F(a)). One bin ends where
//! the next begins, so the total is a sum over edges of F times the change of density.

use octet_kernels::RoundingGrid;

use super::distribution::BinnedDistribution;
use super::integer_range::UniformGrid;
use super::{IntegerRange, Range, TensorStatistics};

/// Power of the error to average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Power {
    Absolute,
    Squared,
}

/// A distribution, prepared for the evaluation of many grids.
#[derive(Clone, Debug)]
pub(super) struct ExpectedError {
    edges: Vec<f64>,
    /// Decrease of the density at each edge; the density is per value.
    falls: Vec<f64>,
    /// Point masses other than zero: (value, fraction of all values).
    points: Vec<(f64, f64)>,
}

impl ExpectedError {
    /// Prepares the edges and point masses of a distribution.
    pub(super) fn new(values: &BinnedDistribution) -> ExpectedError {
        let mut error = ExpectedError {
            edges: Vec::with_capacity(values.bins.len() + 1),
            falls: Vec::with_capacity(values.bins.len() + 1),
            points: Vec::new(),
        };
        for bin in &values.bins {
            let share = bin.count / values.total;
            if bin.upper > bin.lower {
                let density = share / (bin.upper - bin.lower);
                error.fall(bin.lower, -density);
                error.fall(bin.upper, density);
            } else if bin.lower != 0.0 {
                error.points.push((bin.lower, share));
            }
        }
        error
    }

    fn fall(&mut self, edge: f64, by: f64) {
        match (self.edges.last(), self.falls.last_mut()) {
            (Some(&last), Some(fall)) if last == edge => *fall += by,
            _ => {
                self.edges.push(edge);
                self.falls.push(by);
            }
        }
    }

    /// The mean of the error's power over all values. Without a grid every value becomes zero.
    pub(super) fn mean(&self, grid: Option<UniformGrid>, power: Power) -> f64 {
        // A grid whose only point is zero; its step can be any number.
        let grid = grid.unwrap_or(UniformGrid {
            scale: 1.0,
            lowest: 0.0,
            highest: 0.0,
        });
        let s = grid.scale;
        let steps = RoundingGrid {
            of_one: 1.0 / s,
            ends: [grid.lowest, grid.highest],
        };
        let (edges, falls) = (&self.edges, &self.falls);
        match power {
            Power::Absolute => {
                s * s * steps.absolute(edges, falls) + s * self.over_points(grid, f64::abs)
            }
            Power::Squared => {
                s * s * s * steps.squared(edges, falls) + s * s * self.over_points(grid, |r| r * r)
            }
        }
    }

    fn over_points(&self, grid: UniformGrid, cost: impl Fn(f64) -> f64) -> f64 {
        let term = |&(value, share): &(f64, f64)| {
            let place = value / grid.scale;
            let n = place.max(grid.lowest).min(grid.highest).round_ties_even();
            share * cost(place - n)
        };
        self.points.iter().map(term).sum()
    }
}

impl TensorStatistics {
    /// The expected mean squared error of rounding to the integers of `target` over this range.
    /// Returns `None` if there are no finite values.
    pub fn squared_error(&self, range: Range, target: &IntegerRange) -> Option<f64> {
        let values = BinnedDistribution::from_statistics(self)?;
        Some(ExpectedError::new(&values).mean(target.grid(range), Power::Squared))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(values: &[f32]) -> ExpectedError {
        let stats = TensorStatistics::from_values(values);
        ExpectedError::new(&BinnedDistribution::from_statistics(&stats).unwrap())
    }

    /// The measured error of rounding these values.
    fn measured(values: &[f32], grid: UniformGrid, power: Power) -> f64 {
        let cost = |&value: &f32| {
            let place = f64::from(value) / grid.scale;
            let n = place.max(grid.lowest).min(grid.highest).round_ties_even();
            let error = ((place - n) * grid.scale).abs();
            match power {
                Power::Absolute => error,
                Power::Squared => error * error,
            }
        };
        values.iter().map(cost).sum::<f64>() / values.len() as f64
    }

    #[test]
    fn point_masses_cost_their_distance_from_the_grid() {
        // The grid is 0, 1, …, 4: the error of 6 is 2, the error of 0 is 0.
        let grid = IntegerRange::new(0, 4, false).grid(Range::new(0.0, 4.0));
        let error = observed(&[0.0, 6.0]);
        assert_eq!(error.mean(grid, Power::Absolute), 1.0);
        assert_eq!(error.mean(grid, Power::Squared), 2.0);
        // Without a grid every value becomes zero.
        assert_eq!(error.mean(None, Power::Squared), 18.0);
    }

    #[test]
    fn uniform_values_cost_a_twelfth_of_a_squared_step() {
        let values: Vec<f32> = (0..1 << 16).map(|i| i as f32 / 65536.0).collect();
        let grid = IntegerRange::new(0, 16, false).grid(Range::new(0.0, 1.0));
        let (actual, step) = (observed(&values).mean(grid, Power::Squared), 1.0 / 16.0);
        assert!(
            (actual / (step * step / 12.0) - 1.0).abs() < 1e-3,
            "{actual}"
        );
    }

    #[test]
    fn the_expected_error_matches_the_measured_error() {
        // Many values per bin, of both signs and much denser at zero.
        let values: Vec<f32> = (-40_000..40_000)
            .map(|i| (i as f32 / 40_000.0).powi(3) * 5.0)
            .collect();
        let error = observed(&values);
        for target in [
            IntegerRange::default(),
            IntegerRange::new(-127, 127, true),
            IntegerRange::new(-8, 7, false),
        ] {
            for range in [
                Range::new(-5.0, 5.0),
                Range::new(-1.0, 3.0),
                Range::new(-0.5, 0.25),
            ] {
                for power in [Power::Absolute, Power::Squared] {
                    let grid = target.grid(range).unwrap();
                    let (actual, real) = (
                        error.mean(Some(grid), power),
                        measured(&values, grid, power),
                    );
                    assert!(
                        (actual / real - 1.0).abs() < 0.02,
                        "{target:?} {range:?} {power:?}: {actual} for {real}"
                    );
                }
            }
        }
    }
}
