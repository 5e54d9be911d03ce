//! Models of older opsets.

use octet_graph::Model;
use octet_graph::prepare::prepare;
use octet_onnx::schema::*;

use octet_test_models::operators;

use crate::{Sketch, node};

#[test]
fn old_operators_are_written_anew() {
    let ints = AttributeProto::ints;
    let scales = AttributeProto {
        name: Some("scales".into()),
        floats: vec![1.0, 1.0, 2.0, 2.0],
        ..AttributeProto::default()
    };
    for (opset, old, inputs) in [
        (
            9,
            node("Slice", &["x"], "y")
                .with(ints("starts", &[0]))
                .with(ints("ends", &[1])),
            3,
        ),
        (
            9,
            node("Clip", &["x"], "y").with(AttributeProto::float("min", 0.0)),
            2,
        ),
        (9, node("Pad", &["x"], "y").with(ints("pads", &[0; 8])), 2),
        (
            9,
            node("TopK", &["x"], "y").with(AttributeProto::int("k", 1)),
            2,
        ),
        (8, node("Upsample", &["x"], "y").with(scales), 3),
        (11, node("Squeeze", &["x"], "y").with(ints("axes", &[0])), 2),
        (
            11,
            node("Unsqueeze", &["x"], "y").with(ints("axes", &[0])),
            2,
        ),
        (
            12,
            node("ReduceSum", &["x"], "y").with(ints("axes", &[1])),
            2,
        ),
        (12, node("Split", &["x"], "y").with(ints("split", &[1])), 2),
    ] {
        let name = old.operator();
        let model = Sketch {
            opset,
            input: vec![1, 3, 4, 4],
            nodes: vec![old],
            constants: vec![],
        }
        .prepared();
        assert_eq!(model.opset(), 13);
        let raised = &model.graph.nodes()[0];
        assert_eq!(raised.input.len(), inputs, "{name}");
        for key in [
            "axes", "starts", "ends", "min", "pads", "k", "scales", "split",
        ] {
            assert!(raised.attribute(key).is_none(), "{name} keeps {key}");
        }
    }
}

#[test]
fn softmax_over_several_axes_keeps_its_meaning() {
    let softmax = |dims: Vec<i64>| {
        let nodes = vec![node("Softmax", &["x"], "y")];
        operators(
            &Sketch {
                opset: 11,
                input: dims,
                nodes,
                constants: vec![],
            }
            .prepared(),
        )
    };
    assert_eq!(softmax(vec![1, 5]), ["Softmax"]);
    // The shape to restore is known, so it is a constant.
    assert_eq!(softmax(vec![1, 5, 4, 4]), ["Flatten", "Softmax", "Reshape"]);
}

#[test]
fn what_cannot_be_raised_is_refused_by_name() {
    let norm = node("BatchNormalization", &["x", "s", "s", "s", "s"], "y");
    let nodes = vec![norm.with(AttributeProto::int("spatial", 0))];
    let constants = vec![TensorProto::from_f32("s", &[1], &[1.0])];
    let proto = Sketch {
        opset: 7,
        input: vec![1, 1, 2, 2],
        nodes,
        constants,
    }
    .proto();
    let error = prepare(Model::from_proto(proto).unwrap())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("node y (BatchNormalization)") && error.contains("spatial"),
        "{error}"
    );
}
