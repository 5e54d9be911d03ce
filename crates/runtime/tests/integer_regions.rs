//! Integer regions: results equal those of the QDQ pairs, for any number of threads and any run.
//! A list names every node.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::{AttributeProto, TensorProto};
use octet_runtime::{Engine, FusedNode};
use octet_test_models::qdq::{QdqModel, network};

fn sample(shape: &[usize]) -> Vec<Tensor> {
    let count: usize = shape.iter().product();
    let values = (0..count)
        .map(|i| ((i as f32) * 0.37).sin() * 2.0)
        .collect();
    vec![Tensor::new(shape.to_vec(), Values::F32(values)).unwrap()]
}

fn run(engine: &Engine, inputs: &[Tensor]) -> Vec<Tensor> {
    engine.run(inputs, |_, _| {}, || false).unwrap()
}

fn regions(nodes: &[FusedNode]) -> BTreeSet<usize> {
    nodes.iter().filter_map(|node| node.region).collect()
}

/// The values in units of a scale.
fn steps(tensor: &Tensor, scale: f32) -> Vec<i32> {
    let values = tensor.as_f32().unwrap().iter();
    values.map(|v| (v / scale).round() as i32).collect()
}

#[test]
fn a_network_runs_in_one_region_and_equals_its_pairs() {
    let inputs = sample(&[2, 5, 24, 20]);
    let integers = Engine::new(network(), vec![]).on_integers();
    let fused = integers.fused(&inputs, &|| false).unwrap();
    assert_eq!(regions(&fused), BTreeSet::from([0]), "{fused:#?}");
    assert!(fused.iter().all(|node| node.reason.is_none()), "{fused:#?}");
    let conv = fused.iter().find(|node| node.node == "the_a").unwrap();
    assert_eq!(conv.operation, "convolution");
    assert_eq!(conv.fused, ["the_a_integers"]);
    assert_eq!((&conv.inputs[0][..], &conv.output[..]), ("uint8", "uint8"));
    assert_eq!(conv.output_shape, [2, 24, 24, 20]);

    let float = run(&Engine::new(network(), vec![]), &inputs);
    let found = run(&integers, &inputs);
    let (expected, found) = (steps(&float[0], 0.07), steps(&found[0], 0.07));
    let apart: Vec<i32> = expected
        .iter()
        .zip(&found)
        .map(|(a, b)| (a - b).abs())
        .collect();
    assert!(
        apart.iter().all(|&a| a <= 1),
        "{} apart",
        apart.iter().max().unwrap()
    );
    let equal = apart.iter().filter(|&&a| a == 0).count();
    assert!(equal * 100 > apart.len() * 98, "{equal} of {}", apart.len());
    assert!(
        found.iter().collect::<BTreeSet<_>>().len() > 20,
        "a constant result shows nothing"
    );
}

#[test]
fn results_are_bit_equal_for_any_number_of_threads() {
    let inputs = sample(&[1, 5, 40, 36]);
    let engine = Engine::new(network(), vec![]).on_integers();
    let first = run(&engine, &inputs);
    for threads in [1, 2, 4] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        for _ in 0..2 {
            assert_eq!(
                pool.install(|| run(&engine, &inputs)),
                first,
                "{threads} threads"
            );
        }
    }
}

#[test]
fn new_shapes_and_concurrent_runs_are_right() {
    let engine = Engine::new(network(), vec![]).on_integers();
    let float = Engine::new(network(), vec![]);
    for size in [8, 12, 9] {
        let inputs = sample(&[1, 5, size, size + 3]);
        let expected = run(&engine, &inputs);
        assert_eq!(expected[0].shape(), run(&float, &inputs)[0].shape());
        std::thread::scope(|scope| {
            let runs: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| run(&engine, &inputs)))
                .collect();
            for found in runs {
                assert_eq!(found.join().unwrap(), expected);
            }
        });
    }
}

#[test]
fn the_clock_reports_every_step_by_its_index() {
    let inputs = sample(&[1, 5, 10, 10]);
    let engine = Engine::new(network(), vec![]).on_integers();
    let fused = engine.fused(&inputs, &|| false).unwrap();
    let mut heard = BTreeSet::new();
    let timed = engine
        .run_clocked(&inputs, &mut |step| heard.extend([step]), || false)
        .unwrap();
    assert_eq!(timed, run(&engine, &inputs));
    assert_eq!(heard, (0..fused.len()).collect());
}

