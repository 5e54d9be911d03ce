//! Products of float matrices in one thread, with a fixed order of sums.
//!
//! Multiplication and addition round separately, so that every processor computes the same bits.

use crate::dispatch::vectorized;
use crate::sum::dot_in_lanes;

/// Rows of a tile.
const ROWS: usize = 4;
/// Floats of a [`SumLanes`].
const WIDTH: usize = 8;
/// Columns of a tile.
const COLUMNS: usize = 2 * WIDTH;
/// Partial sums of each product of [`multiply_transposed`].
const PARTS: usize = 2 * WIDTH;

/// Sums that stay in registers: the compiler keeps arrays in memory if they are indexed.
#[derive(Clone, Copy)]
struct SumLanes([f32; WIDTH]);

impl SumLanes {
    #[inline(always)]
    fn splat(value: f32) -> SumLanes {
        SumLanes([value; WIDTH])
    }

    /// The first values of a slice, in two vectors.
    #[inline(always)]
    fn pair(values: &[f32]) -> [SumLanes; 2] {
        let load = |values: &[f32]| SumLanes(std::array::from_fn(|lane| values[lane]));
        let values = &values[..2 * WIDTH];
        [load(&values[..WIDTH]), load(&values[WIDTH..])]
    }

    #[inline(always)]
    fn plus(self, other: SumLanes) -> SumLanes {
        SumLanes(std::array::from_fn(|lane| self.0[lane] + other.0[lane]))
    }

    /// Returns `self + a * b`, rounded twice.
    #[inline(always)]
    fn plus_product(self, a: SumLanes, b: SumLanes) -> SumLanes {
        SumLanes(std::array::from_fn(|lane| {
            self.0[lane] + a.0[lane] * b.0[lane]
        }))
    }
}

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

/// A tile of sums, in vectors.
type SumTile<const R: usize> = [[SumLanes; 2]; R];

/// The sums of products of some rows with a panel's columns, over some of its rows in order.
/// `values` gives a row of the panel.
#[inline(always)]
fn sums<'a, const R: usize>(
    rows: [&[f32]; R],
    places: impl Iterator<Item = usize>,
    values: impl Fn(usize) -> &'a [f32],
) -> SumTile<R> {
    let mut sums = [[SumLanes::splat(0.0); 2]; R];
    for place in places {
        let values = SumLanes::pair(values(place));
        for (sums, row) in sums.iter_mut().zip(rows) {
            let by = SumLanes::splat(row[place]);
            for (sum, values) in sums.iter_mut().zip(values) {
                *sum = sum.plus_product(by, values);
            }
        }
    }
    sums
}

#[inline(always)]
fn multiply_rows<const R: usize>(a: FloatRows, b: FloatRows, first: usize, out: &mut [f32]) {
    let rows: [&[f32]; R] = std::array::from_fn(|row| a.row(first + row));
    let whole = b.columns / COLUMNS * COLUMNS;
    for column in (0..whole).step_by(COLUMNS) {
        let sums = sums(rows, 0..a.columns, |inner| {
            &b.values[inner * b.stride + column..]
        });
        write(sums, b.columns, column, COLUMNS, out);
    }
    for column in whole..b.columns {
        for (row, values) in rows.iter().enumerate() {
            let others = (0..a.columns).map(|inner| b.values[inner * b.stride + column]);
            let pairs = values.iter().zip(others);
            out[row * b.columns + column] = pairs.fold(0.0, |sum, (by, value)| sum + by * value);
        }
    }
}

/// Writes the first columns of a tile to its place in rows of a length.
#[inline(always)]
fn write<const R: usize>(
    tile: SumTile<R>,
    length: usize,
    column: usize,
    width: usize,
    out: &mut [f32],
) {
    for (row, sums) in tile.into_iter().enumerate() {
        let out = &mut out[row * length + column..][..width];
        for (out, sums) in out.chunks_mut(WIDTH).zip(sums) {
            out.copy_from_slice(&sums.0[..out.len()]);
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
        // A panel pays off for several rows, and if at least half of it is used.
        let in_panels = match a.rows < ROWS {
            true => 0,
            false => ((b.rows + COLUMNS / 2) / COLUMNS * COLUMNS).min(b.rows),
        };
        dot_products(a, b, in_panels, out);
        for (row, out) in out.chunks_mut(b.rows).enumerate() {
            for (column, out) in out.iter_mut().enumerate().skip(in_panels) {
                *out = dot_in_lanes::<f32, PARTS>(a.row(row), b.row(column));
            }
        }
    });
    true
}

/// The dot products with the first rows of `b`, each with the bits of [`dot_in_lanes`]. Those rows
/// lie side by side in a panel, so that a vector holds one partial sum of several products.
#[inline(always)]
fn dot_products(a: FloatRows, b: FloatRows, in_panels: usize, out: &mut [f32]) {
    let mut panel = vec![
        0.0;
        if in_panels > 0 {
            b.columns * COLUMNS
        } else {
            0
        }
    ];
    for column in (0..in_panels).step_by(COLUMNS) {
        let width = COLUMNS.min(in_panels - column);
        for place in 0..width {
            let values = b.row(column + place);
            for (row, &value) in panel.chunks_exact_mut(COLUMNS).zip(values) {
                row[place] = value;
            }
        }
        for (index, out) in out.chunks_mut(ROWS * b.rows).enumerate() {
            let first = index * ROWS;
            match out.len() / b.rows {
                ROWS => panel_rows::<ROWS>(a, &panel, first, (column, width), out),
                rows => {
                    for row in 0..rows {
                        let out = &mut out[row * b.rows..][..b.rows];
                        panel_rows::<1>(a, &panel, first + row, (column, width), out);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn panel_rows<const R: usize>(
    a: FloatRows,
    panel: &[f32],
    first: usize,
    (column, width): (usize, usize),
    out: &mut [f32],
) {
    let rows: [&[f32]; R] = std::array::from_fn(|row| a.row(first + row));
    let whole = a.columns / PARTS * PARTS;
    let values = |place| &panel[place * COLUMNS..];
    let mut totals = [[SumLanes::splat(0.0); 2]; R];
    let mut add = |sums: SumTile<R>| {
        for (total, sum) in totals.iter_mut().zip(sums) {
            for (total, sum) in total.iter_mut().zip(sum) {
                *total = total.plus(sum);
            }
        }
    };
    for part in 0..PARTS {
        add(sums(rows, (part..whole).step_by(PARTS), values));
    }
    add(sums(rows, whole..a.columns, values));
    write(totals, out.len() / R, column, width, out);
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
        for (rows, columns, length) in [
            (1, 1, 1),
            (4, 2, 8),
            (5, 3, 37),
            (9, 20, 256),
            (6, 35, 50),
            (2, 2, 0),
        ] {
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
