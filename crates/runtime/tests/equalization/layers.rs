//! A check that equalization keeps the function of a model.

use std::collections::BTreeMap;

use octet_graph::prepare::equalize::{ChannelFactors, channels};
use octet_graph::{Dim, Model, TensorType};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::*;
use octet_runtime::{Engine, infer_types};

use octet_test_models::equalizable::{SHAPE, between};
use octet_test_models::{assert_valid, model, numbers};

/// The model with the type of every value.
pub fn typed(mut model: Model, shape: &[usize]) -> Model {
    let input = TensorType {
        element: DataType::Float,
        shape: Some(shape.iter().copied().map(Dim::Known).collect()),
    };
    model.graph.inputs = vec![ValueInfoProto::new("x", &input)];
    let types = infer_types(&model).unwrap();
    model.graph.value_info = types
        .iter()
        .map(|(name, found)| ValueInfoProto::new(name, found))
        .collect();
    model
}

/// The outputs of a model on fixed inputs, and the largest magnitude of each channel of each value.
pub fn run(model: &Model, shape: &[usize]) -> (Vec<Tensor>, BTreeMap<String, Vec<f32>>) {
    let axes = channels(model);
    let watched: Vec<String> = axes.keys().cloned().collect();
    let input = Tensor::new(
        shape.to_vec(),
        Values::F32(numbers(3, shape.iter().product())),
    )
    .unwrap();
    let mut reaches = BTreeMap::new();
    let engine = Engine::new(model.clone(), watched.clone());
    let look = |slot: usize, values: &[f32], shape: &[usize]| {
        let axis = axes[&watched[slot]];
        let inner: usize = shape[axis + 1..].iter().product();
        let mut reach = vec![0.0f32; shape[axis]];
        for (at, value) in values.iter().enumerate() {
            let channel = &mut reach[at / inner % shape[axis]];
            *channel = channel.max(value.abs());
        }
        reaches.insert(watched[slot].clone(), reach);
    };
    let made = engine.run_shaped(vec![input], look, || false).unwrap();
    (made, reaches)
}

pub fn floats(tensor: &Tensor) -> &[f32] {
    tensor.as_f32().unwrap()
}

/// Checks that the model's function stays the same, with factors for exactly these values.
pub fn stays(
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    shape: &[usize],
    with: &[&str],
) -> Model {
    let before = typed(model(nodes, constants, &["y"]), shape);
    let (made, reaches) = run(&before, shape);
    let names: Vec<&str> = reaches.keys().map(String::as_str).collect();
    assert_eq!(names, with, "other values can have factors");
    let reach = |value: &str| reaches.get(value).map(Vec::as_slice);
    let factors = ChannelFactors::from_magnitudes(&before, reach, 0.9).unwrap();
    let after = factors.applied(&before).unwrap();
    assert_valid(&after);
    let (again, scaled) = run(&after, shape);
    for (one, other) in made.iter().zip(&again) {
        let greatest = floats(one)
            .iter()
            .fold(0.0f32, |greatest, value| greatest.max(value.abs()));
        assert!(greatest > 0.0);
        for (one, other) in floats(one).iter().zip(floats(other)) {
            assert!(
                (one - other).abs() <= 2e-5 * greatest,
                "{one} became {other}"
            );
        }
    }
    let apart = |reaches: &BTreeMap<String, Vec<f32>>| {
        reaches.values().map(|reach| spread(reach)).sum::<f64>()
    };
    assert!(
        apart(&scaled) < apart(&reaches),
        "no more alike: {reaches:?}, {scaled:?}"
    );
    after
}

/// Dissimilarity of channels: the variance of the logarithms of all that are not zero.
pub fn spread(reach: &[f32]) -> f64 {
    let logs: Vec<f64> = reach
        .iter()
        .filter(|reach| **reach > 0.0)
        .map(|reach| f64::from(*reach).log2())
        .collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    logs.iter()
        .map(|log| (log - mean) * (log - mean))
        .sum::<f64>()
        / logs.len() as f64
}

pub fn stays_between(
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    width: usize,
    with: &[&str],
) -> Model {
    let (nodes, constants) = between(nodes, constants, width);
    stays(nodes, constants, &SHAPE, with)
}
