//! Threads that share one sample: the bits of the results are the same for any number of them.
//!
//! A program of its own, because it sets the size of rayon's global pool.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, Ordering};

use octet_graph::{Dim, Model, TensorType};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::{
    AttributeProto, DataType, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto,
};
use octet_runtime::{Engine, Timing};
use octet_test_models::qdq::network;

const THREADS: usize = 3;

fn three_threads() {
    // An error means that another test was first.
    let _ = rayon::ThreadPoolBuilder::new()
        .num_threads(THREADS)
        .build_global();
    assert_eq!(rayon::current_num_threads(), THREADS);
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count)
        .map(|at| (at * 7919 % 1009) as f32 / 504.5 - 1.0)
        .collect()
}

/// A 3×3 convolution with stride 2, a depthwise one, a 1×1 one, a sum and a pool, each large enough
/// to share.
fn float_model() -> Model {
    let shape = [1, 16, 61, 50].map(Dim::Known).to_vec();
    let declared = TensorType {
        element: DataType::Float,
        shape: Some(shape),
    };
    let weight = |name: &str, shape: &[usize]| {
        TensorProto::from_f32(name, shape, &numbers(shape.iter().product()))
    };
    let conv = |output: &str, inputs: &[&str], attributes: &[AttributeProto]| {
        let mut node = NodeProto::new("Conv", output, inputs, &[output]);
        node.attribute = attributes.to_vec();
        node
    };
    let pads = AttributeProto::ints("pads", &[1; 4]);
    let mut pool = NodeProto::new("MaxPool", "y", &["s"], &["y"]);
    pool.attribute = vec![
        AttributeProto::ints("kernel_shape", &[3, 3]),
        AttributeProto::ints("strides", &[2, 2]),
        pads.clone(),
    ];
    let graph = GraphProto {
        node: vec![
            conv(
                "a",
                &["x", "wa"],
                &[pads.clone(), AttributeProto::ints("strides", &[2, 2])],
            ),
            conv("b", &["a", "wb"], &[pads, AttributeProto::int("group", 48)]),
            conv("c", &["b", "wc"], &[]),
            NodeProto::new("Relu", "r", &["c"], &["r"]),
            NodeProto::new("Add", "s", &["r", "c"], &["s"]),
            pool,
        ],
        input: vec![ValueInfoProto::new("x", &declared)],
        output: vec![ValueInfoProto {
            name: Some("y".into()),
            ..Default::default()
        }],
        initializer: vec![
            weight("wa", &[48, 16, 3, 3]),
            weight("wb", &[48, 1, 3, 3]),
            weight("wc", &[96, 48, 1, 1]),
        ],
        ..Default::default()
    };
    Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
}

fn sample(shape: &[usize]) -> [Tensor; 1] {
    let values = numbers(shape.iter().product());
    [Tensor::new(shape.to_vec(), Values::F32(values)).unwrap()]
}

fn run(engine: &Engine, inputs: &[Tensor]) -> Vec<Tensor> {
    engine.run(inputs, |_, _| {}, || false).unwrap()
}

#[test]
fn floats_are_bit_equal_on_any_number_of_threads() {
    three_threads();
    let inputs = sample(&[1, 16, 61, 50]);
    let engine = Engine::new(float_model(), Vec::new()).with_kernels(true);
    let alone = octet_int8::with_threads(1, || run(&engine, &inputs));
    assert!(alone[0].as_f32().unwrap().iter().any(|v| *v != 0.0));
    for threads in [2, 3] {
        let before = octet_int8::parallel_operators();
        let shared = octet_int8::with_threads(threads, || run(&engine, &inputs));
        assert_eq!(octet_int8::parallel_operators() - before, 6);
        assert_eq!(shared, alone, "{threads} threads");
    }
}

#[test]
fn a_run_that_is_one_of_several_samples_has_one_thread() {
    three_threads();
    let inputs = sample(&[1, 16, 61, 50]);
    let engine = Engine::new(float_model(), Vec::new()).with_kernels(true);
    let (sender, receiver) = std::sync::mpsc::channel();
    rayon::spawn(move || {
        let before = octet_int8::parallel_operators();
        run(&engine, &inputs);
        let parallel = octet_int8::parallel_operators() - before;
        sender.send(parallel).unwrap();
    });
    assert_eq!(receiver.recv().unwrap(), 0);
}

/// Counts the runs by their number of threads.
#[derive(Default)]
struct Threads(Vec<(usize, bool)>);

impl Timing for Threads {
    fn begin(&mut self, _: usize) {}

    fn end(&mut self, _: usize) {}

    fn threads(&mut self, threads: usize, trial: bool) {
        self.0.push((threads, trial));
    }
}

#[test]
fn measured_runs_try_numbers_of_threads_and_give_the_same_bits() {
    /// A clock that moves on at each reading.
    fn ticks() -> f64 {
        static TICKS: AtomicU64 = AtomicU64::new(0);
        TICKS.fetch_add(1, Ordering::Relaxed) as f64
    }
    three_threads();
    for (model, shape) in [
        (float_model(), vec![1, 16, 61, 50]),
        (network(), vec![1, 5, 40, 36]),
    ] {
        let inputs = sample(&shape);
        let engine = Engine::new(model, Vec::new())
            .with_kernels(true)
            .on_integers();
        let expected = run(&engine, &inputs);
        let engine = engine.choosing_threads(ticks);
        let mut threads = Threads::default();
        for _ in 0..12 {
            let mut timing = Threads::default();
            let outputs = engine.run_timed(&inputs, &mut timing, |_| false, || false);
            assert_eq!(outputs.unwrap(), expected);
            threads.0.extend(timing.0);
        }
        // All runs take one tick, so all numbers are tried, and then the first stays.
        assert_eq!(threads.0[..3], [(3, false), (3, true), (1, true)]);
        assert_eq!(threads.0.last(), Some(&(3, false)));
    }
}
