//! Products of float matrices in one thread, with a fixed order of sums.
//!
//! Multiplication and addition round separately, so that every processor computes the same bits.

use crate::dispatch::vectorized;

/// Rows of a tile.
const ROWS: usize = 4;
/// Columns of a tile of [`multiply`].
const COLUMNS: usize = 16;
/// Partial sums of each product of [`multiply_transposed`].
const LANES: usize = 16;

/// A matrix in row-major order. Its rows can lie further apart than they are long.
#[derive(Clone, Copy, Debug)]
pub struct FloatRows<'a> {
    /// The values, from the first of the first row on.
    pub values: &'a [f32],
    /// Distance from one row to the next.
    pub stride: usize,
    /// Number of rows.
    pub rows: usize,
    /// Values of a row.
    pub columns: usize,
}

impl<'a> FloatRows<'a> {
    /// A matrix whose rows follow one another; `None` if its values do not have that number.
    pub fn new(values: &'a [f32], rows: usize, columns: usize) -> Option<FloatRows<'a>> {
        (values.len() == rows.checked_mul(columns)?).then_some(FloatRows {
            values,
            stride: columns,
            rows,
            columns,
        })
    }

    /// Some columns of the matrix; `None` if it has fewer.
    pub fn of_columns(&self, first: usize, columns: usize) -> Option<FloatRows<'a>> {
        let inside = first.checked_add(columns)? <= self.columns;
        inside.then(|| FloatRows {
            values: self.values.get(first..).unwrap_or_default(),
            columns,
            ..*self
        })
    }

    /// Some rows of the matrix; `None` if it has fewer.
    pub fn of_rows(&self, first: usize, rows: usize) -> Option<FloatRows<'a>> {
        let inside = first.checked_add(rows)? <= self.rows;
        inside.then(|| FloatRows {
            values: self.values.get(first * self.stride..).unwrap_or_default(),
            rows,
            ..*self
        })
    }

    /// A row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> &'a [f32] {
        &self.values[row * self.stride..][..self.columns]
    }

    fn is_sound(&self) -> bool {
        let last = self.rows.checked_sub(1);
        let end = last.map_or(0, |last| last * self.stride + self.columns);
        self.values.len() >= end && self.stride >= self.columns
    }
}

/// Writes the product of two matrices. The sum of each element goes over the rows of `b` in order.
///
/// Returns false and writes nothing if the sizes do not fit.
#[must_use]
pub fn multiply(a: FloatRows, b: FloatRows, out: &mut [f32]) -> bool {
    let fits = a.columns == b.rows && out.len() == a.rows * b.columns;
    if !(fits && a.is_sound() && b.is_sound()) {
        return false;
    }
    if b.columns == 0 {
        return true;
    }
    vectorized!({
        for (index, out) in out.chunks_mut(ROWS * b.columns).enumerate() {
            let first = index * ROWS;
            match out.len() / b.columns {
                ROWS => multiply_rows::<ROWS>(a, b, first, out),
                rows => {
                    for row in 0..rows {
                        let out = &mut out[row * b.columns..][..b.columns];
                        multiply_rows::<1>(a, b, first + row, out);
                    }
                }
            }
        }
    });
    true
}

#[inline(always)]
fn multiply_rows<const R: usize>(a: FloatRows, b: FloatRows, first: usize, out: &mut [f32]) {
    let rows: [&[f32]; R] = std::array::from_fn(|row| a.row(first + row));
    let whole = b.columns / COLUMNS * COLUMNS;
    for column in (0..whole).step_by(COLUMNS) {
        let mut sums = [[0.0f32; COLUMNS]; R];
        let parts = (0..a.columns).map(|inner| &b.values[inner * b.stride + column..][..COLUMNS]);
        for (inner, values) in parts.enumerate() {
            for row in 0..R {
                let by = rows[row][inner];
                for lane in 0..COLUMNS {
                    sums[row][lane] += by * values[lane];
                }
            }
        }
        for row in 0..R {
            out[row * b.columns + column..][..COLUMNS].copy_from_slice(&sums[row]);
        }
    }
    for column in whole..b.columns {
        for (row, values) in rows.iter().enumerate() {
            let others = (0..a.columns).map(|inner| b.values[inner * b.stride + column]);
            let pairs = values.iter().zip(others);
            out[row * b.columns + column] = pairs.fold(0.0, |sum, (by, value)| sum + by * value);
        }
    }
}

