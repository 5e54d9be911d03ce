//! Small graphs for tests, and a check that a graph is valid.

// Every test file that includes this module uses a part of it.
#![allow(dead_code)]

use std::collections::HashSet;

use octet::graph::{Model, TensorType};
use octet::onnx::schema::*;
use octet::quantize::Quantized;

/// A float value of unknown shape.
pub fn value(name: &str) -> ValueInfoProto {
    let float = TensorType {
        element: DataType::Float,
        shape: None,
    };
    ValueInfoProto::new(name, &float)
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

/// A model of opset 17 with the input `x`, in which every value is a float.
pub fn model(nodes: Vec<NodeProto>, constants: Vec<TensorProto>, outputs: &[&str]) -> Model {
    let made = nodes.iter().flat_map(|n| &n.output);
    let value_info = made
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

/// Pseudorandom numbers between -1 and 1, the same in each run.
pub fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// A pseudorandom generator with the same sequence in each run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A `.npy` file.
pub fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    file.extend(text.as_bytes());
    file.extend(data);
    file
}

/// The node that makes a value in a quantized model.
pub fn maker<'a>(quantized: &'a Quantized, value: &str) -> &'a NodeProto {
    let mut nodes = quantized.model.graph.nodes.iter();
    nodes.find(|n| n.output.iter().any(|o| o == value)).unwrap()
}

/// Asserts that every value is made once and before its use, that names are unique, and that every
/// output is made.
pub fn check_valid(model: &Model) {
    let graph = &model.graph;
    let inputs = graph.inputs.iter().filter_map(|v| v.name.clone());
    let mut known: HashSet<String> = HashSet::new();
    for name in inputs.chain(graph.initializers.iter().filter_map(|t| t.name.clone())) {
        assert!(known.insert(name.clone()), "{name} is there twice");
    }
    let mut titles = HashSet::new();
    for node in &graph.nodes {
        let name = node.name.as_deref().unwrap_or_default();
        assert!(
            name.is_empty() || titles.insert(name),
            "two nodes are named {name}"
        );
        let captured = node.captured();
        for name in node.input.iter().chain(&captured).filter(|n| !n.is_empty()) {
            let title = node.title();
            assert!(
                known.contains(name),
                "{title} uses {name} before it is made"
            );
        }
        for name in node.output.iter().filter(|n| !n.is_empty()) {
            assert!(known.insert(name.clone()), "{name} is made twice");
        }
    }
    for output in graph.outputs.iter().filter_map(|v| v.name.as_ref()) {
        assert!(known.contains(output), "the output {output} is not made");
    }
    for tensor in graph.initializers.iter() {
        tensor.check().unwrap();
    }
}
