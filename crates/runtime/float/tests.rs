//! Compares our kernels with tract's, on models of one convolution and the operators behind it.

use tract_onnx::prelude::*;

use super::with_kernels;
use crate::Engine;
use crate::load::{WeightMode, load};
use octet_graph::{Dim, Model, TensorType};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::{
    AttributeProto, DataType, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto,
};

fn numbers(count: usize) -> Vec<f32> {
    (0..count)
        .map(|at| (at * 7919 % 1009) as f32 / 504.5 - 1.0)
        .collect()
}

fn port(name: &str, shape: &[usize]) -> ValueInfoProto {
    let shape = shape.iter().map(|&size| Dim::Known(size)).collect();
    let declared = TensorType {
        element: DataType::Float,
        shape: Some(shape),
    };
    ValueInfoProto::new(name, &declared)
}

/// x → these nodes → y, with these weights.
fn model(input: &[usize], nodes: Vec<NodeProto>, weights: &[(&str, &[usize])]) -> Model {
    let mut initializer: Vec<_> = weights
        .iter()
        .map(|(name, shape)| TensorProto::from_f32(name, shape, &numbers(shape.iter().product())))
        .collect();
    initializer.push(TensorProto::from_f32("low", &[], &[-0.5]));
    initializer.push(TensorProto::from_f32("high", &[], &[0.75]));
    let graph = GraphProto {
        node: nodes,
        input: vec![port("x", input)],
        output: vec![ValueInfoProto {
            name: Some("y".into()),
            ..Default::default()
        }],
        initializer,
        ..Default::default()
    };
    let proto = ModelProto::from_graph(graph, 17);
    Model::from_proto(proto).unwrap()
}

fn conv(inputs: &[&str], output: &str) -> NodeProto {
    NodeProto::new("Conv", output, inputs, &[output])
}

/// Returns the operators of the model with our kernels; fails if both kernels give different
/// results.
fn checked(input: &[usize], model: Model) -> Vec<String> {
    let mut loaded = load(
        &model,
        &[],
        WeightMode::Values { kernels: true },
        &Default::default(),
        None,
    )
    .unwrap()
    .model;
    let fact = tract_onnx::tract_hir::infer::InferenceFact::dt_shape(f32::datum_type(), input);
    loaded.set_input_fact(0, fact).unwrap();
    let ours = with_kernels(&loaded.into_typed().unwrap()).unwrap();
    let operators = ours.into_decluttered().unwrap().nodes;
    let x = Tensor::new(input.to_vec(), Values::F32(numbers(input.iter().product()))).unwrap();
    let run = |ours: bool| {
        let engine = Engine::new(model.clone(), Vec::new()).with_kernels(ours);
        let outputs = engine.run(std::slice::from_ref(&x), |_, _| {}, || false);
        outputs.unwrap().remove(0)
    };
    let (ours, theirs) = (run(true), run(false));
    assert_eq!(ours.shape(), theirs.shape());
    let (ours, theirs) = (ours.as_f32().unwrap(), theirs.as_f32().unwrap());
    let largest = theirs.iter().fold(0.0f32, |most, v| most.max(v.abs()));
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert!(
            (ours - theirs).abs() <= 1e-5 * largest,
            "{ours} for {theirs}"
        );
    }
    operators
        .iter()
        .map(|node| node.op.name().to_string())
        .collect()
}

fn count(operators: &[String], name: &str) -> usize {
    operators.iter().filter(|found| *found == name).count()
}

