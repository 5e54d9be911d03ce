//! A check of this build on this machine: a small model must become known bytes.
//!
//! The sums of the model are exact in any order, and the integer kernels are exact, too. So every
//! build, instruction set and number of threads must give the same file and the same outputs.

use bytes::Bytes;
use octet_kernels::int8::Isa;
use serde::Serialize;

use super::{Checksum, Error, ModelFile, Session};
use crate::graph::{Dim, TensorType};
use crate::onnx::schema::{
    AttributeProto, DataType, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto,
};
use crate::samples::{Encoded, SampleSettings};
use crate::stats::Method;
use crate::tensor::Values;
use crate::{onnx, quantize};

/// SHA-256 of the quantized model with default settings, calibrated on samples 0 to 4.
pub const QUANTIZED: &str = "d352e6d52ab55e8a154bae144ab3559945903214e6f052d1cbf6666be5389e88";

/// SHA-256 of the output of the quantized model for sample 0.
pub const OUTPUTS: &str = "f36fed3f991839fa4777def9e8636580ae9647d76c13f0a3b1c87a8b04c4fcbd";

/// Number of samples of the calibration.
const SAMPLES: u32 = 5;

/// The result of a check.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SelfCheck {
    /// True if everything is as known.
    pub passed: bool,
    /// SHA-256 of the quantized model.
    pub model: String,
    /// SHA-256 of its outputs.
    pub outputs: String,
    /// The integer kernels that ran, the fastest of this machine.
    pub kernels: &'static str,
    /// All integer kernels that can run here.
    pub available: Vec<&'static str>,
}

/// Quantizes the model, and runs the result.
pub fn self_check() -> Result<SelfCheck, Error> {
    let file = ModelFile::new("self-check", quantized(&[SAMPLES])?.into());
    let model = file.sha256.clone();
    let session = Session::open(file)?;
    let inputs = session.decode(&sample(0), &SampleSettings::default())?;
    let mut outputs = Checksum::new();
    for (_, tensor) in session.runner()?.run(inputs, &())? {
        if let Values::F32(values) = tensor.values() {
            let bytes: Vec<u8> = values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
            outputs.add(&bytes);
        }
    }
    let outputs = outputs.finish();
    Ok(SelfCheck {
        passed: model == QUANTIZED && outputs == OUTPUTS,
        model,
        outputs,
        kernels: Isa::best().name(),
        available: Isa::available().into_iter().map(Isa::name).collect(),
    })
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

fn port(name: &str, shape: &[usize]) -> ValueInfoProto {
    let declared = TensorType {
        element: DataType::Float,
        shape: Some(shape.iter().map(|&size| Dim::Known(size)).collect()),
    };
    ValueInfoProto::new(name, &declared)
}

/// image → conv → relu → conv, added to the relu → scores.
pub fn model() -> Result<Vec<u8>, Error> {
    let node = NodeProto::new;
    let pads = || AttributeProto::ints("pads", &[1, 1, 1, 1]);
    let stem = ["image", "stem.weight", "stem.bias"];
    let graph = GraphProto {
        name: Some("recorded".into()),
        node: vec![
            node("Conv", "stem", &stem, &["stem.out"]).with(pads()),
            node("Relu", "relu", &["stem.out"], &["relu.out"]),
            node(
                "Conv",
                "block",
                &["relu.out", "block.weight"],
                &["block.out"],
            )
            .with(pads()),
            node("Add", "join", &["block.out", "relu.out"], &["scores"]),
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
        producer_name: Some("recorded".into()),
        ..ModelProto::from_graph(graph, 17)
    };
    Ok(onnx::write(&model)?)
}

/// A sample as a `.npy` file.
fn sample(index: u32) -> Encoded {
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
    let name = format!("{index}.npy");
    Encoded {
        parts: vec![(name.clone(), Bytes::from(file))],
        name,
    }
}

/// The quantized model after a calibration on five samples, fed in portions of these sizes.
pub fn quantized(portions: &[u32]) -> Result<Vec<u8>, Error> {
    let mut session = Session::open(ModelFile::new("recorded.onnx", model()?.into()))?;
    session.begin_calibration(SampleSettings::default())?;
    let mut next = 0;
    for size in portions {
        session.feed((next..next + size).map(sample).collect(), &())?;
        next += size;
    }
    session.finish_calibration(Method::MinMax)?;
    let outcome = session.quantize(&quantize::Settings::default())?;
    Ok(outcome.model.as_slice().concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_build_gives_the_known_bytes_and_outputs() {
        let check = self_check().unwrap();
        assert!(check.passed, "{check:?}");
    }

    #[test]
    fn other_samples_give_other_bytes() {
        let bytes = quantized(&[1]).unwrap();
        assert_ne!(ModelFile::new("", bytes.into()).sha256, QUANTIZED);
    }
}
