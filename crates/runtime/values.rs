//! Conversion between our tensors and tract's.

use std::alloc::Layout;
use std::borrow::Cow;

use tract::{DatumType, TValue, TractResult, bail};
use tract_onnx::tract_hir::internal as tract;

use octet_onnx::in_memory::{Tensor, Values};

/// Converts a sample. An owned tensor is freed as soon as it is converted.
pub(super) fn inputs_to_tract(sample: Cow<'_, [Tensor]>) -> TractResult<tract::TVec<TValue>> {
    let one = |tensor: &Tensor| Ok(tract::IntoTValue::into_tvalue(to_tract(tensor)?));
    match sample {
        Cow::Borrowed(tensors) => tensors.iter().map(one).collect(),
        Cow::Owned(tensors) => tensors.into_iter().map(|tensor| one(&tensor)).collect(),
    }
}

fn to_tract(tensor: &Tensor) -> TractResult<tract::Tensor> {
    let shape = tensor.shape();
    match tensor.values() {
        Values::F32(v) => tract::Tensor::from_shape(shape, v),
        Values::F64(v) => tract::Tensor::from_shape(shape, v),
        Values::I8(v) => tract::Tensor::from_shape(shape, v),
        Values::I16(v) => tract::Tensor::from_shape(shape, v),
        Values::I32(v) => tract::Tensor::from_shape(shape, v),
        Values::I64(v) => tract::Tensor::from_shape(shape, v),
        Values::U8(v) => tract::Tensor::from_shape(shape, v),
        Values::U16(v) => tract::Tensor::from_shape(shape, v),
        Values::U32(v) => tract::Tensor::from_shape(shape, v),
        Values::U64(v) => tract::Tensor::from_shape(shape, v),
        Values::Bool(v) => tract::Tensor::from_shape(shape, v),
    }
}

/// The element type of a tensor as tract's type.
pub(super) fn datum_type(tensor: &Tensor) -> DatumType {
    match tensor.values() {
        Values::F32(_) => DatumType::F32,
        Values::F64(_) => DatumType::F64,
        Values::I8(_) => DatumType::I8,
        Values::I16(_) => DatumType::I16,
        Values::I32(_) => DatumType::I32,
        Values::I64(_) => DatumType::I64,
        Values::U8(_) => DatumType::U8,
        Values::U16(_) => DatumType::U16,
        Values::U32(_) => DatumType::U32,
        Values::U64(_) => DatumType::U64,
        Values::Bool(_) => DatumType::Bool,
    }
}

/// Converts an output of a run.
pub(super) fn from_tract(value: TValue) -> TractResult<Tensor> {
    // tract computes symbolic sizes as TDim; callers get integers.
    let tensor = match value.datum_type() {
        DatumType::TDim => value.cast_to::<i64>()?.into_owned(),
        DatumType::F16 => value.cast_to::<f32>()?.into_owned(),
        _ => tract::IntoTensor::into_tensor(value),
    };
    let shape = tensor.shape().to_vec();
    let values = match tensor.datum_type() {
        DatumType::F32 => Values::F32(numbers(tensor)?),
        DatumType::F64 => Values::F64(numbers(tensor)?),
        DatumType::I8 => Values::I8(numbers(tensor)?),
        DatumType::I16 => Values::I16(numbers(tensor)?),
        DatumType::I32 => Values::I32(numbers(tensor)?),
        DatumType::I64 => Values::I64(numbers(tensor)?),
        DatumType::U8 => Values::U8(numbers(tensor)?),
        DatumType::U16 => Values::U16(numbers(tensor)?),
        DatumType::U32 => Values::U32(numbers(tensor)?),
        DatumType::U64 => Values::U64(numbers(tensor)?),
        DatumType::Bool => Values::Bool(numbers(tensor)?),
        other => bail!("an output of type {other:?} is not supported"),
    };
    match Tensor::new(shape, values) {
        Some(tensor) => Ok(tensor),
        None => bail!("an output has more or fewer elements than its shape"),
    }
}

/// The elements of a tensor. A buffer with the layout of a vector is taken over, as integer regions
/// allocate their outputs; others are copied.
fn numbers<T: tract::Datum + Copy>(tensor: tract::Tensor) -> TractResult<Vec<T>> {
    let count = tensor.try_as_plain_ram()?.as_slice::<T>()?.len();
    let mut blob = tensor.into_blob()?;
    let start = blob.as_mut_ptr().cast::<T>();
    if count > 0 && *blob.layout() == Layout::array::<T>(count)? {
        std::mem::forget(blob);
        // SAFETY: the buffer holds `count` elements and has the layout of a vector of them.
        // `forget` leaves the vector as its only owner.
        return Ok(unsafe { Vec::from_raw_parts(start, count, count) });
    }
    let mut numbers = Vec::with_capacity(count);
    if count > 0 {
        // SAFETY: the buffer holds `count` aligned elements, as checked above.
        numbers.extend_from_slice(unsafe { std::slice::from_raw_parts(start, count) });
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_whose_memory_is_that_of_a_vector_are_taken_and_others_copied() {
        let expected: Vec<i32> = (0..100).collect();
        let bytes: Vec<u8> = expected.iter().flat_map(|v| v.to_ne_bytes()).collect();
        for (align, taken) in [(align_of::<i32>(), true), (64, false)] {
            // SAFETY: `bytes` has the length of the elements.
            let made = || unsafe {
                tract::Tensor::from_raw_dt_align(DatumType::I32, &[4, 25], &bytes, align)
            };
            let tensor = made().unwrap();
            let before = tensor.as_bytes().as_ptr();
            let found: Vec<i32> = numbers(tensor).unwrap();
            assert_eq!(found, expected);
            assert_eq!(found.as_ptr().cast() == before, taken, "{align}");
            let value = tract::IntoTValue::into_tvalue(made().unwrap());
            // A second owner exists.
            let found = [value.clone(), value].map(|value| from_tract(value).unwrap());
            for tensor in found {
                assert_eq!(tensor.shape(), [4, 25]);
                assert_eq!(tensor.values(), &Values::I32(expected.clone()));
            }
        }
        let nothing = tract::Tensor::from_shape::<f32>(&[0, 3], &[]).unwrap();
        let found = from_tract(tract::IntoTValue::into_tvalue(nothing)).unwrap();
        assert_eq!(found.values(), &Values::F32(Vec::new()));
    }
}
