//! Regions of quantized models, compiled and run without an engine.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use octet_graph::prepare::infer_from;
use octet_graph::{Model, TensorType};
use octet_int8::{
    ElementKind, FloatEvaluator, Fused, OutputSlice, Processor, Program, REGION, RegionInput,
    Scope, compile, rewrite_for_integers,
};
use octet_onnx::in_memory::Tensor;
use octet_onnx::schema::TensorProto;
use octet_test_models::qdq::{QdqModel, network};
use octet_test_models::{assert_valid, node, numbers};

/// None of these models needs a table.
struct NoTables;

impl FloatEvaluator for NoTables {
    fn evaluate(&self, _: Model, _: Vec<Tensor>) -> Result<Vec<Tensor>, String> {
        Err("no float engine".into())
    }
}

/// Compiles a model for an input of this shape.
fn compiled(mut model: Model, shape: &[usize]) -> Fused {
    rewrite_for_integers(&mut model, &[]);
    let inferred = infer_from(&model.graph, &[shape]).into_iter();
    let types: BTreeMap<String, TensorType> = inferred
        .map(|(name, value)| {
            let (element, shape) = (value.element, value.shape);
            (name, TensorType { element, shape })
        })
        .collect();
    compile(
        model,
        &types,
        &[],
        (Scope::Integers, Processor::Exact),
        &NoTables,
    )
    .unwrap()
}

fn regions(fused: &Fused) -> BTreeSet<usize> {
    fused.nodes.iter().filter_map(|node| node.region).collect()
}

/// The output of a program with one input and one output of bytes.
fn run(program: &Program, input: &[f32]) -> Vec<u8> {
    let output = program.outputs().next().unwrap();
    assert!(matches!(output.kind, ElementKind::Byte { signed: false }));
    let mut bytes = vec![0; output.shape.iter().product()];
    let mut slices = [OutputSlice::Bytes(&mut bytes)];
    program
        .run(&[RegionInput::Floats(input)], &mut slices, None)
        .unwrap();
    bytes
}

#[test]
fn a_network_is_one_region_and_its_list_names_every_step() {
    let fused = compiled(network(), &[2, 5, 24, 20]);
    assert_valid(&fused.model);
    assert_eq!(regions(&fused), BTreeSet::from([0]), "{:#?}", fused.nodes);
    let floats = fused.nodes.iter().filter(|node| node.reason.is_some());
    assert_eq!(floats.count(), 0, "{:#?}", fused.nodes);
    let nodes = fused.model.graph.nodes();
    assert!(nodes.iter().any(|node| node.is(REGION)), "{nodes:?}");
    assert_eq!((fused.programs.len(), fused.steps.len()), (1, 1));
    let operators: BTreeSet<&str> = fused.nodes.iter().map(|n| n.operator.as_str()).collect();
    for operator in ["Conv", "Add", "Concat", "MaxPool"] {
        assert!(operators.contains(operator), "{operators:?}");
    }
    let depthwise = fused.nodes.iter().find(|node| node.node == "the_b");
    assert_eq!(depthwise.unwrap().output_shape, [2, 24, 24, 20]);
}

#[test]
fn a_program_gives_the_same_bytes_for_any_number_of_threads() {
    let shape = [1, 5, 40, 36];
    let mut p = QdqModel::default();
    let x = p.pair("x", 0.02);
    let a = p.convolution(&x, "a", &[24, 5, 3, 3], 1);
    let b = p.convolution(&a, "b", &[24, 1, 5, 5], 24);
    p.convolution(&b, "c", &[24, 24, 1, 1], 1);
    let fused = compiled(p.model(&["c_integers"]), &shape);
    assert_eq!(fused.programs.len(), 1);
    let program = &fused.programs[0];
    let input: Vec<f32> = numbers(1, shape.iter().product());
    let first = run(program, &input);
    assert!(first.iter().collect::<BTreeSet<_>>().len() > 20);
    for threads in [1, 2, 4] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        for _ in 0..2 {
            let again = pool.install(|| run(program, &input));
            assert_eq!(again, first, "{threads} threads");
        }
    }
}

#[test]
fn a_float_operator_on_a_path_back_splits_the_region() {
    let mut p = QdqModel::default();
    let x = p.pair("x", 0.02);
    let a = p.convolution(&x, "a", &[5, 5, 1, 1], 1);
    p.constants.push(TensorProto::from_i64("axis", &[], &[2]));
    p.node("CumSum", &[&a, "axis"], "away");
    let away = p.pair("away", 0.3);
    p.node("Add", &[&a, &away], "sum");
    let sum = p.pair("sum", 0.3);
    let fused = compiled(p.model(&[&sum]), &[1, 5, 6, 6]);
    assert_valid(&fused.model);
    assert_eq!(regions(&fused).len(), 2, "{:#?}", fused.nodes);
    let floats = fused.nodes.iter().filter(|node| node.reason.is_some());
    let floats: Vec<&str> = floats.map(|node| node.operator.as_str()).collect();
    assert_eq!(floats, ["CumSum"]);
}

#[test]
fn a_float_model_compiles_to_itself() {
    let model = octet_test_models::model(vec![node("Relu", &["x"], "y")], vec![], &["y"]);
    let fused = compiled(model.clone(), &[2, 3]);
    assert_eq!(fused.model.graph.nodes(), model.graph.nodes());
    assert_eq!(regions(&fused), BTreeSet::new());
    assert!(fused.nodes[0].reason.is_some());
}
