//! Quantization of models of 16-bit floats.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use octet::graph::Model;
use octet::onnx::schema::*;
use octet::onnx::{external, read, write};
use octet::quantize::{Scheme, Settings};
use octet::session::{ModelFile, Session};
use octet_test_models::{float16_constant, operators, typed_value};

const SHAPE: [usize; 2] = [48, 48];

fn float16(name: &str) -> TensorProto {
    float16_constant(name, &SHAPE)
}

/// The constant of that name in float32.
fn float32(name: &str) -> TensorProto {
    TensorProto::from_f32(name, &SHAPE, &float16(name).to_f32().unwrap())
}

fn element_of(model: &Model, name: &str) -> DataType {
    model.graph.tensor_type(name).unwrap().element
}

fn file(element: DataType, weights: [TensorProto; 2]) -> Vec<u8> {
    let node =
        |operator, inputs: &[&str], output| NodeProto::new(operator, output, inputs, &[output]);
    let graph = GraphProto {
        name: Some("g".into()),
        node: vec![
            node("MatMul", &["x", "w"], "a"),
            node("Celu", &["a"], "b"),
            node("Add", &["b", "v"], "y"),
        ],
        initializer: weights.into(),
        input: vec![typed_value("x", element, &[48, 48])],
        output: vec![typed_value("y", element, &[48, 48])],
        ..GraphProto::default()
    };
    write(&ModelProto::from_graph(graph, 17)).unwrap()
}

fn settings(scheme: Scheme) -> Settings {
    Settings {
        scheme,
        ..Settings::default()
    }
}

/// The quantized model of a session, and its notes.
fn quantized(file: Vec<u8>, scheme: Scheme) -> (Model, Vec<String>) {
    let mut session = Session::open(ModelFile::new("m.onnx", file.into())).unwrap();
    let done = session.quantize(&settings(scheme)).unwrap();
    let bytes: Vec<u8> = done.model.as_slice().concat();
    let model = Model::from_proto(read(bytes.into()).unwrap()).unwrap();
    (model, done.summary.notes)
}

#[test]
fn schemes_make_of_halves_the_integers_of_the_same_floats() {
    let half = || file(DataType::Float16, [float16("w"), float16("v")]);
    let float = || file(DataType::Float, [float32("w"), float32("v")]);
    for scheme in [Scheme::Dynamic, Scheme::Weights, Scheme::Blocks] {
        let (result, notes) = quantized(half(), scheme);
        let (expected, _) = quantized(float(), scheme);
        assert!(
            notes.iter().any(|n| n.contains("Upcast from float16")),
            "{notes:?}"
        );
        for tensor in expected.graph.initializers.iter() {
            let name = tensor.name.as_deref().unwrap();
            let actual = result.graph.initializers.get(name);
            match name {
                // A weight that stays float is stored with 16 bits.
                "v" => assert!(actual.is_none()),
                _ => assert_eq!(actual, Some(tensor), "{name}"),
            }
        }
        let stored = result.graph.initializers.get("v_float16").unwrap();
        assert_eq!(stored.raw_data, float16("v").raw_data);
        for name in ["x", "y"] {
            assert_eq!(element_of(&result, name), DataType::Float16);
        }
    }
}

#[test]
fn half_precision_of_halves_is_halves_again_without_casts_at_the_borders() {
    let (result, _) = quantized(
        file(DataType::Float16, [float16("w"), float16("v")]),
        Scheme::Float16,
    );
    for name in ["x", "y", "w", "v"] {
        assert_eq!(element_of(&result, name), DataType::Float16, "{name}");
    }
    assert_eq!(result.graph.initializers.get("w"), Some(&float16("w")));
    // Celu stays float32 in between.
    assert_eq!(
        operators(&result),
        ["MatMul", "Cast", "Celu", "Cast", "Add"]
    );
}

#[test]
fn halves_beside_the_model_are_raised_too() {
    let mut model = read(file(DataType::Float16, [float16("w"), float16("v")]).into()).unwrap();
    let weight = &mut model.graph.as_mut().unwrap().initializer[0];
    let beside = weight.raw_data.take().unwrap();
    weight.data_location = Some(DataLocation::External as i32);
    weight.external_data = vec![StringStringEntryProto {
        key: Some("location".into()),
        value: Some("w.bin".into()),
    }];
    assert_eq!(external::files(&model), ["w.bin"]);
    let light = write(&model).unwrap();
    let mut session = Session::open(ModelFile::new("m.onnx", light.into())).unwrap();
    let error = session
        .quantize(&settings(Scheme::Weights))
        .map(|_| ())
        .unwrap_err();
    assert!(error.to_string().contains("w.bin"), "{error}");
    session
        .attach(&BTreeMap::from([("w.bin".to_owned(), beside)]))
        .unwrap();
    let done = session.quantize(&settings(Scheme::Weights)).unwrap();
    let whole = quantized(
        file(DataType::Float16, [float16("w"), float16("v")]),
        Scheme::Weights,
    );
    let bytes: Vec<u8> = done.model.as_slice().concat();
    let result = Model::from_proto(read(bytes.into()).unwrap()).unwrap();
    assert_eq!(result.graph.initializers, whole.0.graph.initializers);
}
