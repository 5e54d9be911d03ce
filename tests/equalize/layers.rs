//! Layers around the nodes under test, and a check that the model's function stays the same.

use std::collections::BTreeMap;

use octet::graph::{Dim, Model, TensorType};
use octet::onnx::schema::*;
use octet::prepare::equalize::{ChannelFactors, channels};
use octet::runtime::{self, Engine};
use octet::tensor::{Tensor, Values};

use super::graphs::{check_valid, model, node, numbers};

pub const SHAPE: [usize; 4] = [1, 4, 6, 6];

/// A constant with varied numbers; a weight has a different magnitude for each of its outputs.
pub fn weight(name: &str, dims: &[usize]) -> TensorProto {
    let count: usize = dims.iter().product();
    let seed = name
        .bytes()
        .fold(7u64, |seed, byte| seed * 31 + u64::from(byte));
    let run = count / dims[0];
    let sizes = numbers(seed + 1, dims[0]);
    let values = numbers(seed, count).into_iter().enumerate();
    let sized: Vec<f32> = values
        .map(|(at, value)| value * (3.0 * sizes[at / run]).exp2())
        .collect();
    TensorProto::from_f32(name, dims, &sized)
}

/// The model with the type of every value.
pub fn typed(mut model: Model, shape: &[usize]) -> Model {
    let input = TensorType {
        element: DataType::Float,
        shape: Some(shape.iter().copied().map(Dim::Known).collect()),
    };
    model.graph.inputs = vec![ValueInfoProto::new("x", &input)];
    let types = runtime::infer_types(&model).unwrap();
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
    check_valid(&after);
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

pub fn conv(input: &str, name: &str, output: &str) -> NodeProto {
    node("Conv", &[input, name, &format!("{name}_bias")], output)
}

pub fn conv_constants(name: &str, dims: &[usize]) -> Vec<TensorProto> {
    vec![
        weight(name, dims),
        weight(&format!("{name}_bias"), &[dims[0]]),
    ]
}

/// A layer, these nodes from `a` to `z`, and another layer.
pub fn between(
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    width: usize,
) -> (Vec<NodeProto>, Vec<TensorProto>) {
    let all = [
        vec![conv("x", "first", "a")],
        nodes,
        vec![conv("z", "last", "y")],
    ]
    .concat();
    let layers = [
        conv_constants("first", &[6, 4, 1, 1]),
        conv_constants("last", &[3, width, 1, 1]),
    ];
    (all, [constants, layers.concat()].concat())
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
