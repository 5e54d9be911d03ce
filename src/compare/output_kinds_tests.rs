use super::*;
use crate::graph::{Dim, TensorType};
use crate::onnx::schema::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};

/// A model with one float input `x`.
fn model(nodes: &[(&str, &[&str], &str)], outputs: &[&str]) -> Model {
    let named = |name: &&str| ValueInfoProto {
        name: Some((*name).into()),
        ..Default::default()
    };
    let graph = GraphProto {
        input: ["x"].iter().map(named).collect(),
        output: outputs.iter().map(named).collect(),
        node: nodes
            .iter()
            .map(|(operator, inputs, output)| NodeProto::new(operator, output, inputs, &[*output]))
            .collect(),
        initializer: vec![TensorProto::from_f32("w", &[1], &[1.0])],
        ..Default::default()
    };
    Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
}

fn kind(nodes: &[(&str, &[&str], &str)], output: &str, shape: &[usize]) -> OutputKind {
    OutputTraits::all(&model(nodes, &[output]))[0].kind(shape)
}

#[test]
fn classes_are_told_from_embeddings_by_their_ending_their_name_and_their_width() {
    let dense: &[(&str, &[&str], &str)] = &[("MatMul", &["x", "w"], "y")];
    assert_eq!(kind(dense, "y", &[1, 1000]), OutputKind::Classes);
    assert_eq!(kind(dense, "y", &[1, 512]), OutputKind::Embedding);
    let soft: &[(&str, &[&str], &str)] = &[("MatMul", &["x", "w"], "h"), ("Softmax", &["h"], "y")];
    assert_eq!(kind(soft, "y", &[1, 512]), OutputKind::Classes);
    let named: &[(&str, &[&str], &str)] = &[("MatMul", &["x", "w"], "image_embeds")];
    assert_eq!(
        kind(named, "image_embeds", &[1, 1000]),
        OutputKind::Embedding
    );
    let pooled: &[(&str, &[&str], &str)] = &[("Tanh", &["x"], "y")];
    assert_eq!(kind(pooled, "y", &[1, 300]), OutputKind::Embedding);
    let points: &[(&str, &[&str], &str)] = &[("Gemm", &["x", "w"], "landmarks")];
    assert_eq!(kind(points, "landmarks", &[1, 136]), OutputKind::Values);
    // Behind a pooling layer the classes still have two image axes of size 1.
    let pool: &[(&str, &[&str], &str)] = &[("GlobalAveragePool", &["x"], "y")];
    assert_eq!(kind(pool, "y", &[1, 10, 1, 1]), OutputKind::Classes);
    assert_eq!(kind(pool, "y", &[1, 10, 7, 7]), OutputKind::Values);
}

#[test]
fn steps_of_a_reader_are_told_from_hidden_states() {
    let reads: &[(&str, &[&str], &str)] = &[("MatMul", &["x", "w"], "h"), ("Softmax", &["h"], "y")];
    assert_eq!(kind(reads, "y", &[1, 40, 97]), OutputKind::Steps);
    let maps: &[(&str, &[&str], &str)] = &[("Sigmoid", &["x"], "y")];
    assert_eq!(kind(maps, "y", &[1, 172, 88]), OutputKind::Values);
    let hides: &[(&str, &[&str], &str)] = &[("Add", &["x", "w"], "last_hidden_state")];
    assert_eq!(
        kind(hides, "last_hidden_state", &[1, 40, 384]),
        OutputKind::Embedding
    );
}

#[test]
fn what_is_only_passed_through_or_is_integers_tells_nothing() {
    let passes: &[(&str, &[&str], &str)] = &[("Identity", &["x"], "ids"), ("Tanh", &["x"], "y")];
    let traits = OutputTraits::all(&model(passes, &["ids", "y"]));
    assert_eq!(traits[0].kind(&[1, 16]), OutputKind::Passed);
    assert_eq!(traits[1].kind(&[1, 384]), OutputKind::Embedding);
    let whole = OutputTraits {
        integers: true,
        ..OutputTraits::default()
    };
    assert_eq!(whole.kind(&[1, 1000]), OutputKind::Integers);
    assert!(!OutputKind::Integers.is_judged() && !OutputKind::Passed.is_judged());
}

#[test]
fn numbers_of_a_table_are_classes_only_if_they_say_so() {
    let kind_of = |nodes: &[(&str, &[&str], &str)], output: &str| {
        let mut model = model(nodes, &[output]);
        let row = TensorType {
            element: DataType::Float,
            shape: Some(vec![Dim::Named("N".into()), Dim::Known(6)]),
        };
        model.graph.inputs = vec![ValueInfoProto::new("x", &row)];
        OutputTraits::all(&model)[0].kind(&[1, 7])
    };
    let dense: &[(&str, &[&str], &str)] = &[("Gemm", &["x", "w"], "y")];
    assert_eq!(kind_of(dense, "y"), OutputKind::Values);
    let named: &[(&str, &[&str], &str)] = &[("Gemm", &["x", "w"], "logits")];
    assert_eq!(kind_of(named, "logits"), OutputKind::Classes);
    let soft: &[(&str, &[&str], &str)] = &[("Gemm", &["x", "w"], "h"), ("Softmax", &["h"], "y")];
    assert_eq!(kind_of(soft, "y"), OutputKind::Classes);
}
