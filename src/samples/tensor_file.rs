//! The `input_K.pb` of an ONNX test data set: one `TensorProto`.

use prost::Message;

use super::group::{Kind, kind};
use super::{Array, LARGEST_ARRAY, Problem, type_name};
use crate::onnx::schema::{DataType, TensorProto};
use crate::tensor::{Tensor, Values};

const AGAIN: &str = "save it again with onnx.numpy_helper.from_array";

/// Reads a tensor file. Its place among the inputs is in its name, that of its input sometimes inside.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Array, Problem> {
    let broken = |why: String| Problem::broken(file, why, AGAIN);
    if bytes.is_empty() {
        return Err(broken("it is empty".into()));
    }
    let proto = TensorProto::decode(bytes).map_err(|e| broken(format!("it is no tensor ({e})")))?;
    let element = DataType::try_from(proto.data_type.unwrap_or(0)).unwrap_or(DataType::Undefined);
    let shape: Option<Vec<usize>> = proto
        .dims
        .iter()
        .map(|&d| usize::try_from(d).ok())
        .collect();
    let shape = shape.ok_or_else(|| broken("its shape has a negative size".into()))?;
    if bytes.len() as u64 > LARGEST_ARRAY {
        return Err(Problem::TooLarge {
            array: file.into(),
            bytes: bytes.len() as u64,
            limit: LARGEST_ARRAY,
        });
    }
    let values = values(&proto, element).ok_or_else(|| {
        broken(format!(
            "it holds {}, which is not read",
            type_name(element)
        ))
    })?;
    let count = values.len();
    let tensor = Tensor::new(shape.clone(), values).ok_or_else(|| {
        broken(format!(
            "its shape is {shape:?}, but it holds {count} values"
        ))
    })?;
    let name = proto.name.filter(|n| !n.is_empty());
    let named = name.is_some();
    let position = match kind(file) {
        Some(Kind::TensorFile(position)) => Some(position),
        _ => None,
    };
    let name = name.unwrap_or_else(|| file.into());
    Ok(Array {
        name,
        named,
        position,
        stored: type_name(element),
        tensor,
    })
}

/// The values, from the raw bytes or from the field ONNX keeps that type in.
fn values(proto: &TensorProto, element: DataType) -> Option<Values> {
    let raw = proto.raw_data.as_deref();
    macro_rules! read {
        ($kind:ident, $type:ty, $field:ident) => {
            Values::$kind(match raw {
                Some(raw) => raw
                    .as_chunks()
                    .0
                    .iter()
                    .map(|b| <$type>::from_le_bytes(*b))
                    .collect(),
                None => proto.$field.iter().map(|&v| v as $type).collect(),
            })
        };
    }
    Some(match element {
        DataType::Float => read!(F32, f32, float_data),
        DataType::Double => read!(F64, f64, double_data),
        DataType::Int8 => read!(I8, i8, int32_data),
        DataType::Int16 => read!(I16, i16, int32_data),
        DataType::Int32 => read!(I32, i32, int32_data),
        DataType::Int64 => read!(I64, i64, int64_data),
        DataType::Uint8 => read!(U8, u8, int32_data),
        DataType::Uint16 => read!(U16, u16, int32_data),
        DataType::Uint32 => read!(U32, u32, uint64_data),
        DataType::Uint64 => read!(U64, u64, uint64_data),
        DataType::Bool => Values::Bool(match raw {
            Some(raw) => raw.iter().map(|&b| b != 0).collect(),
            None => proto.int32_data.iter().map(|&v| v != 0).collect(),
        }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proto(data_type: DataType, dims: &[i64]) -> TensorProto {
        TensorProto {
            data_type: Some(data_type as i32),
            dims: dims.to_vec(),
            ..Default::default()
        }
    }

    #[test]
    fn values_are_read_raw_and_from_their_field() {
        let raw = TensorProto {
            raw_data: Some(
                [1f32, -2.0]
                    .iter()
                    .flat_map(|v| v.to_le_bytes())
                    .collect::<Vec<_>>()
                    .into(),
            ),
            name: Some("x".into()),
            ..proto(DataType::Float, &[1, 2])
        };
        let field = TensorProto {
            float_data: vec![1.0, -2.0],
            ..proto(DataType::Float, &[1, 2])
        };
        let (a, b) = (
            read("input_0.pb", &raw.encode_to_vec()).unwrap(),
            read("input_1.pb", &field.encode_to_vec()).unwrap(),
        );
        assert_eq!(a.tensor, b.tensor);
        assert_eq!(
            (a.named, a.position, b.named, b.position),
            (true, Some(0), false, Some(1))
        );
        let small = TensorProto {
            int32_data: vec![-3, 4],
            ..proto(DataType::Int8, &[2])
        };
        assert_eq!(
            read("input_0.pb", &small.encode_to_vec())
                .unwrap()
                .tensor
                .values(),
            &Values::I8(vec![-3, 4])
        );
    }

    #[test]
    fn what_is_no_tensor_is_an_error() {
        for (bytes, word) in [
            (vec![], "empty"),
            (b"<!DOCTYPE html>".to_vec(), "no tensor"),
            (
                proto(DataType::Float, &[3]).encode_to_vec(),
                "holds 0 values",
            ),
            (proto(DataType::String, &[0]).encode_to_vec(), "string"),
            (proto(DataType::Float, &[-1]).encode_to_vec(), "negative"),
        ] {
            let said = read("input_0.pb", &bytes).unwrap_err().to_string();
            assert!(said.contains(word), "{said}");
        }
    }
}
