//! Graphs of a few nodes.

use octet_graph::{Dim, Model, TensorType};
use octet_onnx::schema::*;

/// A float value of unknown shape.
pub fn value(name: &str) -> ValueInfoProto {
    let float = TensorType {
        element: DataType::Float,
        shape: None,
    };
    ValueInfoProto::new(name, &float)
}

/// A value of this type and shape; a negative size is the dimension `n`.
pub fn typed_value(name: &str, element: DataType, dims: &[i64]) -> ValueInfoProto {
    let dim = |&size: &i64| match usize::try_from(size) {
        Ok(size) => Dim::Known(size),
        Err(_) => Dim::Named("n".to_owned()),
    };
    let shape = Some(dims.iter().map(dim).collect());
    ValueInfoProto::new(name, &TensorType { element, shape })
}

/// A node without a name, identified by its output.
pub fn node(operator: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        op_type: Some(operator.into()),
        input: inputs.iter().map(ToString::to_string).collect(),
        output: vec![output.into()],
        ..Default::default()
    }
}

/// A float constant with different numbers.
pub fn constant(name: &str, dims: &[usize]) -> TensorProto {
    let count: usize = dims.iter().product();
    let values: Vec<f32> = (0..count).map(|i| (i as f32 * 0.7).sin()).collect();
    TensorProto::from_f32(name, dims, &values)
}

/// A float16 constant of 1.0, 1.0009765625 and so on, as raw bytes.
pub fn float16_constant(name: &str, dims: &[usize]) -> TensorProto {
    let count: usize = dims.iter().product();
    let bits = (0..count).flat_map(|at| (0x3c00u16 + at as u16 % 1024).to_le_bytes());
    let raw: Vec<u8> = bits.collect();
    TensorProto::from_raw(name, DataType::Float16, dims, raw.into())
}

/// A model of opset 17 with the input `x`, in which every value is a float.
pub fn model(nodes: Vec<NodeProto>, constants: Vec<TensorProto>, outputs: &[&str]) -> Model {
    let inner = nodes.iter().flat_map(|n| &n.output);
    let value_info = inner
        .filter(|n| !n.is_empty() && !outputs.contains(&n.as_str()))
        .map(|n| value(n))
        .collect();
    let graph = GraphProto {
        name: Some("graph".into()),
        node: nodes,
        initializer: constants,
        input: vec![value("x")],
        output: outputs.iter().map(|n| value(n)).collect(),
        value_info,
        ..Default::default()
    };
    Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
}

/// An If whose branches both capture `inner` and the constant `w`, with its condition.
pub fn choice(operator: &str, output: &str) -> (NodeProto, TensorProto) {
    let branch = GraphProto {
        name: Some("branch".into()),
        node: vec![node(operator, &["inner", "w"], "taken")],
        output: vec![value("taken")],
        ..Default::default()
    };
    let attribute = |name: &str| AttributeProto {
        name: Some(name.into()),
        r#type: Some(AttributeType::Graph as i32),
        g: Some(branch.clone()),
        ..Default::default()
    };
    let mut choice = node("If", &["yes"], output);
    choice.attribute = vec![attribute("then_branch"), attribute("else_branch")];
    let yes = TensorProto::from_raw("yes", DataType::Bool, &[], vec![1u8].into());
    (choice, yes)
}
