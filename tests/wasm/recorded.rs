//! A small model with arithmetic that is exact in any order, so that every build and thread count
//! must give the same bytes. `tests/recorded.rs` checks the native build against the same
//! constants.

use bytes::Bytes;
use octet::onnx::schema::{
    AttributeProto, AttributeType, DataType, Dimension, DimensionValue, GraphProto, ModelProto,
    NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto,
    TypeValue, ValueInfoProto,
};
use octet::samples::{self, Encoded};
use octet::session::{ModelFile, Session};
use octet::stats::{Method, TensorStatistics};
use octet::{onnx, quantize};

/// sha256 of the model's file.
pub const FILE: &str = "231938ce3f6cc1d69436dc3f1f16ae6a6bf2a19ff810511e33f429ba8a5092d5";
/// sha256 of the quantized model with default settings, calibrated on samples 0 to 4.
pub const QUANTIZED: &str = "d352e6d52ab55e8a154bae144ab3559945903214e6f052d1cbf6666be5389e88";
/// sha256 of the histogram of `numbers(4096, 7)`.
pub const HISTOGRAM: &str = "7f0d9382afa3eed9284b6fa0e06c8d2fe3b3cb3ab1f20f38ba6b63911f052a31";

/// Checks that the quantized model is the recorded one for any batching of the samples.
pub fn check_quantized() {
    for portions in [&[5][..], &[1, 1, 1, 1, 1], &[2, 3]] {
        assert_eq!(sha256(&quantized(portions)), QUANTIZED, "{portions:?}");
    }
}

/// Small multiples of 1/8, of both signs: sums of their products are exact in `f32`.
pub fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 24) as i32 - 128) as f32 / 8.0
        })
        .collect()
}

fn port(name: &str, shape: &[i64]) -> ValueInfoProto {
    let dim = shape
        .iter()
        .map(|&size| Dimension {
            value: Some(DimensionValue::DimValue(size)),
            ..Dimension::default()
        })
        .collect();
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto {
            value: Some(TypeValue::TensorType(TensorTypeProto {
                elem_type: Some(DataType::Float as i32),
                shape: Some(TensorShapeProto { dim }),
            })),
            ..TypeProto::default()
        }),
        ..ValueInfoProto::default()
    }
}

fn node(operator: &str, name: &str, input: &[&str], output: &str) -> NodeProto {
    NodeProto {
        op_type: Some(operator.into()),
        name: Some(name.into()),
        input: input.iter().map(ToString::to_string).collect(),
        output: vec![output.into()],
        ..NodeProto::default()
    }
}

fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        r#type: Some(AttributeType::Ints as i32),
        ints: ints.to_vec(),
        ..AttributeProto::default()
    }
}

/// image → conv → relu → conv, added to the relu → scores.
pub fn model() -> Vec<u8> {
    let mut first = node(
        "Conv",
        "stem",
        &["image", "stem.weight", "stem.bias"],
        "stem.out",
    );
    first.attribute = vec![ints("pads", &[1, 1, 1, 1])];
    let mut second = node("Conv", "block", &["relu.out", "block.weight"], "block.out");
    second.attribute = vec![ints("pads", &[1, 1, 1, 1])];
    let graph = GraphProto {
        name: Some("recorded".into()),
        node: vec![
            first,
            node("Relu", "relu", &["stem.out"], "relu.out"),
            second,
            node("Add", "join", &["block.out", "relu.out"], "scores"),
        ],
        input: vec![port("image", &[1, 2, 6, 6])],
        output: vec![port("scores", &[1, 4, 6, 6])],
        initializer: vec![
            TensorProto::from_f32("stem.weight", &[4, 2, 3, 3], &numbers(72, 1)),
            TensorProto::from_f32("stem.bias", &[4], &numbers(4, 2)),
            TensorProto::from_f32("block.weight", &[4, 4, 3, 3], &numbers(144, 3)),
        ],
        ..GraphProto::default()
    };
    let model = ModelProto {
        ir_version: Some(8),
        producer_name: Some("recorded".into()),
        opset_import: vec![OperatorSetIdProto {
            version: Some(17),
            ..OperatorSetIdProto::default()
        }],
        graph: Some(graph),
        ..ModelProto::default()
    };
    onnx::write(&model).expect("a small model can be written")
}

/// Sample `index` as a `.npy` file.
pub fn sample(index: u32) -> Bytes {
    let mut header =
        String::from("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 6, 6), }");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    for number in numbers(72, 100 + index) {
        file.extend(number.to_le_bytes());
    }
    file.into()
}

/// The quantized model after calibration on five samples, fed in these batches.
pub fn quantized(portions: &[usize]) -> Vec<u8> {
    let mut session =
        Session::open(ModelFile::new("recorded.onnx", model().into())).expect("our own file opens");
    session
        .begin_calibration(samples::SampleSettings::default())
        .expect("it can be calibrated");
    let mut index = 0;
    for &size in portions {
        let portion: Vec<Encoded> = (0..size)
            .map(|_| {
                let name = format!("{index}.npy");
                let file = sample(index);
                index += 1;
                Encoded {
                    name: name.clone(),
                    parts: vec![(name, file)],
                }
            })
            .collect();
        session.feed(portion, &()).expect("the samples fit");
    }
    session
        .finish_calibration(Method::MinMax)
        .expect("there were samples");
    session
        .quantize(&quantize::Settings::default())
        .expect("it can be quantized")
        .model
        .as_slice()
        .concat()
}

/// A histogram's bins as (from, to, count), eight bytes each.
pub fn histogram_bytes(seen: &TensorStatistics) -> Vec<u8> {
    seen.histogram()
        .bins()
        .flat_map(|(from, to, count)| [from.to_bits(), to.to_bits(), count])
        .flat_map(u64::to_le_bytes)
        .collect()
}

/// Lower-case hexadecimal sha256.
pub fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
