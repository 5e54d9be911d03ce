//! Samples: the first byte is the kind of the file, the second that of the model's inputs.

use bytes::Bytes;
use octet_graph::Dim;
use octet_onnx::schema::DataType;
use octet_samples::{Encoded, FileStart, InputSpec, SampleSettings, bytes_to_check};

/// File names of each kind.
pub const FILES: [&str; 6] = [
    "s.npy",
    "s.npz",
    "s/input_0.pb",
    "s.png",
    "s.jpg",
    "s.tokens",
];

/// Inputs of a vision model, of a text model, and of one that leaves its shape open.
fn inputs(kind: u8) -> Vec<InputSpec> {
    let known = |sizes: &[usize]| sizes.iter().map(|&size| Dim::Known(size)).collect();
    let input = |name: &str, element, shape| InputSpec {
        name: name.into(),
        element,
        shape,
    };
    match kind % 3 {
        0 => vec![input("x", DataType::Float, known(&[1, 3, 8, 8]))],
        1 => ["input_ids", "attention_mask"]
            .map(|name| input(name, DataType::Int64, vec![Dim::Known(1), Dim::Unknown]))
            .into(),
        _ => vec![input("x", DataType::Uint8, vec![Dim::Unknown; 4])],
    }
}

/// Decodes a sample. A check before the run may not refuse what the run takes.
pub fn run(bytes: &[u8]) {
    let [kind, model, file @ ..] = bytes else {
        return;
    };
    let path = FILES[usize::from(*kind) % FILES.len()];
    let (inputs, settings) = (inputs(*model), SampleSettings::default());
    let content = Bytes::copy_from_slice(file);
    let start = FileStart {
        path: path.into(),
        beginning: content.slice(..bytes_to_check(path, file.len() as u64) as usize),
        size: file.len() as u64,
    };
    let sample = Encoded {
        name: "s".into(),
        parts: vec![(path.into(), content)],
    };
    let checked = octet_samples::check("s", &[start], &inputs, &settings);
    let decoded = octet_samples::decode_with_notes(&sample, &inputs, &settings);
    let Ok(decoded) = decoded else { return };
    if let Err(error) = checked {
        panic!("the run takes a sample that the check refuses: {error}");
    }
    assert_eq!(decoded.tensors.len(), inputs.len());
    for (tensor, input) in decoded.tensors.iter().zip(&inputs) {
        assert_eq!(tensor.shape().len(), input.shape.len());
    }
    assert_eq!(decoded.previews(&inputs).len(), inputs.len());
}
