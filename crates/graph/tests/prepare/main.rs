//! Preparation passes, each on a graph of a few nodes.
#![allow(clippy::unwrap_used, missing_docs)]

mod functions;
mod inline_if;
mod opset;
mod sequences;
mod upcast_f16;

use octet_graph::prepare::prepare;
use octet_graph::{Dim, GraphError, Model};
use octet_onnx::schema::*;
use octet_test_models::{operators, typed_value};

fn value(name: &str, dims: &[i64]) -> ValueInfoProto {
    typed_value(name, DataType::Float, dims)
}

struct Sketch {
    opset: i64,
    input: Vec<i64>,
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
}

impl Sketch {
    fn proto(self) -> ModelProto {
        ModelProto {
            ir_version: Some(4),
            opset_import: vec![OperatorSetIdProto {
                domain: None,
                version: Some(self.opset),
            }],
            graph: Some(GraphProto {
                name: Some("g".into()),
                node: self.nodes,
                initializer: self.constants,
                input: vec![value("x", &self.input)],
                output: vec![ValueInfoProto {
                    name: Some("y".into()),
                    ..Default::default()
                }],
                ..GraphProto::default()
            }),
            ..ModelProto::default()
        }
    }

    fn prepared(self) -> Model {
        prepare(Model::from_proto(self.proto()).unwrap())
            .unwrap()
            .model
    }
}

fn node(operator: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto::new(operator, output, inputs, &[output])
}

/// The numbers of the constant in a slot of the first node.
fn constant_of(model: &Model, slot: usize) -> Vec<f32> {
    let name = model.graph.nodes()[0].input_at(slot).unwrap();
    let tensor = model.graph.initializers.get(name).unwrap();
    tensor.to_f32().unwrap()
}

#[test]
fn a_graph_that_contradicts_itself_is_refused_by_name() {
    let error = |nodes: Vec<NodeProto>| {
        let sketch = Sketch {
            opset: 13,
            input: vec![1],
            nodes,
            constants: vec![],
        };
        Model::from_proto(sketch.proto()).unwrap_err()
    };
    let twice = error(vec![node("Relu", &["x"], "y"), node("Relu", &["x"], "y")]);
    assert!(matches!(twice, GraphError::ProducedTwice { value, .. } if value == "y"));
    let dangling = error(vec![node("Add", &["x", "lost"], "y")]);
    assert!(matches!(dangling, GraphError::Dangling { value, .. } if value == "lost"));
    let cycle = error(vec![
        node("Add", &["x", "y"], "a"),
        node("Relu", &["a"], "y"),
    ]);
    assert!(matches!(cycle, GraphError::Cycle { .. }));
    assert!(matches!(error(vec![]), GraphError::NoOutput { value } if value == "y"));
    let sketch = Sketch {
        opset: 13,
        input: vec![1],
        nodes: vec![node("Relu", &["x"], "y")],
        constants: vec![],
    };
    let mut nameless = sketch.proto();
    nameless.graph.as_mut().unwrap().output[0].name = None;
    let nameless = Model::from_proto(nameless).unwrap_err();
    assert!(
        nameless.to_string().contains("(without a name)"),
        "{nameless}"
    );
}

#[test]
fn nodes_in_any_order_are_sorted() {
    let nodes = vec![node("Relu", &["a"], "y"), node("Neg", &["x"], "a")];
    let model = Sketch {
        opset: 13,
        input: vec![1],
        nodes,
        constants: vec![],
    }
    .prepared();
    assert_eq!(operators(&model), ["Neg", "Relu"]);
}

#[test]
fn constants_are_initializers_and_no_inputs() {
    let constant = AttributeProto::tensor("value", TensorProto::from_f32("", &[1], &[2.0]));
    let nodes = vec![
        node("Constant", &[], "c").with(constant),
        node("Mul", &["x", "c"], "a"),
        node("Add", &["a", "w"], "y"),
    ];
    let constants = vec![TensorProto::from_f32("w", &[1], &[3.0])];
    let mut proto = Sketch {
        opset: 13,
        input: vec![1],
        nodes,
        constants,
    }
    .proto();
    proto.graph.as_mut().unwrap().input.push(value("w", &[1]));
    let model = prepare(Model::from_proto(proto).unwrap()).unwrap().model;
    assert_eq!(operators(&model), ["Mul", "Add"]);
    assert_eq!(model.graph.inputs.len(), 1);
    assert_eq!(
        model.graph.initializers.get("c").unwrap().to_f32().unwrap(),
        [2.0]
    );
}

