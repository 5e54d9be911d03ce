//! The scales keep the float function, and no error grows.

use std::collections::HashMap;

use octet_graph::{Graph, Model, Node};
use octet_onnx::schema::DataType;
use octet_onnx::schema::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use octet_onnx::{Dim, TensorType};
use octet_stats::{CalibrationStatistics, InputGram, TensorStatistics};

use super::{groups, search};
use crate::blocks::{BlockMethod, BlockSettings};

const WIDE: usize = 32;
const INNER: usize = 48;
const TOKENS: usize = 40;

fn numbers(seed: u32, count: usize) -> Vec<f32> {
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count).map(|_| random()).collect()
}

/// A normalized value with outliers, a gated feed-forward part, and a product that reads the norm's
/// constant's other user.
fn model() -> Model {
    let mut gamma = vec![1.0; WIDE];
    gamma[3] = 30.0;
    gamma[17] = 12.0;
    let weight = |name: &str, rows: usize, columns: usize, seed| {
        TensorProto::from_f32(name, &[rows, columns], &numbers(seed, rows * columns))
    };
    let nodes = vec![
        NodeProto::new("Mul", "norm", &["x", "gamma"], &["n"]),
        NodeProto::new("MatMul", "gate", &["n", "g"], &["gates"]),
        NodeProto::new("MatMul", "up", &["n", "u"], &["wide"]),
        NodeProto::new("Sigmoid", "sigmoid", &["gates"], &["open"]),
        NodeProto::new("Mul", "inner", &["open", "wide"], &["i"]),
        NodeProto::new("MatMul", "down", &["i", "d"], &["o"]),
        NodeProto::new("Mul", "other", &["o", "gamma"], &["y"]),
    ];
    let port = |name: &str| {
        let shape = Some(vec![Dim::Known(TOKENS), Dim::Known(WIDE)]);
        let element = DataType::Float;
        ValueInfoProto::new(name, &TensorType { element, shape })
    };
    let graph = GraphProto {
        name: Some("g".into()),
        node: nodes,
        initializer: vec![
            TensorProto::from_f32("gamma", &[WIDE], &gamma),
            weight("g", WIDE, INNER, 1),
            weight("u", WIDE, INNER, 2),
            weight("d", INNER, WIDE, 3),
        ],
        input: vec![port("x")],
        output: vec![port("y")],
        ..GraphProto::default()
    };
    Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
}

/// All values of a model of Mul, MatMul and Sigmoid.
fn run(model: &Model) -> HashMap<String, Vec<f32>> {
    let graph: &Graph = &model.graph;
    let mut values: HashMap<String, Vec<f32>> = HashMap::new();
    for tensor in graph.initializers.iter() {
        values.insert(tensor.name.clone().unwrap(), tensor.to_f32().unwrap());
    }
    values.insert("x".into(), numbers(9, TOKENS * WIDE));
    for node in graph.nodes() {
        let input = |slot: usize| &values[&node.input[slot]];
        let result: Vec<f32> = match node.op_type.as_str() {
            "Mul" => {
                let (one, other) = (input(0), input(1));
                let factors = other.iter().cycle();
                one.iter().zip(factors).map(|(a, b)| a * b).collect()
            }
            "Sigmoid" => input(0).iter().map(|v| 1.0 / (1.0 + (-v).exp())).collect(),
            _ => {
                let weight = input(1);
                let columns = graph.initializers.get(&node.input[1]).unwrap().dims[1] as usize;
                let rows = weight.len() / columns;
                let row = |row: &[f32]| -> Vec<f32> {
                    let column = |column: usize| {
                        let products = row.iter().enumerate();
                        let products = products.map(|(at, v)| {
                            f64::from(*v) * f64::from(weight[at * columns + column])
                        });
                        products.sum::<f64>() as f32
                    };
                    (0..columns).map(column).collect()
                };
                input(0).chunks(rows).flat_map(row).collect()
            }
        };
        values.insert(node.output[0].clone(), result);
    }
    values
}

/// The Gram matrices of the values that products read.
fn statistics(model: &Model) -> CalibrationStatistics {
    let values = run(model);
    let mut seen = CalibrationStatistics::new();
    for (value, view) in crate::gram_views(model) {
        let numbers = &values[&value];
        let wide = numbers.len() / TOKENS;
        let mut statistics = TensorStatistics::from_values(numbers);
        let mut gram = InputGram::new(view, statistics.magnitude());
        gram.observe(numbers, &[TOKENS, wide]);
        statistics.add_input_gram(gram);
        seen.insert(value, statistics);
    }
    seen
}

fn of(_: &Node) -> BlockSettings {
    BlockSettings {
        method: BlockMethod::Awq,
        ..BlockSettings::default()
    }
}

#[test]
fn scales_keep_the_float_function_and_the_constants_of_others() {
    let model = model();
    let seen = statistics(&model);
    let scaled = super::scaled(&model, &of, &|_| true, &seen).unwrap();
    let (before, after) = (run(&model), run(&scaled.model));
    let size = before["y"].iter().fold(0.0f32, |most, v| most.max(v.abs()));
    for (one, other) in before["y"].iter().zip(&after["y"]) {
        assert!((one - other).abs() <= 1e-6 * size, "{one} {other}");
    }
    // The last node reads the constant as it was, the first one a constant of its own.
    assert_eq!(before["gamma"], after["gamma"]);
    let nodes = scaled.model.graph.nodes();
    assert_eq!(nodes[0].input[1], "gamma_scaled");
    assert_ne!(before["g"], after["g"]);
    assert!(scaled.notes[0].contains("dB"), "{:?}", scaled.notes);
}

#[test]
fn one_scale_serves_all_products_of_a_value_and_no_error_grows() {
    let model = model();
    let seen = statistics(&model);
    let found = groups::groups(&model, &|_| true);
    assert_eq!(found.products, 3);
    let sizes: Vec<usize> = found
        .groups
        .iter()
        .map(|group| group.products.len())
        .collect();
    assert_eq!(sizes, [2, 1]);
    for group in &found.groups {
        let outcome = search::best(&model, group, &of, &seen).unwrap().unwrap();
        assert!(outcome.after <= outcome.before);
        if group.products.len() == 2 {
            // The outliers of the norm are worth a scale.
            assert!(
                outcome.after < 0.7 * outcome.before,
                "{} {}",
                outcome.before,
                outcome.after
            );
            let scales = outcome.scales.unwrap();
            assert!(scales[3] > 1.3 * scales[0], "{scales:?}");
        }
    }
}
