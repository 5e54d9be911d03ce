//! GEMV: one row times a float matrix stored in a file.

use crate::float::FloatBytes;
use crate::pack::Matrix;

/// Number of partial sums.
const LANES: usize = 8;

/// Multiplies a row by a matrix of little-endian floats at any alignment.
///
/// Returns false and writes nothing if the matrix, the row or the sums do not fit.
#[must_use]
pub fn gemv(bytes: &[u8], matrix: &Matrix, row: &[f32], sums: &mut [f32]) -> bool {
    let (floats, _) = bytes.as_chunks();
    if !matrix.lies_in(floats.len()) || row.len() != matrix.k || sums.len() != matrix.mn {
        return false;
    }
    sums.fill(0.0);
    if matrix.k == 0 || matrix.mn == 0 {
        return true;
    }
    let floats = &floats[matrix.first..];
    match *matrix {
        Matrix {
            mn_stride: 1,
            k_stride,
            ..
        } => add_rows(floats, k_stride, row, sums),
        Matrix {
            k_stride: 1,
            mn_stride,
            ..
        } => add_columns(floats, mn_stride, row, sums),
        _ => {
            for (column, sum) in sums.iter_mut().enumerate() {
                let column = floats[column * matrix.mn_stride..].iter();
                let values = column.step_by(matrix.k_stride.max(1));
                *sum = row.iter().zip(values).map(|(a, b)| a * value(b)).sum();
            }
        }
    }
    true
}

fn value(raw: &FloatBytes) -> f32 {
    f32::from_le_bytes(*raw)
}

/// Adds each matrix row times its factor to the sums. Four rows share a pass, so that the sums are
/// loaded and stored less often.
fn add_rows(floats: &[FloatBytes], stride: usize, row: &[f32], sums: &mut [f32]) {
    let count = sums.len();
    let (fours, rest) = row.as_chunks::<4>();
    for (at, by) in fours.iter().enumerate() {
        let rows: [&[FloatBytes]; 4] =
            std::array::from_fn(|next| &floats[(4 * at + next) * stride..][..count]);
        for (column, sum) in sums.iter_mut().enumerate() {
            let products: [f32; 4] =
                std::array::from_fn(|next| by[next] * value(&rows[next][column]));
            *sum += (products[0] + products[1]) + (products[2] + products[3]);
        }
    }
    for (at, by) in rest.iter().enumerate() {
        let values = &floats[(4 * fours.len() + at) * stride..][..count];
        for (sum, raw) in sums.iter_mut().zip(values) {
            *sum += by * value(raw);
        }
    }
}

/// Computes the dot product of the row with each column, whose values are contiguous.
fn add_columns(floats: &[FloatBytes], stride: usize, row: &[f32], sums: &mut [f32]) {
    let (eights, rest) = row.as_chunks::<LANES>();
    for (column, sum) in sums.iter_mut().enumerate() {
        let values = &floats[column * stride..][..row.len()];
        let (chunks, left) = values.as_chunks::<LANES>();
        let mut lanes = [0.0; LANES];
        for (by, raw) in eights.iter().zip(chunks) {
            for ((lane, by), raw) in lanes.iter_mut().zip(by).zip(raw) {
                *lane += by * value(raw);
            }
        }
        let left = rest.iter().zip(left).map(|(by, raw)| by * value(raw));
        *sum = lanes.into_iter().chain(left).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::cases;

    #[test]
    fn sums_match_the_definition_for_any_strides_and_offsets() {
        // Small integers, whose sums are exact in any order.
        let small = |at: usize| (at * 37 % 11) as f32 - 5.0;
        let values: Vec<f32> = (0..cases::COUNT).map(small).collect();
        let bytes = cases::file(&values);
        for matrix in cases::matrices() {
            let row: Vec<f32> = (0..matrix.k).map(|at| small(at + 5)).collect();
            let sum = |column: usize| {
                let first = matrix.first + column * matrix.mn_stride;
                let rows = row.iter().enumerate();
                rows.map(|(k, a)| a * values[first + k * matrix.k_stride])
                    .sum()
            };
            let expected: Vec<f32> = (0..matrix.mn).map(sum).collect();
            let mut sums = vec![f32::NAN; matrix.mn];
            assert!(gemv(&bytes[1..], &matrix, &row, &mut sums));
            assert_eq!(sums, expected, "{matrix:?}");
        }
    }

    #[test]
    fn mismatched_sizes_are_refused() {
        let matrix = cases::SQUARE;
        let bytes = [0; 64];
        assert!(gemv(&bytes, &matrix, &[1.0; 4], &mut [0.0; 4]));
        assert!(!gemv(&bytes[1..], &matrix, &[1.0; 4], &mut [0.0; 4]));
        assert!(!gemv(&bytes, &matrix, &[1.0; 3], &mut [0.0; 4]));
        assert!(!gemv(&bytes, &matrix, &[1.0; 4], &mut [0.0; 5]));
        let far = Matrix {
            k_stride: usize::MAX,
            ..matrix
        };
        assert!(!gemv(&bytes, &far, &[1.0; 4], &mut [0.0; 4]));
    }
}
