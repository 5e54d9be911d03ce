//! Gram matrices of a layer's inputs, and the systems of equations that they form.

use std::ops::Range;

use octet_kernels::{FloatRows, dot, multiply_transposed, take_off};
use octet_quantize::GramFactor;
use rayon::prelude::*;

use crate::TuneError;
use crate::inputs::{LayerInputs, parts_of};

/// Inputs of a block, at most.
const BLOCK: usize = 512;
/// Positions whose products are summed in f32 before they are added in f64.
const PORTION: usize = 1024;
/// Rows of a block whose products are summed together.
const STRIPE: usize = 16;
/// Damping of the diagonal, as GPTQ's: a fraction of its mean, and more with few positions.
const DAMPING: f64 = 0.01;
const FEW_POSITIONS: f64 = 0.2;

/// A block of a group's inputs.
pub(crate) struct InputBlock {
    /// The block, counted in the inputs of its group, and in those of all groups.
    pub(super) inputs: Range<usize>,
    pub(super) rows: Range<usize>,
    pub(super) means: Vec<f64>,
    /// The factor by which GPTQ rounds; `None` for inputs that are all zero.
    pub(super) factor: Option<GramFactor>,
    /// The lower Cholesky factor of the damped Gram matrix.
    pub(super) cholesky: Option<Vec<f64>>,
}

impl InputBlock {
    /// Bytes of the matrices of a group with this number of inputs.
    pub(crate) fn bytes_of(inputs: usize) -> usize {
        2 * inputs * inputs.min(BLOCK) * size_of::<f64>()
    }

    /// The blocks of a group, whose inputs are `rows` of `inputs`. The matrices are `centred` where
    /// a bias corrects the mean.
    pub(super) fn all_of(
        inputs: &LayerInputs,
        rows: Range<usize>,
        centred: bool,
    ) -> Result<Vec<InputBlock>, TuneError> {
        let (size, count) = (rows.len(), rows.len().div_ceil(BLOCK).max(1));
        let block = |index: usize| -> Result<InputBlock, TuneError> {
            let own = size * index / count..size * (index + 1) / count;
            let rows = rows.start + own.start..rows.start + own.end;
            let gram = BlockGram::new(inputs, rows.clone())?;
            let means = centred.then_some(gram.means.as_slice());
            Ok(InputBlock {
                factor: GramFactor::new(&gram.products, means, inputs.columns() as u64),
                cholesky: gram.cholesky(centred, inputs.columns()),
                means: gram.means,
                inputs: own,
                rows,
            })
        };
        (0..count).into_par_iter().map(block).collect()
    }
}

/// Means and mean products of a block of inputs.
struct BlockGram {
    means: Vec<f64>,
    /// The lower triangle, row by row.
    products: Vec<f64>,
}

/// Mean products of rows of floats with inputs of a layer, by a fixed order: sums in f32 in
/// portions of the positions, in f64 over them.
pub(super) fn mean_products(
    floats: FloatRows,
    inputs: &LayerInputs,
    rows: Range<usize>,
) -> Result<Vec<f64>, TuneError> {
    let broken = || TuneError::Broken("a product");
    let mut sums = MeanProducts::new(floats.rows, rows.len());
    let mut buffer = Vec::new();
    for columns in parts_of(floats.columns, PORTION) {
        let own = floats.of_columns(columns.start, columns.len());
        let inputs = inputs.floats(rows.clone(), columns, &mut buffer)?;
        sums.add(own.ok_or_else(broken)?, inputs)?;
    }
    Ok(sums.finished(floats.columns))
}

/// The mean of values.
pub(super) fn mean(values: &[f32]) -> f64 {
    octet_kernels::sum(values) / values.len().max(1) as f64
}

/// Sums of the products of two sets of rows.
struct MeanProducts {
    sums: Vec<f64>,
    portion: Vec<f32>,
}

impl MeanProducts {
    fn new(a: usize, b: usize) -> MeanProducts {
        MeanProducts {
            sums: vec![0.0; a * b],
            portion: vec![0.0; a * b],
        }
    }

    fn add(&mut self, a: FloatRows, b: FloatRows) -> Result<(), TuneError> {
        if !multiply_transposed(a, b, &mut self.portion) {
            return Err(TuneError::Broken("a product"));
        }
        for (sum, &more) in self.sums.iter_mut().zip(&self.portion) {
            *sum += f64::from(more);
        }
        Ok(())
    }

    fn finished(mut self, count: usize) -> Vec<f64> {
        let count = count.max(1) as f64;
        self.sums.iter_mut().for_each(|sum| *sum /= count);
        self.sums
    }
}

impl BlockGram {
    /// The Gram matrix of some rows of the inputs.
    fn new(inputs: &LayerInputs, block: Range<usize>) -> Result<BlockGram, TuneError> {
        let broken = || TuneError::Broken("a block of inputs");
        // Sixteen rows at once, in parallel.
        let starts: Vec<usize> = (0..block.len()).step_by(STRIPE).collect();
        let stripe = |&first: &usize| {
            let last = (first + STRIPE).min(block.len());
            let rows = block.start..block.start + last;
            let mut sums = MeanProducts::new(last - first, last);
            let mut buffer = Vec::new();
            for columns in parts_of(inputs.columns(), PORTION) {
                let before = inputs.floats(rows.clone(), columns, &mut buffer)?;
                let own = before.of_rows(first, last - first).ok_or_else(broken)?;
                sums.add(own, before)?;
            }
            let products = sums.finished(inputs.columns());
            let triangle =
                (first..last).flat_map(|row| products[(row - first) * last..][..row + 1].to_vec());
            Ok::<_, TuneError>(triangle.collect::<Vec<f64>>())
        };
        let stripes = starts
            .par_iter()
            .map(stripe)
            .collect::<Result<Vec<_>, _>>()?;
        let mean = |row: usize| -> Result<f64, TuneError> {
            let mut buffer = Vec::new();
            Ok(mean(
                inputs
                    .floats(row..row + 1, 0..inputs.columns(), &mut buffer)?
                    .values,
            ))
        };
        Ok(BlockGram {
            means: block.clone().map(mean).collect::<Result<_, _>>()?,
            products: stripes.concat(),
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
    fn cholesky(&self, centred: bool, positions: usize) -> Option<Vec<f64>> {
        let size = self.means.len();
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
