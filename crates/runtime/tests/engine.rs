//! Tests of the engine: correct results, watched values, and errors that explain.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;

use octet_graph::{Dim, Model};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::*;
use octet_runtime::{Engine, EngineError, infer_types};
use octet_test_models::{node, typed_value};

fn port(name: &str, shape: &[i64]) -> ValueInfoProto {
    typed_value(name, DataType::Float, shape)
}

/// y = relu(x · w), then z = y + y
fn model(operator: &str) -> Model {
    let graph = GraphProto {
        node: vec![
            node("MatMul", &["x", "w"], "product"),
            node(operator, &["product"], "y"),
            node("Add", &["y", "y"], "z"),
        ],
        initializer: vec![TensorProto::from_f32("w", &[2, 2], &[1.0, -1.0, 2.0, 0.5])],
        input: vec![port("x", &[-1, 2])],
        output: vec![port("z", &[-1, 2])],
        ..Default::default()
    };
    of_graph(graph, 13)
}

fn of_graph(graph: GraphProto, opset: i64) -> Model {
    Model::from_proto(ModelProto::from_graph(graph, opset)).unwrap()
}

fn sample(rows: usize) -> Vec<Tensor> {
    let values = (0..rows * 2).map(|i| i as f32 - 1.0).collect();
    vec![Tensor::new(vec![rows, 2], Values::F32(values)).unwrap()]
}

#[test]
fn a_run_gives_the_numbers_of_the_operators() {
    let engine = Engine::new(model("Relu"), vec![]);
    // [-1, 0] · w = [-1, 1]; [1, 2] · w = [5, 0]
    let outputs = engine.run(sample(2), |_, _| {}, || false).unwrap();
    assert_eq!(outputs[0].shape(), [2, 2]);
    assert_eq!(outputs[0].as_f32().unwrap(), [0.0, 2.0, 10.0, 0.0]);
}

/// Nodes and values have separate names in ONNX, but not in tract.
#[test]
fn a_node_may_have_the_name_of_an_input_or_a_constant() {
    let mut proto = model("Relu").to_proto();
    let nodes = &mut proto.graph.as_mut().unwrap().node;
    for (node, name) in nodes.iter_mut().zip(["x", "w", "x"]) {
        node.name = Some(name.into());
    }
    let engine = Engine::new(Model::from_proto(proto).unwrap(), vec![]);
    let outputs = engine.run(sample(2), |_, _| {}, || false).unwrap();
    assert_eq!(outputs[0].as_f32().unwrap(), [0.0, 2.0, 10.0, 0.0]);
}

#[test]
fn the_fourier_transform_in_rustffts_place_is_the_one_that_runs() {
    let graph = GraphProto {
        node: vec![node("DFT", &["x"], "y")],
        input: vec![port("x", &[1, 6, 2])],
        output: vec![port("y", &[1, 6, 2])],
        ..Default::default()
    };
    // A wave of two periods: all of its energy is in bin 2.
    let third = std::f32::consts::TAU / 3.0;
    let wave = (0..6).flat_map(|k| [(k as f32 * third).cos(), (k as f32 * third).sin()]);
    let sample = Tensor::new(vec![1, 6, 2], Values::F32(wave.collect())).unwrap();
    let outputs = Engine::new(of_graph(graph, 17), vec![])
        .run(&[sample], |_, _| {}, || false)
        .unwrap();
    for (place, &found) in outputs[0].as_f32().unwrap().iter().enumerate() {
        let expected = if place == 4 { 6.0 } else { 0.0 };
        assert!((found - expected).abs() < 1e-5, "{place}: {found}");
    }
}

#[test]
fn every_watched_value_is_seen_once_a_run_whether_fed_made_or_given_out() {
    let watched: Vec<String> = ["x", "product", "y", "z"].map(String::from).to_vec();
    let engine = Engine::new(model("Relu"), watched);
    let seen = RefCell::new(vec![Vec::new(); 4]);
    engine
        .run(
            sample(1),
            |slot, v| seen.borrow_mut()[slot].push(v.to_vec()),
            || false,
        )
        .unwrap();
    let expected = [
        vec![-1.0, 0.0],
        vec![-1.0, 1.0],
        vec![0.0, 1.0],
        vec![0.0, 2.0],
    ]
    .map(|v| vec![v]);
    assert_eq!(seen.into_inner(), expected);
}

#[test]
fn samples_of_ever_new_shapes_run() {
    let engine = Engine::new(model("Relu"), vec!["y".into()]);
    for rows in (1..8).chain(1..3) {
        let mut elements = 0;
        let outputs = engine
            .run(sample(rows), |_, v| elements += v.len(), || false)
            .unwrap();
        assert_eq!((outputs[0].shape(), elements), (&[rows, 2][..], rows * 2));
    }
}

#[test]
fn a_run_can_be_stopped() {
    let engine = Engine::new(model("Relu"), vec![]);
    let stopped = engine.run(sample(1), |_, _| {}, || true);
    assert!(matches!(stopped, Err(EngineError::Stopped)));
}

#[test]
fn an_operator_nobody_knows_is_refused_by_name() {
    let engine = Engine::new(model("Frobnicate"), vec![]);
    let error = engine
        .run(sample(1), |_, _| {}, || false)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("Frobnicate") && error.contains("`y`"),
        "{error}"
    );
}

#[test]
fn types_are_inferred_for_every_value() {
    let types = infer_types(&model("Relu")).unwrap();
    for name in ["x", "product", "y", "z"] {
        let found = types
            .get(name)
            .unwrap_or_else(|| panic!("{name} has no type"));
        assert_eq!(found.element, DataType::Float, "{name}");
        let shape = found.shape.as_ref().unwrap();
        assert_eq!(shape[1], Dim::Known(2), "{name}");
        assert!(
            matches!(&shape[0], Dim::Named(n) if n == "n"),
            "{name}: {shape:?}"
        );
    }
}
