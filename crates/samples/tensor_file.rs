//! `input_K.pb` files of an ONNX test data set: one `TensorProto` each.

use bytes::Bytes;
use prost::Message;

use super::group::{FileKind, kind};
use super::{Array, LARGEST_ARRAY, SampleProblem};
use octet_onnx::schema::TensorProto;
use octet_onnx::tensor::TensorError;

const AGAIN: &str = "save it again with onnx.numpy_helper.from_array";

/// Reads a tensor file. The file name gives its position among the inputs; the message may contain
/// the input's name.
pub(super) fn read(file: &str, bytes: &Bytes) -> Result<Array, SampleProblem> {
    let broken = |why: String| SampleProblem::broken(file, why, AGAIN);
    if bytes.is_empty() {
        return Err(broken("it is empty".into()));
    }
    // The values share the file's memory.
    let proto = TensorProto::decode(bytes.clone())
        .map_err(|e| broken(format!("it is not a tensor ({e})")))?;
    if bytes.len() as u64 > LARGEST_ARRAY {
        let bytes = bytes.len() as u64;
        return Err(SampleProblem::TooLarge {
            array: file.into(),
            bytes,
            limit: LARGEST_ARRAY,
        });
    }
    let damaged = |e: TensorError| broken(e.to_string());
    let stored = proto.element().map_err(damaged)?;
    let tensor = proto.to_tensor().map_err(damaged)?;
    let name = proto.name.filter(|n| !n.is_empty());
    let named = name.is_some();
    let position = match kind(file) {
        Some(FileKind::TensorFile(position)) => Some(position),
        _ => None,
    };
    let name = name.unwrap_or_else(|| file.into());
    Ok(Array {
        name,
        named,
        position,
        stored,
        tensor,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use octet_onnx::in_memory::Values;
    use octet_onnx::schema::DataType;

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
            read("input_0.pb", &raw.encode_to_vec().into()).unwrap(),
            read("input_1.pb", &field.encode_to_vec().into()).unwrap(),
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
            read("input_0.pb", &small.encode_to_vec().into())
                .unwrap()
                .tensor
                .values(),
            &Values::I8(vec![-3, 4])
        );
    }

    #[test]
    fn files_without_a_tensor_are_errors() {
        for (bytes, word) in [
            (vec![], "empty"),
            (b"<!DOCTYPE html>".to_vec(), "not a tensor"),
            (proto(DataType::Float, &[3]).encode_to_vec(), "holds 0"),
            (proto(DataType::String, &[0]).encode_to_vec(), "String"),
            (
                proto(DataType::Float, &[-1]).encode_to_vec(),
                "impossible shape",
            ),
        ] {
            let message = read("input_0.pb", &bytes.into()).unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        }
    }
}
