//! The ONNX file format: models are read and written without loss, and unreadable files are refused
//! with the reason.
#![allow(clippy::unwrap_used, missing_docs)]

mod every_field;
mod skeleton;

use std::collections::BTreeMap;

use bytes::Bytes;
use every_field::every_field;
use octet_onnx::schema::*;
use octet_onnx::{ReadError, ScanError, external, pieces, read, write};

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn entry(key: &str, value: &str) -> StringStringEntryProto {
    StringStringEntryProto {
        key: some(key),
        value: some(value),
    }
}

fn external_tensor(entries: &[(&str, &str)]) -> TensorProto {
    TensorProto {
        name: some("w"),
        dims: vec![2],
        data_type: Some(DataType::Float as i32),
        external_data: entries.iter().map(|(k, v)| entry(k, v)).collect(),
        data_location: Some(DataLocation::External as i32),
        ..TensorProto::default()
    }
}

fn model(graph: GraphProto) -> ModelProto {
    ModelProto {
        ir_version: Some(8),
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto {
            domain: some(""),
            version: Some(13),
        }],
        ..ModelProto::default()
    }
}

fn with_tensor(tensor: TensorProto) -> ModelProto {
    model(GraphProto {
        initializer: vec![tensor],
        ..GraphProto::default()
    })
}

#[test]
fn written_models_read_back_equal_in_every_field() {
    let model = every_field();
    let file = write(&model).unwrap();
    let again = read(file.clone().into()).unwrap();
    assert_eq!(again, model);
    assert_eq!(write(&again).unwrap(), file);
}

#[test]
fn tensors_share_the_memory_of_the_file() {
    let tensor = TensorProto::from_f32("w", &[100], &[1.0; 100]);
    let file = Bytes::from(write(&with_tensor(tensor)).unwrap());
    let model = read(file.clone()).unwrap();
    let raw = model.graph.unwrap().initializer[0]
        .raw_data
        .clone()
        .unwrap();
    let memory = file.as_ptr_range();
    assert!(memory.contains(&raw.as_ptr()) && raw.len() == 400);
}

#[test]
fn pieces_form_the_file_and_share_its_tensors() {
    let mut model = every_field();
    let graph = model.graph.as_mut().unwrap();
    let sizes = [1, 1023, 1024, 5000];
    let large = sizes.map(|size| TensorProto::from_f32("w", &[size], &vec![1.5; size]));
    graph.initializer.extend(large.clone());
    let pieces = pieces(&model).unwrap();
    let file = write(&model).unwrap();
    assert_eq!(pieces.as_slice().concat(), file);
    assert_eq!(pieces.bytes(), file.len());
    // Only the last two are long enough for a piece of their own.
    let shared = large.map(|tensor| tensor.raw_data.unwrap().as_ptr());
    let found = pieces.as_slice().iter().map(|piece| piece.as_ptr());
    let found: Vec<_> = found.filter(|piece| shared.contains(piece)).collect();
    assert_eq!(found, shared[2..]);
}

