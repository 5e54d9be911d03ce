//! The quantized inputs of a layer at some positions, kept as integers. A part at a time becomes
//! floats.

use std::ops::Range;

use octet_kernels::{FloatRows, IntegerGrid};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::DataType;
use rayon::prelude::*;

use crate::TuneError;
use crate::layers::integer_ends;
use crate::rows::{Place, Positions};

/// Bytes of the floats of a part, so that they stay in a processor's own cache.
const PART_BYTES: usize = 512 << 10;
/// Columns of a part are a multiple of this number, if they are not all.
const COLUMNS: usize = 64;

/// Integers of up to 16 bits. Signed ones are stored as unsigned ones, higher by half the range.
enum UnsignedIntegers {
    Bytes(Vec<u8>),
    Words(Vec<u16>),
}

/// A matrix of integers: a row for each input, a column for each position.
pub(crate) struct LayerInputs {
    integers: UnsignedIntegers,
    grid: IntegerGrid,
    columns: usize,
}

impl LayerInputs {
    /// Inputs that are all zero. `element` is the type of the layer's quantized input.
    pub(crate) fn zeros(
        element: DataType,
        (scale, zero_point): (f32, i32),
        rows: usize,
        columns: usize,
    ) -> Result<LayerInputs, TuneError> {
        let ends = integer_ends(element);
        let [low, high] = ends.ok_or(TuneError::Broken("the type of a layer's input"))?;
        let (zero_point, most) = (zero_point - low, high - low);
        let count = rows * columns;
        let integers = match most {
            255 => UnsignedIntegers::Bytes(vec![zero_point as u8; count]),
            _ => UnsignedIntegers::Words(vec![zero_point as u16; count]),
        };
        Ok(LayerInputs {
            integers,
            grid: IntegerGrid {
                scale,
                zero_point,
                ends: [0, most],
            },
            columns,
        })
    }

    /// Inputs with these integers.
    #[cfg(test)]
    pub(crate) fn words(
        words: Vec<u16>,
        (scale, zero_point): (f32, i32),
        columns: usize,
    ) -> LayerInputs {
        LayerInputs {
            integers: UnsignedIntegers::Words(words),
            grid: IntegerGrid {
                scale,
                zero_point,
                ends: [0, 65535],
            },
            columns,
        }
    }

    /// Reads the inputs of all groups at some places of a value. Each place has a column.
    pub(crate) fn read(
        &mut self,
        value: &Tensor,
        positions: &Positions,
        places: &[Place],
    ) -> Result<(), TuneError> {
        let zero = self.grid.zero_point;
        match (&mut self.integers, value.values()) {
            (UnsignedIntegers::Bytes(to), Values::U8(from)) => {
                positions.read(from, |byte| byte, zero as u8, places, to);
            }
            (UnsignedIntegers::Bytes(to), Values::I8(from)) => {
                let unsigned = |byte| byte as u8 ^ 0x80;
                positions.read(from, unsigned, zero as u8, places, to);
            }
            (UnsignedIntegers::Words(to), Values::U16(from)) => {
                positions.read(from, |word| word, zero as u16, places, to);
            }
            (UnsignedIntegers::Words(to), Values::I16(from)) => {
                let unsigned = |word| word as u16 ^ 0x8000;
                positions.read(from, unsigned, zero as u16, places, to);
            }
            _ => return Err(TuneError::Broken("the integers of a layer's input")),
        }
        Ok(())
    }

    /// Takes some columns of other inputs of the layer: those that `column_of` names a column for.
    pub(crate) fn take(
        &mut self,
        other: &LayerInputs,
        column_of: impl Fn(usize) -> Option<usize> + Sync,
    ) -> Result<(), TuneError> {
        let columns = [self.columns, other.columns];
        match (&mut self.integers, &other.integers) {
            (UnsignedIntegers::Bytes(to), UnsignedIntegers::Bytes(from)) => {
                take(to, from, columns, column_of)
            }
            (UnsignedIntegers::Words(to), UnsignedIntegers::Words(from)) => {
                take(to, from, columns, column_of)
            }
            _ => return Err(TuneError::Broken("the type of a layer's input")),
        }
        Ok(())
    }

