//! Each operator's program against the engine, and whole networks against central differences.

use octet_graph::Model;
use octet_graph::prepare::{infer_from, prepare};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::{AttributeProto, ModelProto, TensorProto};
use octet_runtime::Engine;
use octet_test_models::networks::{self, Network, network};
use octet_training::reverse::ReverseProgram;

use super::{Builder, compile};

const SHAPE: [&str; 4] = ["1", "4", "6", "5"];
const SIZES: [usize; 4] = [1, 4, 6, 5];

fn numbers(count: usize) -> Vec<f32> {
    let number = |i: usize| ((i * 7919 + 13) % 2003) as f32 / 801.0 - 1.25;
    (0..count).map(number).collect()
}

fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto::ints(name, values)
}

/// A network of one node that reads x and constants.
fn one(
    operator: &str,
    more: &[&str],
    attributes: Vec<AttributeProto>,
    constants: impl Fn(&mut Network),
) -> Model {
    let mut net = network(&SHAPE);
    constants(&mut net);
    net.node(operator, &[&["x"], more].concat(), &["y"], attributes);
    net.output("y");
    let mut model = Model::from_proto(net.model()).unwrap();
    if operator == "Gelu" {
        model.import("", 20);
    }
    model
}

/// A program, its value x and its output, and the constants by value.
type CompiledNetwork = (ReverseProgram, usize, usize, Vec<Vec<f32>>);

fn program(model: &Model) -> Option<CompiledNetwork> {
    program_of(model, &SIZES, false)
}

fn program_of(model: &Model, sizes: &[usize], learned: bool) -> Option<CompiledNetwork> {
    let types = infer_from(&model.graph, &[sizes]);
    let mut builder = Builder::new(model, &types, &[]);
    let x = builder.input("x")?;
    for node in 0..model.graph.nodes().len() {
        compile(&mut builder, node)?;
    }
    let output = builder.known(model.graph.outputs()[0].name.as_deref()?)?;
    let leaves = [x];
    let learned = if learned { leaves.as_slice() } else { &[] };
    let (program, constants) = builder.program(vec![output], learned)?;
    Some((program, x, output, constants))
}

fn values_of(program: &CompiledNetwork, x: &[f32]) -> Vec<f32> {
    let mut leaves: Vec<&[f32]> = program.3.iter().map(Vec::as_slice).collect();
    leaves[program.1] = x;
    program
        .0
        .forward(&leaves, None, false)
        .value(program.2)
        .to_vec()
}

/// Holds the values of a program against those of the engine.
fn check(model: &Model, name: &str) {
    let program = program(model).expect(name);
    let x = numbers(SIZES.iter().product());
    let tensor = Tensor::new(SIZES.to_vec(), Values::F32(x.clone())).unwrap();
    let engine = Engine::new(model.clone(), Vec::new());
    let outputs = engine.run(vec![tensor], |_, _| {}, || false).expect(name);
    let expected = outputs[0].as_f32().expect(name);
    let actual = values_of(&program, &x);
    assert_eq!(actual.len(), expected.len(), "{name}");
    for (place, (actual, expected)) in actual.iter().zip(expected).enumerate() {
        let error = (actual - expected).abs();
        let close = error < 1e-4 * (1.0 + expected.abs());
        assert!(
            close || actual == expected,
            "{name} at {place}: {actual} {expected}"
        );
    }
}

#[test]
fn elementwise_operators_and_broadcasts() {
    for operator in [
        "Relu",
        "LeakyRelu",
        "Sigmoid",
        "Tanh",
        "HardSwish",
        "HardSigmoid",
        "Erf",
        "Gelu",
        "Exp",
        "Neg",
        "Abs",
        "Softplus",
        "Elu",
        "Softmax",
        "GlobalAveragePool",
        "Identity",
        "Flatten",
    ] {
        check(&one(operator, &[], Vec::new(), |_| {}), operator);
    }
    for operator in ["Add", "Sub", "Mul", "Div", "PRelu"] {
        for sizes in [&[4, 1, 1][..], &[5], &[1, 4, 6, 5], &[1]] {
            check(
                &one(operator, &["c"], Vec::new(), |net| net.weight("c", sizes)),
                operator,
            );
        }
    }
    check(
        &one("Pow", &["c"], Vec::new(), |net| net.number("c", 2.0)),
        "Pow",
    );
    let clip = one("Clip", &["low", "high"], Vec::new(), |net| {
        net.number("low", -0.5);
        net.number("high", 0.75);
    });
    check(&clip, "Clip");
}