/// Writes the product of a matrix and the transpose of another: the dot products of their rows.
///
/// Returns false and writes nothing if the sizes do not fit.
#[must_use]
pub fn multiply_transposed(a: FloatRows, b: FloatRows, out: &mut [f32]) -> bool {
    let fits = a.columns == b.columns && out.len() == a.rows * b.rows;
    if !(fits && a.is_sound() && b.is_sound()) {
        return false;
    }
    if b.rows == 0 {
        return true;
    }
    vectorized!({
        for (index, out) in out.chunks_mut(ROWS * b.rows).enumerate() {
            let (first, rows) = (index * ROWS, out.len() / b.rows);
            // The last row stands in for those that are missing.
            let left: [&[f32]; ROWS] = std::array::from_fn(|row| a.row(first + row.min(rows - 1)));
            for column in 0..b.rows {
                let sums = dot_products(left, b.row(column));
                for row in 0..rows {
                    out[row * b.rows + column] = sums[row];
                }
            }
        }
    });
    true
}

#[inline(always)]
fn dot_products(left: [&[f32]; ROWS], right: &[f32]) -> [f32; ROWS] {
    let (right, right_rest) = right.as_chunks::<LANES>();
    let left = left.map(|row| row.as_chunks::<LANES>());
    let [one, two, three, four] = left.map(|row| row.0);
    let mut sums = [[0.0f32; LANES]; ROWS];
    let rows = one.iter().zip(two).zip(three).zip(four);
    for (by, (((one, two), three), four)) in right.iter().zip(rows) {
        for lane in 0..LANES {
            sums[0][lane] += one[lane] * by[lane];
            sums[1][lane] += two[lane] * by[lane];
            sums[2][lane] += three[lane] * by[lane];
            sums[3][lane] += four[lane] * by[lane];
        }
    }
    std::array::from_fn(|row| {
        let rest = left[row].1.iter().zip(right_rest);
        let rest: f32 = rest.map(|(a, b)| a * b).sum();
        sums[row].iter().sum::<f32>() + rest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(count: usize, seed: usize) -> Vec<f32> {
        (0..count)
            .map(|i| ((i * 7919 + seed * 104_729) % 201) as f32 / 100.0 - 1.0)
            .collect()
    }

    fn close(actual: &[f32], expected: &[f64]) {
        for (actual, expected) in actual.iter().zip(expected) {
            assert!(
                (f64::from(*actual) - expected).abs() <= 1e-5 * (1.0 + expected.abs()),
                "{actual} {expected}"
            );
        }
    }

    #[test]
    fn products_match_the_definition() {
        for (rows, inner, columns) in [(1, 1, 1), (4, 9, 16), (5, 33, 37), (7, 3, 15), (3, 0, 4)] {
            // The second matrix is a part of a wider one.
            let (a, wide) = (values(rows * inner, 1), values(inner * (columns + 3), 2));
            let left = FloatRows::new(&a, rows, inner).unwrap();
            let right = FloatRows::new(&wide, inner, columns + 3).unwrap();
            let right = right.of_columns(2, columns).unwrap();
            let mut out = vec![9.0; rows * columns];
            assert!(multiply(left, right, &mut out));
            let expected: Vec<f64> = (0..rows * columns)
                .map(|place| {
                    let (row, column) = (place / columns, place % columns);
                    let product = |k: usize| {
                        f64::from(a[row * inner + k])
                            * f64::from(wide[k * (columns + 3) + 2 + column])
                    };
                    (0..inner).map(product).sum()
                })
                .collect();
            close(&out, &expected);
        }
    }

    #[test]
    fn transposed_products_match_the_definition() {
        for (rows, columns, length) in [(1, 1, 1), (4, 2, 8), (5, 3, 37), (9, 7, 256), (2, 2, 0)] {
            let (a, b) = (values(rows * length, 3), values(columns * length, 4));
            let left = FloatRows::new(&a, rows, length).unwrap();
            let right = FloatRows::new(&b, columns, length).unwrap();
            let mut out = vec![9.0; rows * columns];
            assert!(multiply_transposed(left, right, &mut out));
            let expected: Vec<f64> = (0..rows * columns)
                .map(|place| {
                    let (row, column) = (place / columns, place % columns);
                    let pairs = (0..length).map(|k| (a[row * length + k], b[column * length + k]));
                    pairs.map(|(a, b)| f64::from(a) * f64::from(b)).sum()
                })
                .collect();
            close(&out, &expected);
            // A row alone has the same bits as within its tile.
            for row in 0..rows {
                let mut alone = vec![0.0; columns];
                assert!(multiply_transposed(
                    left.of_rows(row, 1).unwrap(),
                    right,
                    &mut alone
                ));
                assert_eq!(alone, out[row * columns..][..columns]);
            }
        }
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let a = FloatRows::new(&[1.0; 6], 2, 3).unwrap();
        let mut out = [7.0; 4];
        assert!(!multiply(a, a, &mut out));
        assert!(!multiply_transposed(a, a, &mut out[..3]));
        assert!(FloatRows::new(&[1.0; 5], 2, 3).is_none());
        assert!(a.of_columns(2, 2).is_none() && a.of_rows(2, 1).is_none());
        assert_eq!(out, [7.0; 4]);
    }
}
