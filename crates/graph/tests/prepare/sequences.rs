//! Sequences and optional values with known elements are removed; readers of an element read the
//! tensor.

use octet_graph::Model;
use octet_onnx::schema::*;

use octet_test_models::operators;

use super::{Sketch, node};

fn prepared(nodes: Vec<NodeProto>) -> Model {
    let constants = vec![
        TensorProto::from_i64("zero", &[], &[0]),
        TensorProto::from_i64("last", &[], &[-1]),
        TensorProto::from_i64("two", &[], &[2]),
        TensorProto::from_i64("sizes", &[2], &[1, 4]),
    ];
    Sketch {
        opset: 17,
        input: vec![2, 5],
        nodes,
        constants,
    }
    .prepared()
}

fn along(node: NodeProto, axis: i64) -> NodeProto {
    node.with(AttributeProto::int("axis", axis))
}

#[test]
fn an_element_of_a_sequence_is_the_tensor_that_was_put_there() {
    let model = prepared(vec![
        node("SequenceEmpty", &[], "none"),
        node("Neg", &["x"], "n"),
        node("Abs", &["x"], "a"),
        node("SequenceInsert", &["none", "n"], "one"),
        node("SequenceInsert", &["one", "a", "zero"], "both"),
        node("SequenceInsert", &["both", "x"], "all"),
        node("SequenceErase", &["all", "last"], "rest"),
        node("SequenceAt", &["rest", "last"], "found"),
        node("Relu", &["found"], "y"),
    ]);
    assert_eq!(operators(&model), ["Neg", "Relu"]);
    assert_eq!(model.graph.nodes()[1].input, ["n"]);
}

#[test]
fn a_tensor_is_split_and_joined_without_a_sequence() {
    for (split, parts) in [("sizes", vec![1, 4]), ("two", vec![2, 2, 1])] {
        let model = prepared(vec![
            along(node("SplitToSequence", &["x", split], "parts"), 1),
            along(node("ConcatFromSequence", &["parts"], "y"), -1),
        ]);
        assert_eq!(operators(&model), ["Split", "Concat"]);
        let [split, concat] = model.graph.nodes() else {
            unreachable!()
        };
        assert_eq!(split.output, concat.input);
        let sizes = model.graph.initializers.get(&split.input[1]).unwrap();
        assert_eq!(sizes.to_i64().unwrap(), parts);
    }
    // Single rows, stacked again along another axis.
    let rows = along(node("SplitToSequence", &["x"], "rows"), 0);
    let stack = along(node("ConcatFromSequence", &["rows"], "y"), 1);
    let model = prepared(vec![
        rows.with(AttributeProto::int("keepdims", 0)),
        stack.with(AttributeProto::int("new_axis", 1)),
    ]);
    let expected = [
        "Split",
        "Squeeze",
        "Squeeze",
        "Unsqueeze",
        "Unsqueeze",
        "Concat",
    ];
    assert_eq!(operators(&model), expected);
}

#[test]
fn what_is_asked_of_an_optional_value_is_answered() {
    let model = prepared(vec![
        node("Optional", &["x"], "maybe"),
        node("OptionalHasElement", &["maybe"], "has"),
        node("OptionalGetElement", &["maybe"], "value"),
        node("Where", &["has", "value", "x"], "y"),
    ]);
    assert_eq!(operators(&model), ["Where"]);
    assert_eq!(model.graph.nodes()[0].input[1..], ["x", "x"]);
    let has = model.graph.initializers.get("has").unwrap();
    assert_eq!(has.to_i64().unwrap(), [1]);
}

#[test]
fn a_sequence_of_which_a_place_is_computed_stays() {
    let model = prepared(vec![
        node("SequenceConstruct", &["x", "x"], "both"),
        node("NonZero", &["x"], "places"),
        node("Shape", &["places"], "shape"),
        node("Gather", &["shape", "zero"], "place"),
        node("SequenceAt", &["both", "place"], "y"),
    ]);
    let left = operators(&model);
    assert!(left.contains(&"SequenceConstruct".to_owned()), "{left:?}");
    assert!(left.contains(&"SequenceAt".to_owned()), "{left:?}");
}
