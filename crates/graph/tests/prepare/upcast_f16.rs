//! Models of 16-bit floats: everything becomes float32, and outputs get back their types.

use octet_graph::Model;
use octet_graph::prepare::{PrepareError, Prepared, prepare};
use octet_onnx::schema::*;
use octet_test_models::{float16_constant, operators, typed_value};

use super::node;

/// The float16 constant of this name and shape in float32, with a note on its type.
fn upcast_constant(name: &str, shape: &[usize]) -> TensorProto {
    let values = float16_constant(name, shape).to_f32().unwrap();
    let mut tensor = TensorProto::from_f32(name, shape, &values);
    tensor.note_widened_from(Some(DataType::Float16));
    tensor
}

fn proto(
    element: DataType,
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    shape: &[i64],
) -> ModelProto {
    let graph = GraphProto {
        name: Some("g".into()),
        node: nodes,
        initializer: constants,
        input: vec![typed_value("x", element, shape)],
        output: vec![typed_value("y", element, shape)],
        ..GraphProto::default()
    };
    ModelProto::from_graph(graph, 17)
}

fn prepared(proto: ModelProto) -> Prepared {
    prepare(Model::from_proto(proto).unwrap()).unwrap()
}

fn to(element: DataType) -> AttributeProto {
    AttributeProto::int("to", element as i64)
}

fn element_of(model: &Model, name: &str) -> DataType {
    model.graph.tensor_type(name).unwrap().element
}

#[test]
fn constants_types_and_what_nodes_say_of_types_become_float32() {
    let spread = TensorProto {
        raw_data: None,
        int32_data: vec![0x3c00, 0xc000],
        ..float16_constant("b", &[2])
    };
    let zero = TensorProto::from_raw("", DataType::Bfloat16, &[1], vec![0u8, 0x40].into());
    let mut proto = proto(
        DataType::Float16,
        vec![
            node("Constant", &[], "c")
                .with(AttributeProto::tensor("value", float16_constant("", &[2]))),
            node("ConstantOfShape", &["size"], "filled")
                .with(AttributeProto::tensor("value", zero)),
            node("EyeLike", &["ones"], "eye").with(AttributeProto::int("dtype", 10)),
            node("Cast", &["x"], "wide").with(to(DataType::Float)),
            node("Cast", &["wide"], "narrow").with(to(DataType::Float16)),
            node("Cast", &["number"], "counted").with(to(DataType::Float16)),
            node(
                "Sum",
                &["narrow", "w", "b", "c", "filled", "eye", "counted"],
                "y",
            ),
        ],
        vec![
            float16_constant("w", &[2, 2]),
            spread,
            TensorProto::from_i64("size", &[1], &[2]),
            TensorProto::from_i64("ones", &[2, 2], &[1; 4]),
        ],
        &[2, 2],
    );
    let graph = proto.graph.as_mut().unwrap();
    graph
        .input
        .push(typed_value("number", DataType::Int64, &[1]));
    graph.value_info = vec![typed_value("eye", DataType::Float16, &[2, 2])];
    let Prepared {
        model,
        done,
        upcast,
        ..
    } = prepared(proto);
    assert_eq!(done[0], upcast.note().unwrap());
    assert!(
        done[0].contains("float16 to float32, 4 constants"),
        "{done:?}"
    );
    let graph = &model.graph;
    assert_eq!(
        graph.initializers.get("w"),
        Some(&upcast_constant("w", &[2, 2]))
    );
    let numbers = |name: &str| graph.initializers.get(name).unwrap().to_f32().unwrap();
    assert_eq!(numbers("b"), [1.0, -2.0]);
    assert_eq!(numbers("c"), [1.0, 1.000_976_6]);
    for name in ["x", "y", "eye", "counted", "w", "b", "c"] {
        assert_eq!(element_of(&model, name), DataType::Float, "{name}");
    }
    let eye = graph.nodes().iter().find(|n| n.is("EyeLike")).unwrap();
    assert_eq!(eye.int("dtype"), Some(1));
    // Only the Cast of the integer has an effect.
    let casts: Vec<_> = graph.nodes().iter().filter(|n| n.is("Cast")).collect();
    assert_eq!(casts.len(), 1);
    assert_eq!(
        (casts[0].int("to"), casts[0].input_at(0)),
        (Some(1), Some("number"))
    );
    let filled = graph.nodes().iter().find_map(|n| n.tensor("value"));
    let filled = filled.map_or_else(|| numbers("filled")[0], |t| t.to_f32().unwrap()[0]);
    assert_eq!(filled, 2.0);
}

#[test]
fn a_type_that_old_operator_sets_name_is_raised() {
    let named = AttributeProto::text("to", "FLOAT16");
    let mut proto = proto(
        DataType::Float16,
        vec![
            node("Cast", &["x"], "a").with(named),
            node("Relu", &["a"], "y"),
        ],
        vec![],
        &[2],
    );
    proto.opset_import[0].version = Some(5);
    assert_eq!(operators(&prepared(proto).model), ["Relu"]);
}

