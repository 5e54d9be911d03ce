//! Products with the weights of a recurrence.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use octet_int8::{cost_of_product, split_rows, with_pool};
use octet_kernels::{FloatRows, multiply, multiply_transposed};
use tract_onnx::tract_hir::internal::*;

/// Rows from which on transposing the weights pays.
const MANY: usize = 4;
const TILE: usize = 16;

/// Weights of all gates, a row for each gate and output.
pub(super) struct GateWeights<'a> {
    rows: FloatRows<'a>,
    /// A column for each gate and output, or nothing for few rows of values.
    transposed: Vec<f32>,
}

impl<'a> GateWeights<'a> {
    /// Prepares products with this number of rows of values.
    pub(super) fn new(rows: FloatRows<'a>, count: usize) -> GateWeights<'a> {
        let transposed = match count >= MANY {
            true => transpose(rows),
            false => Vec::new(),
        };
        GateWeights { rows, transposed }
    }

    /// The products of rows of values with all weights.
    pub(super) fn products(&self, values: FloatRows) -> TractResult<Vec<f32>> {
        let wide = self.rows.rows;
        ensure!(
            values.columns == self.rows.columns,
            "its weights are for {} values, but there are {}",
            self.rows.columns,
            values.columns
        );
        if self.transposed.is_empty() {
            let of_row = |row: usize| self.of_row(0..wide, values.row(row));
            let made = (0..values.rows)
                .map(of_row)
                .collect::<TractResult<Vec<_>>>()?;
            return Ok(made.concat());
        }
        let transposed = FloatRows::new(&self.transposed, self.rows.columns, wide);
        let transposed = transposed.context("its transposed weights have another size")?;
        let mut made = vec![0.0; values.rows * wide];
        let fits = AtomicBool::new(true);
        let part = |part: Range<usize>, made: &mut [f32]| {
            let own = values.of_rows(part.start, part.len());
            if !own.is_some_and(|own| multiply(own, transposed, made)) {
                fits.store(false, Ordering::Relaxed);
            }
            Ok(())
        };
        let cost = cost_of_product(made.len() * values.columns);
        with_pool(|| split_rows(&mut made, wide, cost, part))?;
        ensure!(
            fits.into_inner(),
            "its weights have another size than its inputs"
        );
        Ok(made)
    }

    /// The products of one row of values with some of the weights.
    pub(super) fn of_row(&self, weights: Range<usize>, values: &[f32]) -> TractResult<Vec<f32>> {
        let mut made = vec![0.0; weights.len()];
        let rows = self.rows.of_rows(weights.start, weights.len());
        let pair = rows.zip(FloatRows::new(values, 1, values.len()));
        ensure!(
            pair.is_some_and(|(rows, values)| multiply_transposed(rows, values, &mut made)),
            "its weights have another size than its inputs"
        );
        Ok(made)
    }
}

/// The transpose of a matrix, tile by tile so that both stay in the cache.
fn transpose(rows: FloatRows) -> Vec<f32> {
    let mut transposed = vec![0.0; rows.rows * rows.columns];
    for first in (0..rows.rows).step_by(TILE) {
        let last = (first + TILE).min(rows.rows);
        for column in 0..rows.columns {
            let out = &mut transposed[column * rows.rows..][first..last];
            for (row, out) in (first..last).zip(out) {
                *out = rows.row(row)[column];
            }
        }
    }
    transposed
}
