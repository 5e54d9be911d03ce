//! Models: the reader, the preparation, the quantizer without samples, the compiler of integers.

use std::collections::BTreeMap;

use bytes::Bytes;
use octet_graph::prepare::{self as preparation, infer, infer_from};
use octet_graph::validate::validate;
use octet_graph::{Dim, Model, TensorType};
use octet_int8::{FloatEvaluator, Processor, Scope};
use octet_onnx::ReadError;
use octet_onnx::in_memory::Tensor;
use octet_onnx::schema::{ModelProto, ValueInfoProto};
use octet_onnx::skeleton::SkeletonReader;
use octet_quantize::Settings;
use serde_json::json;

/// Elements of a value up to which a model is compiled. A larger one takes longer and shows no more.
const LARGEST_VALUE: usize = 1 << 20;

/// Reads a file in both ways, and writes what was read.
pub fn file(bytes: &[u8]) {
    let whole = octet_onnx::read(Bytes::copy_from_slice(bytes));
    let in_pieces = skeleton(bytes);
    let Ok(model) = whole else { return };
    if let Err(error) = in_pieces {
        panic!("the file is read whole, but not in pieces: {error}");
    }
    // Compared as bytes, because no NaN equals itself.
    let again = octet_onnx::write(&written(&model)).unwrap();
    assert!(
        octet_onnx::write(&model).unwrap() == again,
        "written differently"
    );
    if let Ok(model) = Model::from_proto(model) {
        let _ = validate(&model, &infer(&model.graph), false);
    }
}

/// The model that is read from its own file.
fn written(model: &ModelProto) -> ModelProto {
    let file = octet_onnx::write(model).unwrap();
    octet_onnx::read(file.into()).unwrap()
}

/// The model without the bytes of its large constants.
pub fn skeleton(bytes: &[u8]) -> Result<ModelProto, ReadError> {
    let mut reader = SkeletonReader::new("model.onnx", bytes.len() as u64);
    while let Some((offset, length)) = reader.next() {
        reader.feed(&bytes[offset as usize..][..length])?;
    }
    reader.finish()
}

/// Runs the passes of the preparation.
pub fn prepare(bytes: &[u8]) {
    prepared(bytes);
}

fn prepared(bytes: &[u8]) -> Option<Model> {
    let model = octet_onnx::read(Bytes::copy_from_slice(bytes)).ok()?;
    let model = Model::from_proto(model).ok()?;
    let prepared = preparation::prepare(model).ok()?.model;
    validate(&prepared, &infer(&prepared.graph), true).ok()?;
    written(&prepared.to_proto());
    Some(prepared)
}

/// Quantizes by the schemes that need no samples.
pub fn quantize(bytes: &[u8]) {
    let Some(model) = prepared(bytes) else { return };
    for settings in [
        json!({ "scheme": "weights" }),
        json!({ "scheme": "dynamic" }),
        json!({ "scheme": "blocks", "blocks": { "size": 16 } }),
        json!({ "scheme": "float16" }),
    ] {
        let settings = Settings::from_value(settings).unwrap();
        if let Ok(quantized) = octet_quantize::apply(&model, &settings, None) {
            Model::from_proto(written(&quantized.model.to_proto())).unwrap();
        }
    }
}

/// Compiles the regions of integers.
pub fn compile(bytes: &[u8]) {
    let Some(mut model) = prepared(bytes) else {
        return;
    };
    octet_int8::rewrite_for_integers(&mut model, &[]);
    let sizes: Vec<Vec<usize>> = model.graph.inputs.iter().map(sizes).collect();
    let sizes: Vec<&[usize]> = sizes.iter().map(Vec::as_slice).collect();
    let types: BTreeMap<String, TensorType> = infer_from(&model.graph, &sizes)
        .into_iter()
        .map(|(name, value)| {
            let (element, shape) = (value.element, value.shape);
            (name, TensorType { element, shape })
        })
        .collect();
    if types.values().any(is_large) {
        return;
    }
    for mode in [
        (Scope::Integers, Processor::Exact),
        (Scope::Defined, Processor::Exact),
        (Scope::Integers, Processor::X86WithoutVnni),
    ] {
        let _ = octet_int8::compile(model.clone(), &types, &[], mode, &NoFloatEngine);
    }
}

/// The declared sizes of an input; 2 for an open one.
fn sizes(port: &ValueInfoProto) -> Vec<usize> {
    let shape = octet_onnx::tensor_type_of(port).and_then(|of| of.shape);
    let size = |dim: Dim| match dim {
        Dim::Known(size) if size > 0 => size,
        _ => 2,
    };
    shape.unwrap_or_default().into_iter().map(size).collect()
}

fn is_large(value: &TensorType) -> bool {
    let sizes = value.shape.iter().flatten().map(|dim| match dim {
        Dim::Known(size) => *size,
        _ => 1,
    });
    sizes.fold(1, usize::saturating_mul) > LARGEST_VALUE
}

/// Evaluates nothing, so nothing becomes a table.
struct NoFloatEngine;

impl FloatEvaluator for NoFloatEngine {
    fn evaluate(&self, _: Model, _: Vec<Tensor>) -> Result<Vec<Tensor>, String> {
        Err("no float engine".into())
    }
}
