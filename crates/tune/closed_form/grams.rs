//! Gram matrices of a layer's inputs, and the systems of equations that they form.

use std::ops::Range;

use octet_kernels::{FloatRows, dot, multiply_transposed, take_off};
use rayon::prelude::*;

use crate::TuneError;

/// Positions whose products are summed in f32 before they are added in f64.
const PORTION: usize = 1024;
/// Damping of the diagonal, as GPTQ's: a fraction of its mean, and more with few positions.
const DAMPING: f64 = 0.01;
const FEW_POSITIONS: f64 = 0.2;

/// Means and mean products of a block of inputs.
pub(super) struct BlockGram {
    pub(super) block: Range<usize>,
    pub(super) means: Vec<f64>,
    /// The lower triangle, row by row.
    pub(super) products: Vec<f64>,
}

/// Sums of products of two sets of rows, by a fixed order: f32 in portions, f64 over them.
pub(super) fn mean_products(a: FloatRows, b: FloatRows) -> Result<Vec<f64>, TuneError> {
    let mut sums = vec![0.0; a.rows * b.rows];
    let mut portion = vec![0.0; sums.len()];
    for first in (0..a.columns).step_by(PORTION) {
        let count = PORTION.min(a.columns - first);
        let pair = a.of_columns(first, count).zip(b.of_columns(first, count));
        if !pair.is_some_and(|(a, b)| multiply_transposed(a, b, &mut portion)) {
            return Err(TuneError::Broken("a product"));
        }
        for (sum, &more) in sums.iter_mut().zip(&portion) {
            *sum += f64::from(more);
        }
    }
    let count = a.columns.max(1) as f64;
    sums.iter_mut().for_each(|sum| *sum /= count);
    Ok(sums)
}

pub(super) fn means(rows: FloatRows) -> Vec<f64> {
    let mean = |row| octet_kernels::sum(rows.row(row)) / rows.columns.max(1) as f64;
    (0..rows.rows).map(mean).collect()
}

impl BlockGram {
    pub(super) fn new(inputs: FloatRows, block: Range<usize>) -> Result<BlockGram, TuneError> {
        let rows = inputs.of_rows(block.start, block.len());
        let rows = rows.ok_or(TuneError::Broken("a block of inputs"))?;
        // Sixteen rows at once, in parallel.
        let starts: Vec<usize> = (0..block.len()).step_by(16).collect();
        let stripe = |&first: &usize| {
            let own = rows.of_rows(first, 16.min(block.len() - first));
            let before = rows.of_rows(0, (first + 16).min(block.len()));
            let (own, before) = own
                .zip(before)
                .ok_or(TuneError::Broken("a block of inputs"))?;
            let products = mean_products(own, before)?;
            let triangle = (0..own.rows)
                .flat_map(|row| products[row * before.rows..][..first + row + 1].to_vec());
            Ok::<_, TuneError>(triangle.collect::<Vec<f64>>())
        };
        let stripes = starts
            .par_iter()
            .map(stripe)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(BlockGram {
            means: means(rows),
            products: stripes.concat(),
            block,
        })
    }

    fn product(&self, a: usize, b: usize, centred: bool) -> f64 {
        let (a, b) = (a.max(b), a.min(b));
        let common = if centred {
            self.means[a] * self.means[b]
        } else {
            0.0
        };
        self.products[a * (a + 1) / 2 + b] - common
    }

    /// The lower Cholesky factor of the damped matrix, a full row for each input.
    pub(super) fn cholesky(&self, centred: bool, positions: usize) -> Option<Vec<f64>> {
        let size = self.block.len();
        let trace: f64 = (0..size)
            .map(|k| self.product(k, k, centred).max(0.0))
            .sum();
        let fraction = DAMPING + FEW_POSITIONS * size as f64 / positions.max(1) as f64;
        let damping = fraction * trace / size as f64;
        if !(damping.is_finite() && damping > 0.0) {
            return None;
        }
        let mut rows = vec![0.0; size * size];
        for a in 0..size {
            let (before, own) = rows.split_at_mut(a * size);
            let own = &mut own[..size];
            for b in 0..a {
                let other = &before[b * size..][..size];
                own[b] = (self.product(a, b, centred) - dot(&own[..b], &other[..b])) / other[b];
            }
            let left = self.product(a, a, centred).max(0.0) + damping - dot(&own[..a], &own[..a]);
            own[a] = left.max(damping * 1e-6).sqrt();
        }
        rows.iter().all(|value| value.is_finite()).then_some(rows)
    }
}

/// Solves L·Lᵀ·x = b in place.
pub(super) fn solve(factor: &[f64], b: &mut [f64]) {
    let size = b.len();
    for a in 0..size {
        let row = &factor[a * size..][..size];
        b[a] = (b[a] - dot(&row[..a], &b[..a])) / row[a];
    }
    for a in (0..size).rev() {
        let row = &factor[a * size..][..size];
        b[a] /= row[a];
        let (before, own) = b.split_at_mut(a);
        take_off(before, own[0], &row[..a]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_solved() {
        // The lower factor of [[4, 2], [2, 5]].
        let factor = [2.0, 0.0, 1.0, 2.0];
        let mut b = [8.0, 14.0];
        solve(&factor, &mut b);
        assert!((4.0 * b[0] + 2.0 * b[1] - 8.0).abs() < 1e-12);
        assert!((2.0 * b[0] + 5.0 * b[1] - 14.0).abs() < 1e-12);
    }
}