#[test]
fn subgraphs_and_what_they_read_from_outside_are_raised() {
    let branch = |operator: &str| GraphProto {
        node: vec![node(operator, &["inner", "own"], "taken")],
        initializer: vec![float16_constant("own", &[2])],
        output: vec![typed_value("taken", DataType::Float16, &[2])],
        ..GraphProto::default()
    };
    let attribute = |name: &str, operator: &str| AttributeProto {
        name: Some(name.into()),
        r#type: Some(AttributeType::Graph as i32),
        g: Some(branch(operator)),
        ..AttributeProto::default()
    };
    let mut choice = node("If", &["yes"], "y");
    choice.attribute = vec![
        attribute("then_branch", "Add"),
        attribute("else_branch", "Mul"),
    ];
    let proto = proto(
        DataType::Float16,
        vec![
            node("Add", &["x", "w"], "inner"),
            node("Cast", &["sum"], "yes").with(to(DataType::Bool)),
            node("ReduceSum", &["x"], "sum"),
            choice,
        ],
        vec![float16_constant("w", &[2])],
        &[2],
    );
    let model = prepared(proto).model;
    let choice = model.graph.nodes().iter().find(|node| node.is("If"));
    let subgraphs: Vec<_> = choice.unwrap().subgraphs().collect();
    assert_eq!(subgraphs.len(), 2);
    for graph in subgraphs {
        assert_eq!(graph.initializers, [upcast_constant("own", &[2])]);
        assert_eq!(graph.outputs, [typed_value("taken", DataType::Float, &[2])]);
    }
}

#[test]
fn what_cant_be_float32_is_refused_by_name() {
    let bits = node("BitCast", &["x"], "y").with(to(DataType::Uint16));
    let refused = |proto| prepare(Model::from_proto(proto).unwrap()).unwrap_err();
    let error = refused(proto(DataType::Float16, vec![bits.clone()], vec![], &[2]));
    assert!(matches!(error, PrepareError::HalfBits { node } if node == "y"));
    let mut sequence = proto(
        DataType::Float16,
        vec![node("Relu", &["x"], "y")],
        vec![],
        &[2],
    );
    let kind = typed_value("s", DataType::Float16, &[2]).r#type;
    let inner = SequenceTypeProto {
        elem_type: kind.map(Box::new),
    };
    sequence.graph.as_mut().unwrap().input.push(ValueInfoProto {
        name: Some("s".into()),
        r#type: Some(TypeProto {
            value: Some(TypeValue::SequenceType(Box::new(inner))),
            ..TypeProto::default()
        }),
        ..ValueInfoProto::default()
    });
    let error = refused(sequence);
    assert!(matches!(error, PrepareError::HalfPort { value } if value == "s"));
    // If no other value has 16-bit floats, BitCast is allowed.
    let mut plain = proto(DataType::Int16, vec![bits], vec![], &[2]);
    plain.graph.as_mut().unwrap().output = vec![typed_value("y", DataType::Uint16, &[2])];
    assert_eq!(prepared(plain).upcast.note(), None);
}

#[test]
fn borders_keep_their_types_behind_a_cast_each_that_preparing_takes_away_again() {
    for element in [DataType::Float16, DataType::Bfloat16] {
        // `x` and `w` are outputs unchanged; `y` has a reader.
        let nodes = vec![
            node("Relu", &["x"], "y"),
            node("Add", &["y", "w"], "z"),
            node("Add", &["x", "z"], "sum"),
        ];
        let weight = match element {
            DataType::Float16 => float16_constant("w", &[2]),
            _ => TensorProto::from_raw("w", element, &[2], vec![0u8, 0x40, 0, 0x40].into()),
        };
        let mut proto = proto(element, nodes, vec![weight], &[2]);
        let outputs = &mut proto.graph.as_mut().unwrap().output;
        outputs.extend(["sum", "w"].map(|name| typed_value(name, element, &[2])));
        let Prepared { model, upcast, .. } = prepared(proto);
        let mut written = model.clone();
        upcast.restore(&mut written).unwrap();
        for name in ["x", "y", "sum", "w"] {
            assert_eq!(element_of(&model, name), DataType::Float, "{name}");
            assert_eq!(element_of(&written, name), element, "{name}");
        }
        let kinds = operators(&written);
        assert_eq!(
            kinds,
            ["Cast", "Relu", "Add", "Add", "Cast", "Cast", "Cast"]
        );
        assert_eq!(
            written.graph.nodes()[0].int("to"),
            Some(DataType::Float as i64)
        );
        for cast in &written.graph.nodes()[4..] {
            assert_eq!(cast.int("to"), Some(element as i64));
        }
        let again = prepared(written.to_proto()).model;
        let read_by = |model: &Model| -> Vec<Vec<String>> {
            let nodes = model.graph.nodes().iter();
            nodes
                .filter(|n| !n.is("Cast") && !n.is("Identity"))
                .map(|n| n.output.clone())
                .collect()
        };
        assert_eq!(read_by(&again), read_by(&model));
    }
}