#[test]
fn layers_and_pools() {
    for (sizes, group) in [
        ([6, 4, 3, 3], 1),
        ([4, 1, 3, 3], 4),
        ([6, 2, 3, 1], 2),
        ([2, 4, 1, 1], 1),
    ] {
        for attributes in [
            vec![],
            vec![ints("pads", &[1, 0, 2, 1]), ints("strides", &[2, 1])],
            vec![
                AttributeProto::text("auto_pad", "SAME_UPPER"),
                ints("strides", &[2, 2]),
            ],
            vec![ints("pads", &[2, 2, 2, 2]), ints("dilations", &[2, 2])],
        ] {
            let attributes = [attributes, vec![AttributeProto::int("group", group)]].concat();
            let model = one("Conv", &["w", "b"], attributes, |net| {
                net.weight("w", &sizes);
                net.weight("b", &sizes[..1]);
            });
            check(&model, "Conv");
        }
    }
    check(
        &one("MatMul", &["w"], vec![], |net| net.weight("w", &[5, 3])),
        "MatMul",
    );
    check(
        &one("MatMul", &["w"], vec![], |net| net.weight("w", &[4, 5, 3])),
        "MatMul of activations",
    );
    for attributes in [
        vec![],
        vec![ints("pads", &[1, 1, 1, 1])],
        vec![ints("strides", &[2, 2])],
    ] {
        let kernel = vec![ints("kernel_shape", &[2, 3])];
        let attributes = [attributes, kernel].concat();
        check(&one("MaxPool", &[], attributes.clone(), |_| {}), "MaxPool");
        check(
            &one("AveragePool", &[], attributes.clone(), |_| {}),
            "AveragePool",
        );
        let padded = [
            attributes,
            vec![AttributeProto::int("count_include_pad", 1)],
        ]
        .concat();
        check(
            &one("AveragePool", &[], padded, |_| {}),
            "AveragePool with padding",
        );
    }
}

#[test]
fn normalizations_and_means() {
    for axis in [-1, 1, 2] {
        let axis = AttributeProto::int("axis", axis);
        check(&one("Softmax", &[], vec![axis], |_| {}), "Softmax");
    }
    let normal = one("LayerNormalization", &["s", "b"], vec![], |net| {
        net.weight("s", &[5]);
        net.weight("b", &[5]);
    });
    check(&normal, "LayerNormalization");
    let normal = one("InstanceNormalization", &["s", "b"], vec![], |net| {
        net.weight("s", &[4]);
        net.weight("b", &[4]);
    });
    check(&normal, "InstanceNormalization");
    for axes in [&[2, 3][..], &[1], &[-1], &[1, 3]] {
        for keep in [0, 1] {
            let attributes = vec![ints("axes", axes), AttributeProto::int("keepdims", keep)];
            check(&one("ReduceMean", &[], attributes, |_| {}), "ReduceMean");
        }
    }
}

#[test]
fn operators_that_move_values() {
    let list = |operator: &str, values: &[i64], attributes: Vec<AttributeProto>| {
        let model = one(operator, &["l"], attributes, |net| net.list("l", values));
        check(&model, operator);
    };
    list("Reshape", &[2, 2, -1], vec![]);
    list("Unsqueeze", &[0], vec![]);
    list("Squeeze", &[0], vec![]);
    list("Expand", &[3, 4, 6, 5], vec![]);
    list("Pad", &[0, 0, 1, 2, 0, 0, 0, -1], vec![]);
    list("Gather", &[3, 0, 0], vec![AttributeProto::int("axis", 1)]);
    list("Tile", &[1, 2, 1, 1], vec![]);
    check(
        &one("Transpose", &[], vec![ints("perm", &[0, 3, 1, 2])], |_| {}),
        "Transpose",
    );
    check(
        &one(
            "DepthToSpace",
            &[],
            vec![AttributeProto::int("blocksize", 2)],
            |_| {},
        ),
        "DepthToSpace",
    );
    check(
        &one(
            "Concat",
            &["c", "x"],
            vec![AttributeProto::int("axis", 1)],
            |net| net.weight("c", &[1, 2, 6, 5]),
        ),
        "Concat",
    );
    let slice = one("Slice", &["from", "to", "axes", "steps"], vec![], |net| {
        net.list("from", &[-1, 1]);
        net.list("to", &[0, 4]);
        net.list("axes", &[2, 3]);
        net.list("steps", &[-2, 1]);
    });
    check(&slice, "Slice");
    let resize = one(
        "Resize",
        &["", "scales"],
        vec![AttributeProto::text("mode", "nearest")],
        |net| {
            net.constant(TensorProto::from_f32("scales", &[4], &[1.0, 1.0, 2.0, 2.0]));
        },
    );
    check(&resize, "Resize");
}