#[test]
fn other_files_are_refused_by_their_format() {
    let file = write(&every_field()).unwrap();
    assert_eq!(read(Bytes::new()), Err(ReadError::Empty));
    for (bytes, says) in [
        (&b"<!DOCTYPE html><html>"[..], "web page"),
        (b"\n  <html>", "web page"),
        (b"PK\x03\x04....", "zip"),
        (
            b"version https://git-lfs.github.com/spec/v1",
            "git lfs pull",
        ),
        (b"{\"a\": 1}", "JSON"),
        (b"\x08\x08", "no graph"),
        (
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            "damaged",
        ),
    ] {
        let error = read(Bytes::copy_from_slice(bytes)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    // A truncated model is never accepted, wherever it is cut.
    for length in (1..file.len()).step_by(7) {
        if let Ok(cut) = read(Bytes::copy_from_slice(&file[..length])) {
            // A cut between two fields of the outermost message shows only by the missing fields.
            assert!(cut.graph.is_some() && !cut.opset_import.is_empty());
        }
    }
    let whole = write(&with_tensor(TensorProto::from_f32(
        "w",
        &[100],
        &[1.0; 100],
    )))
    .unwrap();
    let error = read(Bytes::copy_from_slice(&whole[..200])).unwrap_err();
    assert!(
        matches!(
            error,
            ReadError::Scan(ScanError::Truncated { bytes: 200, .. })
        ),
        "{error}"
    );
}

#[test]
fn models_of_later_versions_are_refused() {
    let mut model = every_field();
    model.ir_version = Some(NEWEST_IR_VERSION + 1);
    let error = read(write(&model).unwrap().into()).unwrap_err();
    assert_eq!(
        error,
        ReadError::TooNew {
            version: NEWEST_IR_VERSION + 1
        }
    );
}

#[test]
fn nesting_is_limited_before_the_stack_overflows() {
    let mut graph = GraphProto::default();
    for _ in 0..40 {
        let attribute = AttributeProto {
            g: Some(graph),
            ..AttributeProto::default()
        };
        let node = NodeProto {
            attribute: vec![attribute],
            ..NodeProto::default()
        };
        graph = GraphProto {
            node: vec![node],
            ..GraphProto::default()
        };
    }
    let error = read(write(&model(graph)).unwrap().into()).unwrap_err();
    assert!(
        matches!(error, ReadError::Scan(ScanError::TooDeep { .. })),
        "{error}"
    );
}

#[test]
fn tensors_must_match_their_shape() {
    for (given, dims) in [
        (12, vec![2]),
        (4, vec![2]),
        (8, vec![-2]),
        (8, vec![i64::MAX, 4]),
    ] {
        let mut tensor = TensorProto::from_raw("w", DataType::Float, &[], vec![0; given].into());
        tensor.dims = dims;
        let error = read(write(&with_tensor(tensor)).unwrap().into()).unwrap_err();
        assert!(matches!(error, ReadError::Tensor(_)) && error.to_string().contains("tensor w"));
    }
}

#[test]
fn external_tensors_become_slices_of_their_file() {
    let entries = [
        ("location", "sub/weights.bin"),
        ("offset", "4"),
        ("length", "8"),
    ];
    let mut model = with_tensor(external_tensor(&entries));
    assert_eq!(external::files(&model), ["sub/weights.bin"]);
    let file: Bytes = [0f32, 1.0, 2.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect::<Vec<_>>()
        .into();
    let error = external::attach(&mut model, &BTreeMap::new()).unwrap_err();
    assert!(error.to_string().contains("sub/weights.bin"), "{error}");
    // A page knows a file by the last component of its path only.
    external::attach(
        &mut model,
        &BTreeMap::from([("weights.bin".to_owned(), file.clone())]),
    )
    .unwrap();
    let tensor = &model.graph.as_ref().unwrap().initializer[0];
    assert_eq!(tensor.to_f32().unwrap(), [1.0, 2.0]);
    assert_eq!(
        tensor.raw_data.as_ref().unwrap().as_ptr(),
        file[4..].as_ptr()
    );
    assert!(external::files(&model).is_empty());
}

#[test]
fn invalid_external_data_is_refused() {
    let file = Bytes::from(vec![0; 8]);
    for (entries, says) in [
        (vec![("location", "../secret")], "outside"),
        (vec![("location", "/etc/passwd")], "outside"),
        (vec![("location", "w"), ("offset", "4")], "cut short"),
        (vec![("location", "w"), ("length", "4")], "require 8"),
        (vec![("location", "w"), ("offset", "-1")], "not a number"),
        (vec![("offset", "0")], "does not name it"),
    ] {
        let mut model = with_tensor(external_tensor(&entries));
        let given = entries.iter().filter(|e| e.0 == "location");
        let given = given.map(|e| (e.1.to_owned(), file.clone())).collect();
        let error = external::attach(&mut model, &given)
            .unwrap_err()
            .to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn values_are_equal_from_every_field() {
    let half = |bits: &[u16]| {
        let raw: Vec<u8> = bits.iter().flat_map(|b| b.to_le_bytes()).collect();
        TensorProto::from_raw("h", DataType::Float16, &[bits.len()], raw.into())
            .to_f32()
            .unwrap()
    };
    assert_eq!(
        half(&[0x3c00, 0xc000, 0x0001, 0x7bff]),
        [1.0, -2.0, 5.960_464_5e-8, 65504.0]
    );
    assert!(half(&[0x7e00])[0].is_nan() && half(&[0xfc00])[0] == f32::NEG_INFINITY);
    let packed = TensorProto {
        dims: vec![2],
        data_type: Some(DataType::Int8 as i32),
        int32_data: vec![-1, 5],
        ..TensorProto::default()
    };
    assert_eq!(
        packed.to_i64().unwrap(),
        TensorProto::from_i8("", &[2], &[-1, 5]).to_i64().unwrap()
    );
    let tensor = packed.to_tensor().unwrap();
    assert_eq!(
        TensorProto::from_tensor("t", &tensor).to_tensor().unwrap(),
        tensor
    );
}
