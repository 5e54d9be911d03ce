//! Matrices of floats in a file brought into the panels that a product's kernel reads.
//!
//! A panel holds `width` neighbouring columns: for each row of the sum their values side by side. Columns that there are
//! none of are left as they were.

/// Where the elements of a matrix lie, counted in floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Matrix {
    /// The first element.
    pub first: usize,
    /// How many rows a sum has.
    pub k: usize,
    /// How many columns there are.
    pub mn: usize,
    /// From a row to the next.
    pub k_stride: usize,
    /// From a column to the next.
    pub mn_stride: usize,
}

impl Matrix {
    /// Whether all of it is among the first `count` floats.
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

/// Rows of a panel that are written together, so that what is written stays in the first cache.
const ROWS: usize = 32;

/// Writes the panels, `apart` floats from one to the next, from little-endian floats that may lie anywhere. False where the
/// matrix or the panels don't fit; then nothing is written.
#[must_use]
pub fn pack(bytes: &[u8], matrix: &Matrix, width: usize, apart: usize, panels: &mut [f32]) -> bool {
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
        && k.checked_mul(width).is_some_and(|len| len <= apart)
        && mn
            .div_ceil(width)
            .checked_mul(apart)
            .is_some_and(|len| len <= panels.len());
    if !fits {
        return false;
    }
    for (panel, column) in panels.chunks_mut(apart).zip((0..mn).step_by(width)) {
        let lanes = width.min(mn - column);
        let rows = &mut panel[..k * width];
        if mn_stride == 1 {
            for (row, values) in rows.chunks_exact_mut(width).enumerate() {
                let place = (first + row * k_stride + column) * FLOAT;
                read(&bytes[place..place + lanes * FLOAT], &mut values[..lanes]);
            }
        } else {
            for (block, rows) in rows.chunks_mut(ROWS * width).enumerate() {
                for lane in 0..lanes {
                    let place = first + (column + lane) * mn_stride + block * ROWS * k_stride;
                    gather(&bytes[place * FLOAT..], k_stride, &mut rows[lane..], width);
                }
            }
        }
    }
    true
}

/// Every `stride`th float into every `width`th place.
fn gather(bytes: &[u8], stride: usize, places: &mut [f32], width: usize) {
    let values = bytes.chunks(stride.max(1) * FLOAT);
    for (place, value) in places.iter_mut().step_by(width).zip(values) {
        if let Some(value) = value.first_chunk() {
            *place = f32::from_le_bytes(*value);
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

/// Matrices of all kinds, for the tests of whatever reads them.
#[cfg(test)]
pub(crate) mod cases {
    use super::Matrix;

    /// All of [`matrices`] lie in so many floats.
    pub(crate) const COUNT: usize = 9000;

    /// A matrix of 4 × 4 in a row.
    pub(crate) const SQUARE: Matrix = Matrix {
        first: 0,
        k: 4,
        mn: 4,
        k_stride: 4,
        mn_stride: 1,
    };

    /// A file of floats, which begin behind one byte: files align nothing.
    pub(crate) fn file(values: &[f32]) -> Vec<u8> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        std::iter::once(0).chain(bytes).collect()
    }

    /// Any sizes and strides, at the beginning and in the middle.
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

    /// Element by element, as the panels are defined.
    fn reference(values: &[f32], matrix: &Matrix, width: usize, apart: usize, panels: &mut [f32]) {
        for column in 0..matrix.mn {
            for row in 0..matrix.k {
                let from = matrix.first + row * matrix.k_stride + column * matrix.mn_stride;
                panels[column / width * apart + row * width + column % width] = values[from];
            }
        }
    }

    #[test]
    fn panels_are_as_defined_for_any_strides_and_places() {
        let values: Vec<f32> = (0..cases::COUNT).map(|at| at as f32).collect();
        let bytes = cases::file(&values);
        for matrix in cases::matrices() {
            let (width, apart) = (16, (matrix.k + 1) * 16);
            let mut wanted = vec![-1.0; matrix.mn.div_ceil(width) * apart];
            let mut found = wanted.clone();
            reference(&values, &matrix, width, apart, &mut wanted);
            assert!(pack(&bytes[1..], &matrix, width, apart, &mut found));
            assert_eq!(found, wanted, "{matrix:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
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
