//! Tables and sound as samples.

use std::fs;

use octet::graph::{Dim, TensorType};
use octet::onnx::schema::{
    DataType, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto,
};

use super::{folder, good, refused, save};

/// A dense layer over one input of this shape.
fn dense(name: &str, sizes: &[usize]) -> ModelProto {
    let info = |name: &str, last: usize| {
        let mut shape = vec![Dim::Known(1)];
        shape.extend(
            sizes[1..sizes.len() - 1]
                .iter()
                .map(|&size| Dim::Known(size)),
        );
        shape.push(Dim::Known(last));
        let (element, shape) = (DataType::Float, Some(shape));
        ValueInfoProto::new(name, &TensorType { element, shape })
    };
    let width = sizes[sizes.len() - 1];
    let values: Vec<f32> = (0..width * 2)
        .map(|i| ((i * 7) % 23) as f32 / 8.0 - 1.4)
        .collect();
    let graph = GraphProto {
        name: Some("g".into()),
        node: vec![NodeProto::new("MatMul", "dense", &[name, "w"], &["y"])],
        input: vec![info(name, width)],
        output: vec![info("y", 2)],
        initializer: vec![TensorProto::from_f32("w", &[width, 2], &values)],
        ..Default::default()
    };
    ModelProto::from_graph(graph, 17)
}

/// A WAV file of 16 bits with this many values.
fn wav(rate: u32, count: u32) -> Vec<u8> {
    let mut file = Vec::from(*b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(rate.to_le_bytes());
    file.extend((2 * rate).to_le_bytes());
    file.extend([2, 0, 16, 0]);
    file.extend(b"data");
    file.extend((2 * count).to_le_bytes());
    file.extend((0..count).flat_map(|at| ((at * 37 % 2000) as i16).to_le_bytes()));
    file
}

#[test]
fn each_row_of_a_table_is_a_sample() {
    let folder = folder("rows");
    save(&folder, "m.onnx", &dense("x", &[1, 3]));
    let table = "id,a,b,c,label\n1,2,3,4,yes\n2,5,6,7,no\n3,8,,9,no\n";
    fs::write(folder.join("t.csv"), table).unwrap();
    let (_, said) = good(&folder, &["quantize", "m.onnx", "--samples", "t.csv"]);
    let words = "1 of 3 samples were left out: t.csv:4";
    assert!(said.contains(words), "{said}");
    assert!(folder.join("m_int8.onnx").exists());
    let (printed, _) = good(&folder, &["inspect", "m.onnx"]);
    let words = "task: table (the input \"x\" is a row of numbers)";
    assert!(printed.contains(words), "{printed}");
    save(&folder, "n.onnx", &dense("x", &[1, 7]));
    let narrow = ["quantize", "n.onnx", "--samples", "t.csv"];
    refused(&folder, &narrow, &["takes 7 columns", "a, b, c"]);
}

#[test]
fn a_recording_is_a_sample_at_the_rate_of_the_model() {
    let folder = folder("sound");
    save(&folder, "m_8k.onnx", &dense("audio", &[1, 512]));
    fs::write(folder.join("a.wav"), wav(16_000, 2000)).unwrap();
    let named = [
        "quantize",
        "m_8k.onnx",
        "--samples",
        "a.wav",
        "--report",
        "r.yaml",
    ];
    good(&folder, &named);
    let report = fs::read_to_string(folder.join("r.yaml")).unwrap();
    assert!(report.contains("rate: 8000"), "{report}");
    let first = fs::read(folder.join("m_8k_int8.onnx")).unwrap();
    let given = [
        &named[..4],
        &["--sample-rate", "16000", "--out", "other.onnx"],
    ]
    .concat();
    good(&folder, &given);
    assert_ne!(first, fs::read(folder.join("other.onnx")).unwrap());
    save(&folder, "n.onnx", &dense("x", &[1, 3]));
    let deaf = ["quantize", "n.onnx", "--samples", "a.wav"];
    refused(&folder, &deaf, &["no input for a waveform", "spectrogram"]);
}