#[test]
fn nodes_that_do_nothing_go_and_outputs_keep_their_names() {
    let nodes = vec![
        node("Identity", &["x"], "a"),
        node("Relu", &["a"], "b"),
        node("Dropout", &["b"], "c"),
        node("Neg", &["c"], "d"),
        node("Cast", &["d"], "e").with(AttributeProto::int("to", 1)),
        node("Identity", &["e"], "y"),
    ];
    let model = Sketch {
        opset: 13,
        input: vec![1],
        nodes,
        constants: vec![],
    }
    .prepared();
    assert_eq!(operators(&model), ["Relu", "Neg"]);
    assert_eq!(model.graph.nodes()[0].input, ["x"]);
    assert_eq!(model.graph.nodes()[1].output, ["y"]);
}

/// x · (H / 2), reshaped by arithmetic on its own shape, as exporters write it.
fn reshape_by_arithmetic(input: Vec<i64>) -> Model {
    let nodes = vec![
        node("Shape", &["x"], "shape"),
        node("Gather", &["shape", "two"], "height"),
        node("Neg", &["height"], "minus"),
        node("Mod", &["minus", "five"], "rest"),
        node("Unsqueeze", &["rest", "zero"], "rest1"),
        node("Div", &["height", "half"], "part"),
        node("Unsqueeze", &["part", "zero"], "part1"),
        node("Concat", &["rest1", "part1", "open"], "target").with(AttributeProto::int("axis", 0)),
        node("Reshape", &["x", "target"], "y"),
    ];
    let constants = vec![
        TensorProto::from_i64("two", &[], &[2]),
        TensorProto::from_i64("five", &[], &[5]),
        TensorProto::from_i64("half", &[], &[2]),
        TensorProto::from_i64("zero", &[1], &[0]),
        TensorProto::from_i64("open", &[1], &[-1]),
    ];
    Sketch {
        opset: 13,
        input,
        nodes,
        constants,
    }
    .prepared()
}

#[test]
fn arithmetic_on_known_shapes_is_done() {
    // −8 mod 5 has the sign of the divisor: 2. An unknown batch size doesn't matter here.
    for batch in [1, -1] {
        let model = reshape_by_arithmetic(vec![batch, 4, 8, 8]);
        assert_eq!(operators(&model), ["Reshape"]);
        let target = model.graph.initializers.get("target").unwrap();
        assert_eq!(target.to_i64().unwrap(), [2, 4, -1]);
    }
}

#[test]
fn arithmetic_on_unknown_shapes_is_left() {
    let model = reshape_by_arithmetic(vec![1, 4, -1, 8]);
    assert!(operators(&model).contains(&"Mod".to_owned()));
}

#[test]
fn batch_norm_becomes_part_of_the_layer_before_it() {
    // scale / √(variance + 0) = 2 and 0.5; mean 1; shift 10.
    let layers = [
        ("Conv", vec![1, 1, 4, 4], vec![2, 1, 1, 1], 0),
        ("ConvTranspose", vec![1, 1, 4, 4], vec![1, 2, 1, 1], 0),
        ("Gemm", vec![1, 1], vec![1, 2], 0),
        ("Gemm", vec![1, 1], vec![2, 1], 1),
    ];
    for (operator, input, shape, transposed) in layers {
        let mut layer = node(operator, &["x", "w"], "a");
        if operator == "Gemm" {
            layer.set(AttributeProto::int("transB", transposed));
        }
        let norm = node("BatchNormalization", &["a", "s", "b", "m", "v"], "y");
        let nodes = vec![layer, norm.with(AttributeProto::float("epsilon", 0.0))];
        let numbers = |name, values: &[f32]| TensorProto::from_f32(name, &[2], values);
        let constants = vec![
            TensorProto::from_f32("w", &shape, &[3.0, 4.0]),
            numbers("s", &[4.0, 1.0]),
            numbers("b", &[10.0, 10.0]),
            numbers("m", &[1.0, 1.0]),
            numbers("v", &[4.0, 4.0]),
        ];
        let model = Sketch {
            opset: 13,
            input,
            nodes,
            constants,
        }
        .prepared();
        assert_eq!(operators(&model), [operator]);
        let input = |slot| constant_of(&model, slot);
        assert_eq!(
            (input(1), input(2)),
            (vec![6.0, 2.0], vec![8.0, 9.5]),
            "{operator}"
        );
        assert_eq!(model.graph.initializers.len(), 2);
    }
}

#[test]
fn constants_that_scale_and_shift_channels_become_part_of_the_layer_before() {
    // (((w·x) · m + a) − d) / q, with constants on either side, one for each channel or one for
    // all.
    let nodes = vec![
        node("Conv", &["x", "w"], "t"),
        node("Mul", &["m", "t"], "u"),
        node("Add", &["u", "a"], "v"),
        node("Sub", &["v", "d"], "z"),
        node("Div", &["z", "q"], "y"),
    ];
    let numbers = |name, dims: &[usize], values: &[f32]| TensorProto::from_f32(name, dims, values);
    let constants = vec![
        numbers("w", &[2, 1, 1, 1], &[3.0, 4.0]),
        numbers("m", &[1, 2, 1, 1], &[2.0, 0.5]),
        numbers("a", &[2, 1, 1], &[1.0, -1.0]),
        numbers("d", &[], &[3.0]),
        numbers("q", &[1], &[4.0]),
    ];
    let sketch = Sketch {
        opset: 13,
        input: vec![1, 1, 2, 2],
        nodes,
        constants,
    };
    let model = sketch.prepared();
    assert_eq!(operators(&model), ["Conv"]);
    let input = |slot| constant_of(&model, slot);
    assert_eq!((input(1), input(2)), (vec![1.5, 0.5], vec![-0.5, -1.0]));
}