#[test]
fn a_model_of_two_regions_runs() {
    let mut p = QdqModel::default();
    let x = p.pair("x", 0.02);
    let a = p.convolution(&x, "a", &[5, 5, 1, 1], 1);
    p.constants.push(TensorProto::from_i64("axis", &[], &[2]));
    p.node("CumSum", &[&a, "axis"], "away");
    let away = p.pair("away", 0.3);
    p.node("Add", &[&a, &away], "sum");
    let sum = p.pair("sum", 0.3);
    let engine = Engine::new(p.model(&[&sum]), vec![]).on_integers();
    let inputs = sample(&[1, 5, 6, 6]);
    let fused = engine.fused(&inputs, &|| false).unwrap();
    assert_eq!(regions(&fused).len(), 2, "{fused:#?}");
    let floats: Vec<_> = fused.iter().filter(|node| node.reason.is_some()).collect();
    assert_eq!(floats.len(), 1);
    assert_eq!(floats[0].operator, "CumSum");
    run(&engine, &inputs);
}

#[test]
fn an_observed_value_is_computed_and_the_rest_is_fused() {
    let inputs = sample(&[1, 5, 10, 10]);
    let engine = Engine::new(network(), vec!["b_real".into()]).on_integers();
    let mut seen = Vec::new();
    engine
        .run(
            &inputs,
            |slot, values| seen.push((slot, values.len())),
            || false,
        )
        .unwrap();
    assert_eq!(seen, [(0, 24 * 10 * 10)]);
    assert_eq!(regions(&engine.fused(&inputs, &|| false).unwrap()).len(), 1);
}

#[test]
fn a_float_model_has_nothing_to_list() {
    let model = octet_test_models::model(
        vec![octet_test_models::node("Relu", &["x"], "y")],
        vec![],
        &["y"],
    );
    let engine = Engine::new(model, vec![]).on_integers();
    assert_eq!(engine.fused(&sample(&[2, 3]), &|| false).unwrap(), []);
}

#[test]
fn integer_operators_equal_their_pairs() {
    let parameters = |p: &mut QdqModel, name: &str, scale: f32| {
        let [s, z] = ["scale", "zero"].map(|what| format!("{name}_{what}"));
        p.constants.push(TensorProto::from_f32(&s, &[], &[scale]));
        p.constants.push(TensorProto::from_u8(&z, &[], &[120]));
        [s, z]
    };
    let mut pairs = QdqModel::default();
    let x = pairs.pair("x", 0.02);
    let a = pairs.convolution(&x, "a", &[7, 5, 3, 3], 1);
    let expected = Engine::new(pairs.model(&[&a]), vec![]).on_integers();

    let mut p = QdqModel::default();
    let [xs, xz] = parameters(&mut p, "x", 0.02);
    let [ys, yz] = parameters(&mut p, "a", 0.05);
    p.weight("a_w", &[7, 5, 3, 3]);
    p.nodes.clear();
    p.node("QuantizeLinear", &["x", &xs, &xz], "x_integers");
    let names = ["x_integers", &xs, &xz, "a_w_q", "a_w_s", "a_w_z", &ys, &yz];
    p.node("QLinearConv", &names, "a_integers")
        .set(AttributeProto::ints("pads", &[1; 4]));
    p.node("DequantizeLinear", &["a_integers", &ys, &yz], "y");
    let engine = Engine::new(p.model(&["y"]), vec![]).on_integers();
    let inputs = sample(&[1, 5, 9, 9]);
    assert_eq!(run(&engine, &inputs)[0], run(&expected, &inputs)[0]);
}

#[test]
fn an_operator_without_inputs_between_pairs_is_an_error() {
    let mut pairs = QdqModel::default();
    let x = pairs.pair("x", 0.02);
    pairs.node("Transpose", &[], "moved");
    let moved = pairs.pair("moved", 0.02);
    pairs.node("Add", &[&x, &moved], "y");
    let engine = Engine::new(pairs.model(&["y"]), vec![]).on_integers();
    let inputs = sample(&[1, 5, 9, 9]);
    let error = engine.run(&inputs, |_, _| {}, || false).unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("the_moved") && said.contains("its input 0"),
        "{said}"
    );
}
