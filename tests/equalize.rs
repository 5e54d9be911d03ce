//! Channels made alike: what can bear factors, that the model stays the same function, and what a session does about it.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;

use octet::engine::{self, Engine};
use octet::graph::{Dim, Model, TensorType};
use octet::onnx::schema::*;
use octet::prepare::equalize::{EqualizeError, Factors, channels};
use octet::tensor::{Tensor, Values};

mod graphs;
#[path = "equalize/session.rs"]
mod session;

use graphs::{check_valid, choice, constant, model, node, numbers};

const SHAPE: [usize; 4] = [1, 4, 6, 6];

/// A constant of such numbers; a weight of another size for each of its outputs.
fn weight(name: &str, dims: &[usize]) -> TensorProto {
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
fn typed(mut model: Model, shape: &[usize]) -> Model {
    let input = TensorType {
        element: DataType::Float,
        shape: Some(shape.iter().copied().map(Dim::Known).collect()),
    };
    model.graph.inputs = vec![ValueInfoProto::of("x", &input)];
    let types = engine::infer_types(&model).unwrap();
    model.graph.value_info = types
        .iter()
        .map(|(name, found)| ValueInfoProto::of(name, found))
        .collect();
    model
}

/// What a model makes of such numbers, and how far the channels of each of its values reach.
fn run(model: &Model, shape: &[usize]) -> (Vec<Tensor>, BTreeMap<String, Vec<f32>>) {
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

fn floats(tensor: &Tensor) -> &[f32] {
    tensor.as_f32().unwrap()
}

/// That a model stays what it is, with factors for channels of all these values and of no others.
fn stays(
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
    let factors = Factors::find(&before, reach, 0.9).unwrap();
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

/// By how much channels differ: the variance of the logarithms of those that have any values.
fn spread(reach: &[f32]) -> f64 {
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

fn conv(input: &str, name: &str, output: &str) -> NodeProto {
    node("Conv", &[input, name, &format!("{name}_bias")], output)
}

fn conv_constants(name: &str, dims: &[usize]) -> Vec<TensorProto> {
    vec![
        weight(name, dims),
        weight(&format!("{name}_bias"), &[dims[0]]),
    ]
}

/// A layer before, these nodes from `a` to `z`, and a layer behind.
fn between(
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

fn stays_between(
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    width: usize,
    with: &[&str],
) -> Model {
    let (nodes, constants) = between(nodes, constants, width);
    stays(nodes, constants, &SHAPE, with)
}

#[test]
fn what_does_the_same_to_each_multiple_hands_factors_on() {
    let window = |node: NodeProto| node.with(AttributeProto::ints("kernel_shape", &[2, 2]));
    let numbers = |name: &str, values: &[f32]| TensorProto::from_f32(name, &[values.len()], values);
    for (last, constants) in [
        (node("Relu", &["a"], "z"), vec![]),
        (node("LeakyRelu", &["a"], "z"), vec![]),
        (
            node("PRelu", &["a", "slope"], "z"),
            vec![constant("slope", &[6, 1, 1])],
        ),
        (window(node("MaxPool", &["a"], "z")), vec![]),
        (window(node("AveragePool", &["a"], "z")), vec![]),
        (node("GlobalAveragePool", &["a"], "z"), vec![]),
        (node("GlobalMaxPool", &["a"], "z"), vec![]),
        (node("Abs", &["a"], "z"), vec![]),
        (node("Neg", &["a"], "z"), vec![]),
        (
            node("Resize", &["a", "", "scales"], "z").with(AttributeProto::text("mode", "nearest")),
            vec![numbers("scales", &[1.0, 1.0, 2.0, 2.0])],
        ),
        (
            node("Pad", &["a", "pads"], "z"),
            vec![TensorProto::from_i64(
                "pads",
                &[8],
                &[0, 0, 1, 1, 0, 0, 1, 1],
            )],
        ),
        (
            node("Mul", &["a", "half"], "z"),
            vec![numbers("half", &[0.5])],
        ),
        (
            node("Mul", &["a", "places"], "z"),
            vec![constant("places", &[6, 6])],
        ),
        (
            node("Div", &["a", "places"], "z"),
            vec![TensorProto::from_f32(
                "places",
                &[6, 1],
                &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            )],
        ),
    ] {
        stays_between(vec![last], constants, 6, &["a", "z"]);
    }
}

#[test]
fn a_constant_for_each_channel_takes_factors_up() {
    for operator in ["Add", "Sub", "Mul", "Div"] {
        let constants = vec![weight("c", &[6, 1, 1])];
        let after = stays_between(
            vec![node(operator, &["a", "c"], "z")],
            constants,
            6,
            &["a", "z"],
        );
        assert!(after.graph.initializers.contains("c"));
    }
    for operator in ["Add", "Sub", "Mul"] {
        stays_between(
            vec![node(operator, &["c", "a"], "z")],
            vec![weight("c", &[1, 6, 1, 1])],
            6,
            &["a", "z"],
        );
    }
}

#[test]
fn what_is_added_and_what_is_joined_shares_factors() {
    let other = |nodes: Vec<NodeProto>| [vec![conv("x", "other", "b")], nodes].concat();
    for operator in ["Add", "Sub", "Max", "Min", "Sum", "Mean"] {
        let nodes = other(vec![node(operator, &["a", "b"], "z")]);
        stays_between(
            nodes,
            conv_constants("other", &[6, 4, 1, 1]),
            6,
            &["a", "b", "z"],
        );
    }
    let concat = |axis| node("Concat", &["a", "b"], "z").with(AttributeProto::int("axis", axis));
    let after = stays_between(
        other(vec![concat(1)]),
        conv_constants("other", &[5, 4, 1, 1]),
        11,
        &["a", "b", "z"],
    );
    assert_eq!(Factors::remembered(&after).unwrap().extent().0, 2);
    stays_between(
        other(vec![concat(-3)]),
        conv_constants("other", &[5, 4, 1, 1]),
        11,
        &["a", "b", "z"],
    );
    stays_between(
        other(vec![concat(3)]),
        conv_constants("other", &[6, 4, 1, 1]),
        6,
        &["a", "b", "z"],
    );
}

#[test]
fn what_is_gated_keeps_its_factors_and_its_gate_has_none() {
    // Squeeze and excitation: the gate is a function of what it gates.
    let nodes = vec![
        node("Relu", &["a"], "b"),
        node("GlobalAveragePool", &["b"], "c"),
        conv("c", "squeeze", "d"),
        node("Relu", &["d"], "e"),
        conv("e", "excite", "f"),
        node("Sigmoid", &["f"], "g"),
        node("Mul", &["g", "b"], "z"),
    ];
    let constants = [
        conv_constants("squeeze", &[3, 6, 1, 1]),
        conv_constants("excite", &[6, 3, 1, 1]),
    ]
    .concat();
    stays_between(nodes, constants, 6, &["a", "b", "c", "d", "e", "z"]);
    // Of two of a size the one that a Sigmoid made.
    let nodes = vec![
        conv("x", "other", "b"),
        node("Sigmoid", &["b"], "c"),
        node("Mul", &["c", "a"], "z"),
    ];
    stays_between(
        nodes,
        conv_constants("other", &[6, 4, 1, 1]),
        6,
        &["a", "z"],
    );
}

#[test]
fn weights_of_every_layer_take_factors_up() {
    let grouped = |operator: &str| {
        node(operator, &["a", "w", "b"], "z").with(AttributeProto::int("group", 2))
    };
    let bias = || weight("b", &[8]);
    stays_between(
        vec![grouped("Conv")],
        vec![weight("w", &[8, 3, 3, 3]), bias()],
        8,
        &["a", "z"],
    );
    stays_between(
        vec![grouped("ConvTranspose")],
        vec![weight("w", &[6, 4, 2, 2]), bias()],
        8,
        &["a", "z"],
    );
    let each = node("Conv", &["a", "w", "b"], "z").with(AttributeProto::int("group", 6));
    stays_between(
        vec![each],
        vec![weight("w", &[6, 1, 3, 3]), weight("b", &[6])],
        6,
        &["a", "z"],
    );
    // Products of matrices, with and without a bias, behind a norm.
    let product = |turned: bool| {
        let gemm = node("Gemm", &["c", "second", "bias"], "d")
            .with(AttributeProto::float("alpha", 0.5))
            .with(AttributeProto::float("beta", 2.0));
        let (gemm, dims) = match turned {
            true => (gemm.with(AttributeProto::int("transB", 1)), [5, 7]),
            false => (gemm, [7, 5]),
        };
        let nodes = vec![
            node("LayerNormalization", &["x", "scale", "shift"], "a"),
            node("MatMul", &["a", "first"], "b"),
            node("Add", &["b", "added"], "c"),
            gemm,
            node("Relu", &["d"], "e"),
            node("MatMul", &["e", "third"], "y"),
        ];
        let constants = vec![
            weight("scale", &[9]),
            weight("shift", &[9]),
            weight("first", &[9, 7]),
            weight("added", &[7]),
            weight("second", &dims),
            weight("bias", &[1, 5]),
            weight("third", &[5, 2]),
        ];
        stays(nodes, constants, &[3, 9], &["a", "b", "c", "d", "e"]);
    };
    product(true);
    product(false);
    // The last axis of three.
    let nodes = vec![
        node("LayerNormalization", &["x", "scale"], "a").with(AttributeProto::int("axis", 2)),
        node("MatMul", &["a", "first"], "y"),
    ];
    stays(
        nodes,
        vec![weight("scale", &[9]), weight("first", &[9, 7])],
        &[1, 5, 9],
        &["a"],
    );
    // A norm of each channel, and axes of one that are dropped.
    let nodes = vec![
        node("InstanceNormalization", &["x", "scale", "shift"], "a"),
        node("Relu", &["a"], "b"),
        node("GlobalAveragePool", &["b"], "c"),
        node("Flatten", &["c"], "d"),
        node("Gemm", &["d", "w"], "y"),
    ];
    let constants = vec![
        weight("scale", &[4]),
        weight("shift", &[4]),
        weight("w", &[4, 3]),
    ];
    stays(nodes, constants, &SHAPE, &["a", "b", "c", "d"]);
}

#[test]
fn what_bears_no_factors_stays_as_it_was() {
    let bound = || {
        vec![
            TensorProto::from_f32("low", &[], &[0.0]),
            TensorProto::from_f32("high", &[], &[0.5]),
        ]
    };
    let (inner, yes) = choice("Mul", "z");
    for (nodes, constants) in [
        (vec![node("Sigmoid", &["a"], "z")], vec![]),
        (vec![node("Clip", &["a", "low", "high"], "z")], bound()),
        (vec![node("Mul", &["a", "a"], "z")], vec![]),
        (
            vec![node("Add", &["a", "places"], "z")],
            vec![constant("places", &[6, 6])],
        ),
        (
            vec![node("Add", &["a", "one"], "z")],
            vec![constant("one", &[1])],
        ),
        (
            vec![node("Max", &["a", "one"], "z")],
            vec![constant("one", &[1])],
        ),
        (
            vec![node("Pad", &["a", "pads", "one"], "z")],
            vec![
                TensorProto::from_i64("pads", &[8], &[0, 0, 1, 1, 0, 0, 1, 1]),
                TensorProto::from_f32("one", &[], &[1.0]),
            ],
        ),
        (
            vec![node("Pad", &["a", "pads"], "z")],
            vec![TensorProto::from_i64(
                "pads",
                &[8],
                &[0, 1, 0, 0, 0, -1, 0, 0],
            )],
        ),
        // The channels trade places, or become places.
        (
            vec![node("Transpose", &["a"], "z").with(AttributeProto::ints("perm", &[0, 2, 1, 3]))],
            vec![],
        ),
        // It is also used where it can't be otherwise.
        (
            vec![node("Relu", &["a"], "z"), node("Softmax", &["a"], "other")],
            vec![],
        ),
        (
            vec![node("Relu", &["a"], "inner"), inner],
            vec![yes, weight("w", &[6, 1, 1])],
        ),
    ] {
        let title = nodes[0].op_type.clone();
        let (nodes, constants) = between(nodes, constants, 6);
        let found = channels(&typed(model(nodes, constants, &["y"]), &SHAPE));
        assert!(
            !found.contains_key("a") && !found.contains_key("z"),
            "{title:?}: {found:?}"
        );
    }
    // A weight that another layer reads, too, and a value that goes out.
    let mut shared = conv_constants("w", &[4, 4, 1, 1]);
    shared.extend(conv_constants("v", &[4, 4, 1, 1]));
    let nodes = || {
        vec![
            conv("x", "w", "a"),
            conv("a", "v", "b"),
            conv("b", "w", "y"),
        ]
    };
    assert_eq!(
        channels(&typed(model(nodes(), shared.clone(), &["y"]), &SHAPE)),
        BTreeMap::new()
    );
    let nodes = vec![conv("x", "w", "a"), conv("a", "v", "y")];
    assert_eq!(
        channels(&typed(model(nodes, shared, &["a", "y"]), &SHAPE)),
        BTreeMap::new()
    );
}

#[test]
fn the_strength_says_how_much_is_left_to_the_weights() {
    let (nodes, constants) = between(vec![node("Relu", &["a"], "z")], vec![], 6);
    let before = typed(model(nodes, constants, &["y"]), &SHAPE);
    let (_, reaches) = run(&before, &SHAPE);
    let reach = |value: &str| reaches.get(value).map(Vec::as_slice);
    let scaled = |strength| {
        let after = Factors::find(&before, reach, strength)
            .unwrap()
            .applied(&before)
            .unwrap();
        let weights = after
            .graph
            .initializers
            .get("last")
            .unwrap()
            .to_f32()
            .unwrap();
        let mut met = vec![0.0f32; 6];
        weights
            .iter()
            .enumerate()
            .for_each(|(at, weight)| met[at % 6] = met[at % 6].max(weight.abs()));
        (run(&after, &SHAPE).1.remove("a").unwrap(), met)
    };
    // All of it: what is made is alike but for the steps of factors. None: the weights are.
    let ((reach_of_all, _), (_, weights_of_none)) = (scaled(1.0), scaled(0.0));
    for alike in [reach_of_all, weights_of_none] {
        assert!(spread(&alike) < 0.002, "{alike:?}");
    }
}

#[test]
fn factors_are_remembered_and_fit_the_model_they_are_of_only() {
    let (nodes, constants) = between(vec![node("Relu", &["a"], "z")], vec![], 6);
    let before = typed(model(nodes, constants, &["y"]), &SHAPE);
    let reach = [1.0, 0.5, 4.0, 0.0, f32::INFINITY, 1e-30];
    let factors = Factors::find(&before, |_| Some(&reach), 0.5).unwrap();
    let after = factors.applied(&before).unwrap();
    assert_eq!(Factors::remembered(&after), Ok(factors.clone()));
    assert_eq!(Factors::remembered(&before), Ok(Factors::default()));
    assert_eq!(Factors::default().applied(&before), Ok(before.clone()));
    let again = Factors::find(&after, |_| Some(&reach), 0.5);
    assert_eq!(again, Err(EqualizeError::Already));
    let (nodes, constants) = between(vec![node("Sigmoid", &["a"], "z")], vec![], 6);
    let other = typed(model(nodes, constants, &["y"]), &SHAPE);
    let value = "a".to_string();
    assert_eq!(factors.applied(&other), Err(EqualizeError::Other { value }));
    for damaged in [
        "",
        "{",
        "[1]",
        r#"{"a":"0"}"#,
        r#"{"a":"0g"}"#,
        r#"{"a":"+1"}"#,
        r#"{"a":"é"}"#,
        r#"{"a":5}"#,
    ] {
        let mut model = after.clone();
        let entries = &mut model.header_mut().metadata_props;
        entries.last_mut().unwrap().value = Some(damaged.into());
        let found = Factors::remembered(&model);
        assert!(
            matches!(found, Err(EqualizeError::Damaged { .. })),
            "{damaged}: {found:?}"
        );
    }
    for strange in [
        r#"{"nothing":"01"}"#,
        r#"{"a":"01"}"#,
        r#"{"x":"01010101"}"#,
    ] {
        let mut model = after.clone();
        model.header_mut().metadata_props.last_mut().unwrap().value = Some(strange.into());
        let found = Factors::remembered(&model).unwrap().applied(&before);
        assert!(
            matches!(found, Err(EqualizeError::Other { .. })),
            "{strange}"
        );
    }
}