#[test]
fn constants_along_another_axis_are_left() {
    for dims in [&[2][..], &[1, 1, 2, 1], &[1, 1, 1, 1, 2]] {
        let nodes = vec![
            node("Conv", &["x", "w"], "t"),
            node("Mul", &["t", "m"], "y"),
        ];
        let constants = vec![
            TensorProto::from_f32("w", &[2, 1, 1, 1], &[3.0, 4.0]),
            TensorProto::from_f32("m", dims, &[2.0, 0.5]),
        ];
        let sketch = Sketch {
            opset: 13,
            input: vec![1, 1, 2, 2],
            nodes,
            constants,
        };
        assert_eq!(operators(&sketch.prepared()), ["Conv", "Mul"], "{dims:?}");
    }
}

/// A model of these nodes with a weight `w` and a number `s`, prepared.
fn prepared_with_number(nodes: Vec<NodeProto>) -> Model {
    let constants = vec![
        TensorProto::from_f32("w", &[1, 1, 1, 1], &[1.0]),
        TensorProto::from_f32("s", &[1], &[1.0]),
    ];
    Sketch {
        opset: 13,
        input: vec![1, 1, 2, 2],
        nodes,
        constants,
    }
    .prepared()
}

#[test]
fn a_value_others_use_keeps_its_layer() {
    let nodes = vec![
        node("Conv", &["x", "w"], "a"),
        node("BatchNormalization", &["a", "s", "s", "s", "s"], "b"),
        node("Add", &["a", "b"], "y"),
    ];
    let model = prepared_with_number(nodes);
    assert_eq!(operators(&model), ["Conv", "BatchNormalization", "Add"]);
}

#[test]
fn a_scale_without_an_output_changes_no_layer() {
    let nodes = vec![
        node("Conv", &["x", "w"], "a"),
        node("Mul", &["a", "s"], ""),
        node("Relu", &["x"], "y"),
    ];
    let model = prepared_with_number(nodes);
    assert!(operators(&model).iter().any(|operator| operator == "Relu"));
}

#[test]
fn value_info_of_the_file_is_not_believed() {
    let nodes = vec![node("Relu", &["x"], "a"), node("Neg", &["a"], "y")];
    let mut proto = Sketch {
        opset: 13,
        input: vec![-1, 3],
        nodes,
        constants: vec![],
    }
    .proto();
    proto.graph.as_mut().unwrap().value_info = vec![value("a", &[1, 3]), value("gone", &[7])];
    let model = prepare(Model::from_proto(proto).unwrap()).unwrap().model;
    assert_eq!(model.graph.value_info.len(), 1);
    let shape = model.graph.tensor_type("a").unwrap().shape.unwrap();
    assert_eq!(shape, [Dim::Named("n".to_owned()), Dim::Known(3)]);
}

#[test]
fn what_is_left_empty_at_the_end_of_a_node_is_cut_off() {
    let ends = |operator: &str, inputs: &[&str], outputs: &[&str]| {
        let graph = GraphProto {
            node: vec![NodeProto::new(operator, "node", inputs, outputs)],
            initializer: vec![TensorProto::from_f32("w", &[1, 1, 1, 1], &[1.0])],
            input: vec![value("x", &[1, 1, 4, 4])],
            output: vec![value("y", &[1, 1, 4, 4])],
            ..Default::default()
        };
        let model = Model::from_proto(ModelProto::from_graph(graph, 13)).unwrap();
        let node = &model.graph.nodes()[0];
        (node.input.join(","), node.output.join(","))
    };
    let text = |inputs: &str, outputs: &str| (inputs.to_string(), outputs.to_string());
    assert_eq!(ends("Conv", &["x", "w", ""], &["y"]), text("x,w", "y"));
    assert_eq!(ends("MaxPool", &["x"], &["y", ""]), text("x", "y"));
    assert_eq!(ends("Clip", &["x", "", ""], &["y"]), text("x", "y"));
    // An empty input keeps its position, and an empty output of Split counts as a part.
    assert_eq!(ends("Clip", &["x", "", "w"], &["y"]), text("x,,w", "y"));
    assert_eq!(ends("Split", &["x"], &["y", ""]), text("x", "y,"));
}
