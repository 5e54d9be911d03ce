//! Packing of float matrices stored in a file into the panels of a GEMM kernel.
//!
//! A panel holds `width` neighbouring columns, row by row. The lanes of missing columns keep their
//! previous contents.

/// Position and strides of a matrix, in floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Matrix {
    /// Index of the first element.
    pub first: usize,
    /// Number of rows: the reduction dimension.
    pub k: usize,
    /// Number of columns.
    pub mn: usize,
    /// Distance from one row to the next.
    pub k_stride: usize,
    /// Distance from one column to the next.
    pub mn_stride: usize,
}

impl Matrix {
    /// Returns true if the whole matrix lies within the first `count` floats.
    pub(crate) fn lies_in(&self, count: usize) -> bool {
        let (Some(row), Some(column)) = (self.k.checked_sub(1), self.mn.checked_sub(1)) else {
            return true;
        };
        row.checked_mul(self.k_stride)
            .zip(column.checked_mul(self.mn_stride))
            .and_then(|(row, column)| self.first.checked_add(row)?.checked_add(column))
            .is_some_and(|last| last < count)
    }
}

const FLOAT: usize = size_of::<f32>();

/// Rows of a panel that are written together, so that the destination stays in the L1 cache.
const ROWS: usize = 32;

/// Packs a matrix of little-endian floats at any alignment. Panels begin every `panel_stride`
/// floats.
///
/// Returns false and writes nothing if the matrix or the panels do not fit.
#[must_use]
pub fn pack(
    bytes: &[u8],
    matrix: &Matrix,
    width: usize,
    panel_stride: usize,
    panels: &mut [f32],
) -> bool {
    let Matrix {
        first,
        k,
        mn,
        k_stride,
        mn_stride,
    } = *matrix;
    if k == 0 || mn == 0 {
        return true;
    }
    let fits = matrix.lies_in(bytes.len() / FLOAT)
        && width > 0
        && k.checked_mul(width).is_some_and(|len| len <= panel_stride)
        && mn
            .div_ceil(width)
            .checked_mul(panel_stride)
            .is_some_and(|len| len <= panels.len());
    if !fits {
        return false;
    }
    for (panel, column) in panels.chunks_mut(panel_stride).zip((0..mn).step_by(width)) {
        let lanes = width.min(mn - column);
        let rows = &mut panel[..k * width];
        if mn_stride == 1 {
            for (row, values) in rows.chunks_exact_mut(width).enumerate() {
                let offset = (first + row * k_stride + column) * FLOAT;
                read(&bytes[offset..offset + lanes * FLOAT], &mut values[..lanes]);
            }
        } else {
            for (block, rows) in rows.chunks_mut(ROWS * width).enumerate() {
                for lane in 0..lanes {
                    let offset = first + (column + lane) * mn_stride + block * ROWS * k_stride;
                    gather(&bytes[offset * FLOAT..], k_stride, &mut rows[lane..], width);
                }
            }
        }
    }
    true
}

/// Copies every `stride`-th float to every `width`-th destination.
fn gather(bytes: &[u8], stride: usize, to: &mut [f32], width: usize) {
    let values = bytes.chunks(stride.max(1) * FLOAT);
    for (to, value) in to.iter_mut().step_by(width).zip(values) {
        if let Some(value) = value.first_chunk() {
            *to = f32::from_le_bytes(*value);
        }
    }
}

fn read(bytes: &[u8], floats: &mut [f32]) {
    for (float, bytes) in floats.iter_mut().zip(bytes.chunks_exact(FLOAT)) {
        if let Some(value) = bytes.first_chunk() {
            *float = f32::from_le_bytes(*value);
        }
    }
}

/// Matrices with varied sizes and strides, for the tests of their readers.
#[cfg(test)]
pub(crate) mod cases {
    use super::Matrix;

    /// Number of floats that hold every matrix of [`matrices`].
    pub(crate) const COUNT: usize = 9000;

    /// A contiguous 4 × 4 matrix.
    pub(crate) const SQUARE: Matrix = Matrix {
        first: 0,
        k: 4,
        mn: 4,
        k_stride: 4,
        mn_stride: 1,
    };

    /// A file whose floats begin after one byte: files guarantee no alignment.
    pub(crate) fn file(values: &[f32]) -> Vec<u8> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        std::iter::once(0).chain(bytes).collect()
    }

    /// Varied sizes and strides, at the beginning and in the middle of a file.
    pub(crate) fn matrices() -> impl Iterator<Item = Matrix> {
        let sizes = [
            (1, 1),
            (3, 16),
            (31, 17),
            (32, 5),
            (70, 33),
            (65, 1),
            (8, 8),
        ];
        let strided = sizes.into_iter().flat_map(|(k, mn)| {
            let strides = [(mn, 1), (1, k), (2, 2 * k + 1), (3 * mn, 3), (mn + 2, 1)];
            strides.map(|(k_stride, mn_stride)| Matrix {
                first: 0,
                k,
                mn,
                k_stride,
                mn_stride,
            })
        });
        strided.flat_map(|matrix| [0, 7].map(|first| Matrix { first, ..matrix }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs element by element, by the definition.
    fn reference(
        values: &[f32],
        matrix: &Matrix,
        width: usize,
        panel_stride: usize,
        panels: &mut [f32],
    ) {
        for column in 0..matrix.mn {
            for row in 0..matrix.k {
                let from = matrix.first + row * matrix.k_stride + column * matrix.mn_stride;
                panels[column / width * panel_stride + row * width + column % width] = values[from];
            }
        }
    }

    #[test]
    fn panels_match_the_definition_for_any_strides_and_offsets() {
        let values: Vec<f32> = (0..cases::COUNT).map(|at| at as f32).collect();
        let bytes = cases::file(&values);
        for matrix in cases::matrices() {
            let (width, panel_stride) = (16, (matrix.k + 1) * 16);
            let mut expected = vec![-1.0; matrix.mn.div_ceil(width) * panel_stride];
            let mut packed = expected.clone();
            reference(&values, &matrix, width, panel_stride, &mut expected);
            assert!(pack(&bytes[1..], &matrix, width, panel_stride, &mut packed));
            assert_eq!(packed, expected, "{matrix:?}");
        }
    }

    #[test]
    fn mismatched_sizes_are_refused() {
        let matrix = cases::SQUARE;
        let bytes = [0; 64];
        assert!(pack(&bytes, &matrix, 4, 16, &mut [0.0; 16]));
        assert!(!pack(&bytes[1..], &matrix, 4, 16, &mut [0.0; 16]));
        assert!(!pack(&bytes, &matrix, 4, 15, &mut [0.0; 16]));
        assert!(!pack(&bytes, &matrix, 4, 16, &mut [0.0; 15]));
        assert!(!pack(
            &bytes,
            &Matrix {
                k_stride: usize::MAX,
                ..matrix
            },
            4,
            16,
            &mut [0.0; 16]
        ));
    }
}