    /// Number of positions.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// The floats of some rows and columns. `buffer` holds them.
    pub(crate) fn floats<'a>(
        &self,
        rows: Range<usize>,
        columns: Range<usize>,
        buffer: &'a mut Vec<f32>,
    ) -> Result<FloatRows<'a>, TuneError> {
        let broken = || TuneError::Broken("the inputs of a layer");
        let (count, width) = (rows.len(), columns.len());
        buffer.resize(count * width, 0.0);
        if width > 0 {
            for (row, out) in rows.zip(buffer.chunks_exact_mut(width)) {
                let first = row * self.columns;
                let places = first + columns.start..first + columns.end;
                match &self.integers {
                    UnsignedIntegers::Bytes(all) => {
                        self.grid.reals(all.get(places).ok_or_else(broken)?, out)
                    }
                    UnsignedIntegers::Words(all) => {
                        self.grid.reals(all.get(places).ok_or_else(broken)?, out)
                    }
                }
            }
        }
        FloatRows::new(buffer, count, width).ok_or_else(broken)
    }

    /// The columns in parts whose floats, of this many rows, stay in a processor's cache.
    pub(crate) fn parts(&self, rows: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let fitting = PART_BYTES / (rows * size_of::<f32>()).max(1);
        parts_of(self.columns, (fitting / COLUMNS).max(1) * COLUMNS)
    }
}

/// Numbers below `count` in parts of `length`.
pub(crate) fn parts_of(count: usize, length: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count)
        .step_by(length)
        .map(move |first| first..(first + length).min(count))
}

/// Copies columns of one matrix to another: those that `column_of` names a column for.
pub(crate) fn take<T: Copy + Send + Sync>(
    to: &mut [T],
    from: &[T],
    [columns, others]: [usize; 2],
    column_of: impl Fn(usize) -> Option<usize> + Sync,
) {
    let rows = to
        .par_chunks_mut(columns.max(1))
        .zip(from.par_chunks(others.max(1)));
    rows.for_each(|(to, from)| {
        for (at, &value) in from.iter().enumerate() {
            if let Some(column) = column_of(at) {
                to[column] = value;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use octet_stats::Im2colView;

    fn value(values: Values) -> Tensor {
        Tensor::new(vec![3, 2], values).unwrap()
    }

    fn integers_of(value: &Tensor) -> Vec<i64> {
        match value.values() {
            Values::U8(values) => values.iter().map(|&one| one.into()).collect(),
            Values::I8(values) => values.iter().map(|&one| one.into()).collect(),
            Values::U16(values) => values.iter().map(|&one| one.into()).collect(),
            Values::I16(values) => values.iter().map(|&one| one.into()).collect(),
            _ => panic!("no integers"),
        }
    }

    #[test]
    fn integers_of_each_type_come_back_as_their_reals() {
        let view = Im2colView::Rows;
        let positions = Positions::new(&view, 2, &[3, 2]).unwrap();
        let places: Vec<Place> = (0..3).map(|at| positions.place(at)).collect();
        for (element, zero_point, values) in [
            (DataType::Uint8, 5, Values::U8(vec![0, 5, 6, 7, 8, 255])),
            (
                DataType::Int8,
                -3,
                Values::I8(vec![-128, -3, -2, -1, 0, 127]),
            ),
            (
                DataType::Uint16,
                9,
                Values::U16(vec![0, 9, 10, 11, 12, 65535]),
            ),
            (
                DataType::Int16,
                0,
                Values::I16(vec![-32768, 0, 1, 2, 3, 32767]),
            ),
        ] {
            let mut inputs = LayerInputs::zeros(element, (0.5, zero_point), 2, 3).unwrap();
            let mut buffer = Vec::new();
            let zeros = inputs.floats(0..2, 0..3, &mut buffer).unwrap();
            assert!(zeros.values.iter().all(|&real| real == 0.0), "{element:?}");
            let value = value(values);
            inputs.read(&value, &positions, &places).unwrap();
            let integers = integers_of(&value);
            let real = |at: usize| (integers[at] - i64::from(zero_point)) as f32 * 0.5;
            let floats = inputs.floats(0..2, 1..3, &mut buffer).unwrap();
            assert_eq!(floats.values, [real(2), real(4), real(3), real(5)]);
            let mut others = LayerInputs::zeros(element, (0.5, zero_point), 2, 5).unwrap();
            let column_of = |at: usize| (at != 1).then_some(4 - at);
            others.take(&inputs, column_of).unwrap();
            let floats = others.floats(1..2, 0..5, &mut buffer).unwrap();
            assert_eq!(floats.values, [0.0, 0.0, real(5), 0.0, real(1)]);
        }
    }

    #[test]
    fn parts_cover_all_columns_once() {
        let inputs = LayerInputs::zeros(DataType::Uint8, (1.0, 0), 1, 1000).unwrap();
        for rows in [1, 900, 100_000] {
            let parts: Vec<Range<usize>> = inputs.parts(rows).collect();
            assert!(
                parts
                    .iter()
                    .all(|part| part.len() >= COLUMNS || part.end == 1000)
            );
            assert!(parts.into_iter().flatten().eq(0..1000));
        }
    }
}
