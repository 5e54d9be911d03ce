//! The values of a `.npy` file.

use std::borrow::Cow;

use octet_onnx::half::widen_half;
use octet_onnx::in_memory::Values;
use octet_onnx::schema::DataType;

/// Order of an array's bytes in its file.
pub(super) struct ArrayLayout {
    pub(super) big_endian: bool,
    /// The first axis runs fastest.
    pub(super) fortran: bool,
    pub(super) shape: Vec<usize>,
}

/// Values as little-endian bytes in row-major order. Most files need no copy.
pub(super) fn little_endian_rows<'a>(
    data: &'a [u8],
    size: usize,
    layout: &ArrayLayout,
) -> Cow<'a, [u8]> {
    let mut bytes = if layout.fortran && layout.shape.len() > 1 {
        Cow::Owned(row_major(data, size, &layout.shape))
    } else {
        Cow::Borrowed(data)
    };
    if layout.big_endian && size > 1 {
        bytes
            .to_mut()
            .chunks_exact_mut(size)
            .for_each(<[u8]>::reverse);
    }
    bytes
}

/// Reorders values from Fortran order, in which the first axis runs fastest.
fn row_major(data: &[u8], size: usize, shape: &[usize]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut steps = Vec::with_capacity(shape.len());
    let mut step = size;
    for &dim in shape {
        steps.push(step);
        step *= dim;
    }
    let mut index = vec![0; shape.len()];
    let mut from = 0;
    for _ in 0..data.len() / size {
        out.extend_from_slice(&data[from..from + size]);
        // Advances the index like an odometer, with the last axis fastest.
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            from += steps[axis];
            if index[axis] < shape[axis] {
                break;
            }
            from -= steps[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    out
}

// A function of its own: browsers replace slow code only between calls, so a loop inside a long
// function stays slow.
/// Values of this type; `None` for types that numpy lacks.
#[inline(never)]
pub(super) fn values(element: DataType, bytes: &[u8]) -> Option<Values> {
    macro_rules! read {
        ($kind:ident, $type:ty) => {
            Values::$kind(
                bytes
                    .as_chunks()
                    .0
                    .iter()
                    .map(|b| <$type>::from_le_bytes(*b))
                    .collect(),
            )
        };
    }
    Some(match element {
        DataType::Bool => Values::Bool(bytes.iter().map(|&b| b != 0).collect()),
        DataType::Int8 => read!(I8, i8),
        DataType::Int16 => read!(I16, i16),
        DataType::Int32 => read!(I32, i32),
        DataType::Int64 => read!(I64, i64),
        DataType::Uint8 => Values::U8(bytes.to_vec()),
        DataType::Uint16 => read!(U16, u16),
        DataType::Uint32 => read!(U32, u32),
        DataType::Uint64 => read!(U64, u64),
        DataType::Float16 => {
            let halves = bytes.as_chunks().0.iter();
            let halves = halves.map(|b| widen_half(u16::from_le_bytes(*b)));
            Values::F32(halves.collect())
        }
        DataType::Float => read!(F32, f32),
        DataType::Double => read!(F64, f64),
        _ => return None,
    })
}