#[test]
fn operators_without_gradients_are_named_by_none() {
    let linear = AttributeProto::text("mode", "linear");
    let resize = one("Resize", &["", "scales"], vec![linear], |net| {
        net.constant(TensorProto::from_f32("scales", &[4], &[1.0, 1.0, 2.0, 2.0]));
    });
    assert!(program(&resize).is_none());
    assert!(program(&one("Floor", &[], vec![], |_| {})).is_none());
    let pool = vec![
        ints("kernel_shape", &[2, 2]),
        AttributeProto::int("ceil_mode", 1),
    ];
    assert!(program(&one("MaxPool", &[], pool, |_| {})).is_none());
}

/// Attention of two heads and a feed-forward part, each with a normalization and a residual sum.
fn attention() -> ModelProto {
    let mut net = network(&["1", "6", "8"]);
    net.list("heads", &[1, 6, 2, 4]);
    net.list("joined", &[1, 6, 8]);
    net.number("root", 0.5);
    for name in ["n.s", "n.b", "m.s", "m.b"] {
        net.weight(name, &[8]);
    }
    let perm = |axes: &[i64]| vec![ints("perm", axes)];
    net.plain("LayerNormalization", &["x", "n.s", "n.b"], "n");
    for (name, axes) in [
        ("q", [0, 2, 1, 3]),
        ("k", [0, 2, 3, 1]),
        ("v", [0, 2, 1, 3]),
    ] {
        let [flat, split] = ["flat", "split"].map(|word| format!("{name}.{word}"));
        net.linear("n", &flat, 8, 8);
        net.plain("Reshape", &[&flat, "heads"], &split);
        net.node("Transpose", &[&split], &[name], perm(&axes));
    }
    net.plain("MatMul", &["q", "k"], "scores");
    net.plain("Mul", &["scores", "root"], "scaled");
    net.plain("Softmax", &["scaled"], "shares");
    net.plain("MatMul", &["shares", "v"], "mixed");
    net.node("Transpose", &["mixed"], &["rows"], perm(&[0, 2, 1, 3]));
    net.plain("Reshape", &["rows", "joined"], "all");
    net.linear("all", "out", 8, 8);
    net.plain("Add", &["x", "out"], "sum");
    net.plain("LayerNormalization", &["sum", "m.s", "m.b"], "m");
    net.linear("m", "wide", 8, 16);
    net.plain("Erf", &["wide"], "erf");
    net.plain("Mul", &["wide", "erf"], "active");
    net.linear("active", "narrow", 16, 8);
    net.plain("Add", &["sum", "narrow"], "y");
    net.output("y");
    net.model()
}

#[test]
fn whole_networks_have_the_gradients_of_their_differences() {
    let mobile = networks::mobile(&["1", "3", "8", "8"]);
    for (model, sizes) in [(mobile, [1, 3, 8, 8].as_slice()), (attention(), &[1, 6, 8])] {
        let model = prepare(Model::from_proto(model).unwrap()).unwrap().model;
        let program = program_of(&model, sizes, true).unwrap();
        let x = numbers(sizes.iter().product());
        let mut leaves: Vec<&[f32]> = program.3.iter().map(Vec::as_slice).collect();
        leaves[program.1] = &x;
        let run = program.0.forward(&leaves, None, true);
        let slope = numbers(program.0.len_of(program.2));
        let gradients = program
            .0
            .backward(&leaves, run, vec![(program.2, slope.clone())]);
        let gradient = gradients[program.1].as_ref().unwrap();
        let most = gradient
            .iter()
            .fold(0.0f32, |most, one| most.max(one.abs()));
        for place in (0..x.len()).step_by(x.len() / 17) {
            let step = 2e-3;
            let value = |step: f32| -> f64 {
                let mut moved = x.clone();
                moved[place] += step;
                let pairs = values_of(&program, &moved);
                pairs
                    .iter()
                    .zip(&slope)
                    .map(|(y, slope)| f64::from(y * slope))
                    .sum()
            };
            let difference = (value(step) - value(-step)) / (2.0 * f64::from(step));
            let error = (difference - f64::from(gradient[place])).abs();
            assert!(
                error < 0.02 * f64::from(most),
                "{place}: {} {difference}",
                gradient[place]
            );
        }
    }
}