#[test]
fn convolutions_of_every_kind_are_ours_and_give_what_tract_gives() {
    let ints = AttributeProto::ints;
    let cases = [
        ([2, 3, 9, 10], [5, 3, 3, 3], vec![]),
        ([1, 3, 9, 10], [5, 3, 1, 1], vec![ints("strides", &[2, 2])]),
        // Large enough that the weight is read from the file.
        ([1, 32, 9, 10], [41, 32, 3, 3], vec![ints("pads", &[1; 4])]),
        (
            [1, 4, 9, 10],
            [6, 2, 3, 2],
            vec![AttributeProto::int("group", 2), ints("pads", &[1, 0, 2, 1])],
        ),
        (
            [1, 4, 13, 12],
            [4, 1, 3, 3],
            vec![
                AttributeProto::int("group", 4),
                ints("dilations", &[2, 3]),
                ints("pads", &[2, 3, 2, 3]),
            ],
        ),
        (
            [1, 4, 12, 13],
            [4, 1, 5, 5],
            vec![
                AttributeProto::int("group", 4),
                ints("strides", &[2, 2]),
                AttributeProto::text("auto_pad", "SAME_UPPER"),
            ],
        ),
        (
            [1, 2, 8, 7],
            [3, 2, 2, 2],
            vec![
                ints("strides", &[3, 2]),
                AttributeProto::text("auto_pad", "SAME_LOWER"),
            ],
        ),
    ];
    for (input, weight, attributes) in cases {
        for inputs in [&["x", "w"][..], &["x", "w", "b"]] {
            let node = attributes
                .iter()
                .cloned()
                .fold(conv(inputs, "y"), NodeProto::with);
            let bias = [weight[0]];
            let operators = checked(
                &input,
                model(&input, vec![node], &[("w", &weight), ("b", &bias)]),
            );
            assert_eq!(count(&operators, "Convolution"), 1, "{operators:?}");
            assert_eq!(count(&operators, "Weight"), 0, "{operators:?}");
        }
    }
}

#[test]
fn a_clamp_is_done_by_the_convolution_unless_its_sums_are_wanted_too() {
    let weights: [(&str, &[usize]); 2] = [("w", &[5, 3, 3, 3]), ("b", &[5])];
    let input = [1, 3, 8, 8];
    let sum = || conv(&["x", "w", "b"], "sum");
    let clip = || NodeProto::new("Clip", "cut", &["sum", "low", "high"], &["y"]);
    let operators = checked(&input, model(&input, vec![sum(), clip()], &weights));
    assert_eq!(count(&operators, "Convolution"), 1, "{operators:?}");
    assert_eq!(count(&operators, "Clamp"), 0, "{operators:?}");
    let relu = NodeProto::new("Relu", "relu", &["sum"], &["relu"]);
    let add = NodeProto::new("Add", "add", &["relu", "sum"], &["y"]);
    let operators = checked(&input, model(&input, vec![sum(), relu, add], &weights));
    assert_eq!(count(&operators, "Clamp"), 1, "{operators:?}");
}

#[test]
fn unsupported_convolutions_stay_in_tract() {
    let weights: [(&str, &[usize]); 1] = [("w", &[5, 3, 3])];
    let input = [1, 3, 8];
    let operators = checked(
        &input,
        model(&input, vec![conv(&["x", "w"], "y")], &weights),
    );
    assert_eq!(count(&operators, "Convolution"), 0, "{operators:?}");
}

#[test]
fn sums_and_pools_are_ours_and_give_what_tract_gives() {
    let ints = AttributeProto::ints;
    let pool = |attributes: Vec<AttributeProto>| {
        let mut pool = NodeProto::new("MaxPool", "y", &["s"], &["y"]);
        pool.attribute = attributes;
        pool
    };
    let nodes = |input: &[usize; 4]| {
        vec![
            conv(&["x", "w"], "a"),
            NodeProto::new("Add", "sum", &["a", "x"], &["t"]),
            NodeProto::new("Relu", "relu", &["t"], &["s"]),
            pool(match input[3] % 2 {
                0 => vec![ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2])],
                _ => vec![
                    ints("kernel_shape", &[3, 3]),
                    ints("strides", &[2, 1]),
                    ints("pads", &[1; 4]),
                    ints("dilations", &[1, 2]),
                ],
            }),
        ]
    };
    for input in [[2, 3, 12, 10], [1, 3, 9, 23]] {
        let operators = checked(
            &input,
            model(&input, nodes(&input), &[("w", &[3, 3, 1, 1])]),
        );
        let counts = ["Convolution", "Sum", "MaxPool", "Clamp"].map(|name| count(&operators, name));
        assert_eq!(counts, [1, 1, 1, 0], "{operators:?}");
    }
}

#[test]
fn sums_of_other_shapes_or_with_constants_stay_with_tract() {
    let broadcast = vec![
        conv(&["x", "w"], "a"),
        NodeProto::new("ReduceMax", "most", &["x"], &["m"]),
        NodeProto::new("Add", "sum", &["a", "m"], &["t"]),
        NodeProto::new("Add", "constant", &["t", "low"], &["y"]),
    ];
    let input = [1, 3, 9, 10];
    let operators = checked(&input, model(&input, broadcast, &[("w", &[3, 3, 1, 1])]));
    assert_eq!(count(&operators, "Sum"), 0, "{operators:?}");
}
