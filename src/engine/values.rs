//! Between our tensors and tract's.

use std::borrow::Cow;

use tract::{DatumType, TValue, TractResult, bail};
use tract_onnx::tract_hir::internal as tract;

use crate::tensor::{Tensor, Values};

/// A sample in tract's form. Of one that is given up, each tensor is freed as it is taken over.
pub(super) fn fed(sample: Cow<'_, [Tensor]>) -> TractResult<tract::TVec<TValue>> {
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

/// tract's name of a tensor's element type.
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

/// Our form of what a run gave back.
pub(super) fn from_tract(value: &TValue) -> TractResult<Tensor> {
    let tensor: &tract::Tensor = value;
    // Symbolic sizes are computed as TDim inside tract; outside they are integers.
    let tensor = match tensor.datum_type() {
        DatumType::TDim => tensor.cast_to::<i64>()?,
        DatumType::F16 => tensor.cast_to::<f32>()?,
        _ => std::borrow::Cow::Borrowed(tensor),
    };
    let view = tensor.try_as_plain_ram()?;
    let values = match tensor.datum_type() {
        DatumType::F32 => Values::F32(view.as_slice()?.to_vec()),
        DatumType::F64 => Values::F64(view.as_slice()?.to_vec()),
        DatumType::I8 => Values::I8(view.as_slice()?.to_vec()),
        DatumType::I16 => Values::I16(view.as_slice()?.to_vec()),
        DatumType::I32 => Values::I32(view.as_slice()?.to_vec()),
        DatumType::I64 => Values::I64(view.as_slice()?.to_vec()),
        DatumType::U8 => Values::U8(view.as_slice()?.to_vec()),
        DatumType::U16 => Values::U16(view.as_slice()?.to_vec()),
        DatumType::U32 => Values::U32(view.as_slice()?.to_vec()),
        DatumType::U64 => Values::U64(view.as_slice()?.to_vec()),
        DatumType::Bool => Values::Bool(view.as_slice()?.to_vec()),
        other => bail!("an output of type {other:?} has no form outside the engine"),
    };
    match Tensor::new(tensor.shape().to_vec(), values) {
        Some(tensor) => Ok(tensor),
        None => bail!("an output whose shape and number of elements disagree"),
    }
}
