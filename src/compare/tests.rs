use super::*;
use crate::graph::{Dim, TensorType};
use crate::onnx::schema::{DataType, GraphProto, ModelProto, NodeProto, ValueInfoProto};
use crate::tensor::Values;

#[test]
fn what_rounds_to_an_end_is_not_outside() {
    // Steps of 1/127 from -1.008 to 1: values up to half a step beyond an end round to it.
    let outside = FakeQuantization::of(1.0 / 127.0, (-128.0, 127.0)).outside();
    let result = [-1.0, 1.0, 1.003, -1.011, 1.005, -1.013, f32::INFINITY].map(outside);
    assert_eq!(result, [false, false, false, false, true, true, true]);
}

/// A model of one operator on four floats.
fn model(operator: &str) -> Model {
    let floats = TensorType {
        element: DataType::Float,
        shape: Some(vec![Dim::Known(1), Dim::Known(4)]),
    };
    let port = |name: &str| ValueInfoProto::new(name, &floats);
    let graph = GraphProto {
        node: vec![NodeProto::new(operator, "n", &["x"], &["y"])],
        input: vec![port("x")],
        output: vec![port("y")],
        ..Default::default()
    };
    Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
}

fn sample(first: f32) -> Tensor {
    Tensor::new(vec![1, 4], Values::F32(vec![first, 1.0, -2.0, 3.0])).unwrap()
}

#[test]
fn where_layers_fail_the_outputs_are_compared_and_the_reason_is_told() {
    let mut comparing = Comparing::new(model("Relu"), model("Relu")).unwrap();
    comparing.feed(&[sample(0.5)], None, || false).unwrap();
    // Simulates a combined model that can't be planned for the second sample.
    if let Ok(layers) = &mut comparing.layers {
        layers.engine = Engine::new(model("Frobnicate"), Vec::new());
    }
    comparing.feed(&[sample(0.25)], None, || false).unwrap();
    comparing.feed(&[sample(0.125)], None, || false).unwrap();
    let result = comparing.finish();
    let reason = result.layers_failed.unwrap();
    assert!(reason.contains("Frobnicate"), "{reason}");
    assert!(result.layers.is_empty() && result.worst.is_empty());
    assert_eq!(result.samples, 3);
    assert_eq!(result.outputs[0].apart.sqnr, difference::EQUAL_SQNR);
}

#[test]
fn outputs_alone_are_compared_as_with_the_layers() {
    let begin = [Comparing::of_outputs, Comparing::new];
    let [alone, whole] = begin.map(|begin| {
        let mut comparing = begin(model("Relu"), model("Tanh")).unwrap();
        for first in [0.5, 0.25] {
            comparing.feed(&[sample(first)], None, || false).unwrap();
        }
        comparing
    });
    assert!(alone.is_of_outputs() && !whole.is_of_outputs());
    let [alone, whole] = [alone, whole].map(Comparing::finish);
    assert_eq!(alone.layers_failed, None);
    assert!(alone.layers.is_empty() && !whole.layers.is_empty());
    assert_eq!(alone.samples, whole.samples);
    assert_eq!(alone.outputs[0].apart.sqnr, whole.outputs[0].apart.sqnr);
    assert!(alone.outputs[0].apart.sqnr < 20.0);
}

#[test]
fn what_neither_model_can_run_is_an_error_and_no_comparison() {
    let mut comparing = Comparing::new(model("Relu"), model("Relu")).unwrap();
    let short = Tensor::new(vec![1, 4], Values::I64(vec![1; 4])).unwrap();
    let failed = comparing.feed(&[short.clone(), short], None, || false);
    assert!(matches!(failed, Err(CompareError::Engine(_))));
    let stopped = comparing.feed(&[sample(0.5)], None, || true);
    assert!(matches!(
        stopped,
        Err(CompareError::Engine(EngineError::Stopped))
    ));
    // Neither error ends the comparison.
    comparing.feed(&[sample(0.5)], None, || false).unwrap();
    assert_eq!(comparing.finish().layers_failed, None);
}
