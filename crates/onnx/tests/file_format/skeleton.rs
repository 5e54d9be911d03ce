//! Skeletons of model files: everything but the bytes of large tensors.

use bytes::Bytes;
use octet_onnx::schema::*;
use octet_onnx::skeleton::{SkeletonReader, WINDOW};
use octet_onnx::{ReadError, ScanError, stretch_of};
use prost::Message;

/// Feeds a file in portions of at most `portion` bytes.
fn skeleton(file: &[u8], portion: usize) -> Result<(ModelProto, usize), ReadError> {
    let mut reader = SkeletonReader::new("model.onnx", file.len() as u64);
    let mut fed = 0;
    while let Some((offset, length)) = reader.next() {
        let length = length.min(portion);
        fed += length;
        reader.feed(&file[offset as usize..][..length])?;
    }
    Ok((reader.finish()?, fed))
}

fn large(name: &str, count: usize) -> TensorProto {
    let values: Vec<f32> = (0..count).map(|at| at as f32).collect();
    TensorProto::from_f32(name, &[count], &values)
}

/// A model with large tensors as initializer, attribute, typed data and inside a subgraph.
fn model() -> ModelProto {
    let typed = TensorProto {
        float_data: vec![0.5; 20_000],
        ..TensorProto {
            raw_data: None,
            ..large("typed", 20_000)
        }
    };
    let inner = GraphProto {
        initializer: vec![large("inner", 17_000)],
        ..GraphProto::default()
    };
    let constant = NodeProto::new("Constant", "c", &[], &["c"])
        .with(AttributeProto::tensor("value", large("", 16_384)));
    let branch = NodeProto::new("If", "if", &["b"], &["i"]).with(AttributeProto {
        g: Some(inner),
        ..AttributeProto::int("then_branch", 0)
    });
    let graph = GraphProto {
        name: Some("g".repeat(300)),
        node: vec![constant, branch],
        initializer: vec![
            large("w", 30_000),
            large("small", 10),
            typed,
            large("v", 40_000),
        ],
        doc_string: Some("words ".repeat(30_000)),
        ..GraphProto::default()
    };
    ModelProto::from_graph(graph, 17)
}

/// Puts the data of external tensors back.
fn attached(mut model: ModelProto, file: &Bytes) -> ModelProto {
    let files = [("model.onnx".to_owned(), file.clone())].into();
    octet_onnx::external::attach(&mut model, &files).unwrap();
    model
}

#[test]
fn a_skeleton_with_its_data_is_the_model_for_every_portion() {
    let mut model = model();
    let file = Bytes::from(model.encode_to_vec());
    // Packed float_data has the bytes of raw_data.
    let graph = model.graph.as_mut().unwrap();
    let raw = graph.initializer[2].float_data.drain(..);
    graph.initializer[2].raw_data = Some(raw.flat_map(f32::to_le_bytes).collect());
    for portion in [1, 7, 4096, WINDOW] {
        let (skeleton, fed) = skeleton(&file, portion).unwrap();
        assert!(
            skeleton.encoded_len() < 200_000,
            "{}",
            skeleton.encoded_len()
        );
        if portion <= 4096 {
            assert!(fed < 220_000, "{fed} bytes were read");
        }
        assert_eq!(attached(skeleton, &file), model, "portions of {portion}");
    }
}

#[test]
fn a_large_tensor_is_found_at_its_offset() {
    let file = model().encode_to_vec();
    let (model, _) = skeleton(&file, 1000).unwrap();
    let tensor = &model.graph.unwrap().initializer[3];
    let stretch = stretch_of(tensor).unwrap().unwrap();
    assert_eq!(
        (stretch.file.as_str(), stretch.length),
        ("model.onnx", 160_000)
    );
    let data = &file[stretch.offset as usize..stretch.end() as usize];
    assert_eq!(data[4 * 39_999..], 39_999f32.to_le_bytes());
}

#[test]
fn a_cut_or_damaged_file_is_an_error() {
    let file = model().encode_to_vec();
    for length in [file.len() - 1, file.len() / 2, 3] {
        let error = skeleton(&file[..length], 4096).unwrap_err();
        let whole = octet_onnx::read(Bytes::copy_from_slice(&file[..length])).unwrap_err();
        assert_eq!(error.to_string(), whole.to_string(), "{length} bytes");
    }
    for at in (0..2000).step_by(3) {
        let mut damaged = file.clone();
        damaged[at] ^= 0x55;
        if let Ok((model, _)) = skeleton(&damaged, 4096) {
            assert!(model.graph.is_some());
        }
    }
    assert_eq!(skeleton(&[], 10).unwrap_err(), ReadError::Empty);
    let picture = skeleton(b"\x89PNG\r\n", 10).unwrap_err();
    assert!(picture.to_string().contains("a PNG picture"), "{picture}");
}

#[test]
fn two_pieces_of_data_in_one_tensor_are_refused() {
    let tensor = TensorProto {
        float_data: vec![1.0; 20_000],
        ..large("w", 20_000)
    };
    let graph = GraphProto {
        initializer: vec![tensor],
        ..GraphProto::default()
    };
    let file = ModelProto::from_graph(graph, 17).encode_to_vec();
    let error = skeleton(&file, 4096).unwrap_err();
    assert!(
        matches!(error, ReadError::Scan(ScanError::Malformed { .. })),
        "{error}"
    );
}
