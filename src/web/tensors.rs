//! Conversion of tensors from and to typed arrays.

use js_sys::{
    Array, BigInt64Array, BigUint64Array, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Object, Reflect, Uint8Array, Uint16Array, Uint32Array,
};
use wasm_bindgen::prelude::*;

use super::failure;
use crate::samples::InputSpec;
use crate::session::ErrorKind;
use crate::tensor::{Tensor, Values};

/// Converts `{ name, shape, data }`s into one tensor per input.
pub(super) fn from_js(tensors: &Array, inputs: &[InputSpec]) -> Result<Vec<Tensor>, JsValue> {
    let wrong = |message: String| failure(ErrorKind::Sample, &message);
    inputs
        .iter()
        .map(|input| {
            let named = |one: &JsValue| {
                let name = Reflect::get(one, &"name".into()).ok()?.as_string()?;
                (name == input.name).then(|| one.clone())
            };
            let tensor = tensors.iter().find_map(|one| named(&one)).ok_or_else(|| {
                wrong(format!("no tensor for the input `{}`: give one for every input of the model", input.name))
            })?;
            let data = Reflect::get(&tensor, &"data".into())?;
            let values = values(&data).ok_or_else(|| {
                wrong(format!(
                    "the data of the input `{}` is not a supported typed array: give a Float32Array, BigInt64Array or the like",
                    input.name
                ))
            })?;
            let values = match values {
                // A caller that feeds a half-precision model has to round its values, too.
                Values::F32(floats) if input.element.is_half() => {
                    Values::F32(floats.into_iter().map(|x| input.element.rounded(x)).collect())
                }
                other => other,
            };
            let shape = Array::from(&Reflect::get(&tensor, &"shape".into())?);
            let shape: Vec<usize> = shape.iter().map(|d| d.as_f64().unwrap_or(0.0) as usize).collect();
            let (count, wanted) = (values.len(), format!("{shape:?}"));
            Tensor::new(shape, values).ok_or_else(|| {
                wrong(format!("the input `{}` has {count} elements, but its shape is {wanted}: the numbers must match", input.name))
            })
        })
        .collect()
}

fn values(data: &JsValue) -> Option<Values> {
    macro_rules! one_of {
        ($($array:ident $kind:ident),*) => {
            $(if let Some(array) = data.dyn_ref::<$array>() {
                return Some(Values::$kind(array.to_vec()));
            })*
        };
    }
    one_of!(
        Float32Array F32, Float64Array F64, Int8Array I8, Int16Array I16, Int32Array I32, BigInt64Array I64,
        Uint8Array U8, Uint16Array U16, Uint32Array U32, BigUint64Array U64
    );
    None
}

/// `{ name, data }` of a tensor, whose typed array is a view of its memory. The tensor must not be
/// changed or moved on this side while the view is used.
pub(super) fn view(name: &str, tensor: &Tensor) -> Result<JsValue, JsValue> {
    macro_rules! viewed {
        ($($array:ident $kind:ident),*) => {
            match tensor.values() {
                // SAFETY: the caller keeps the tensor in place as long as the view is used.
                $(Values::$kind(values) => unsafe { $array::view(values) }.into(),)*
                Values::Bool(_) => JsValue::UNDEFINED,
            }
        };
    }
    let data: JsValue = viewed!(
        Float32Array F32, Float64Array F64, Int8Array I8, Int16Array I16, Int32Array I32, BigInt64Array I64,
        Uint8Array U8, Uint16Array U16, Uint32Array U32, BigUint64Array U64
    );
    let one = Object::new();
    Reflect::set(&one, &"name".into(), &name.into())?;
    Reflect::set(&one, &"data".into(), &data)?;
    Ok(one.into())
}

/// Converts tensors into `{ name, element, shape, data }`s; booleans become bytes.
pub(super) fn to_js(outputs: &[(String, Tensor)]) -> Result<Array, JsValue> {
    let all = Array::new();
    for (name, tensor) in outputs {
        let data: JsValue = match tensor.values() {
            Values::F32(v) => Float32Array::from(&v[..]).into(),
            Values::F64(v) => Float64Array::from(&v[..]).into(),
            Values::I8(v) => Int8Array::from(&v[..]).into(),
            Values::I16(v) => Int16Array::from(&v[..]).into(),
            Values::I32(v) => Int32Array::from(&v[..]).into(),
            Values::I64(v) => BigInt64Array::from(&v[..]).into(),
            Values::U8(v) => Uint8Array::from(&v[..]).into(),
            Values::U16(v) => Uint16Array::from(&v[..]).into(),
            Values::U32(v) => Uint32Array::from(&v[..]).into(),
            Values::U64(v) => BigUint64Array::from(&v[..]).into(),
            Values::Bool(v) => {
                let bytes: Vec<u8> = v.iter().map(|&b| u8::from(b)).collect();
                Uint8Array::from(&bytes[..]).into()
            }
        };
        let shape: Array = tensor
            .shape()
            .iter()
            .map(|&d| JsValue::from(d as f64))
            .collect();
        let one = Object::new();
        for (key, value) in [
            ("name", JsValue::from(name.as_str())),
            ("element", JsValue::from(tensor.element_type().name())),
            ("shape", shape.into()),
            ("data", data),
        ] {
            Reflect::set(&one, &key.into(), &value)?;
        }
        all.push(&one);
    }
    Ok(all)
}
