//! Graphs to quantize, and the check that what comes out is one.

use std::collections::{BTreeMap, HashSet};

use octet::calibrate::Range;
use octet::graph::Model;
use octet::onnx::schema::*;
use octet::quantize::{
    Plan, Quantized, Ranges, Settings, quantize, to_integer_operators, with_float_weights,
};

pub fn value(name: &str) -> ValueInfoProto {
    let tensor = TensorTypeProto {
        elem_type: Some(DataType::Float as i32),
        shape: None,
    };
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto {
            value: Some(TypeValue::TensorType(tensor)),
            ..Default::default()
        }),
        ..Default::default()
    }
}

pub fn node(operator: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        op_type: Some(operator.into()),
        input: inputs.iter().map(ToString::to_string).collect(),
        output: vec![output.into()],
        ..Default::default()
    }
}

pub fn constant(name: &str, dims: &[usize]) -> TensorProto {
    let count: usize = dims.iter().product();
    let values: Vec<f32> = (0..count).map(|i| (i as f32 * 0.7).sin()).collect();
    TensorProto::from_f32(name, dims, &values)
}

/// A model in which every value is a float.
pub fn model(nodes: Vec<NodeProto>, constants: Vec<TensorProto>, outputs: &[&str]) -> Model {
    let made = nodes.iter().flat_map(|n| &n.output);
    let value_info = made
        .filter(|n| !outputs.contains(&n.as_str()))
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
    let opset = OperatorSetIdProto {
        domain: None,
        version: Some(17),
    };
    Model::from_proto(ModelProto {
        ir_version: Some(8),
        graph: Some(graph),
        opset_import: vec![opset],
        ..Default::default()
    })
    .unwrap()
}

/// Quantizes with the range [-1, 2] for everything, and checks that what comes out is a valid graph, in every
/// form.
pub fn done(model: &Model) -> Quantized {
    let plan = Plan::new(model, &Settings::default()).unwrap();
    let ranges: BTreeMap<String, Range> = Plan::observable(model)
        .unwrap()
        .into_iter()
        .map(|name| (name, Range::new(-1.0, 2.0)))
        .collect();
    let quantized = quantize(model, &plan, Ranges::Given(&ranges)).unwrap();
    check_graph(&quantized.model);
    check_graph(&to_integer_operators(&quantized.model).unwrap());
    check_graph(&with_float_weights(&quantized.model, model).unwrap());
    assert_eq!(quantized.nodes.len(), model.graph.nodes.len());
    quantized
}

fn check_graph(model: &Model) {
    let graph = &model.graph;
    let inputs = graph.inputs.iter().filter_map(|v| v.name.clone());
    let mut known: HashSet<String> = HashSet::new();
    for name in inputs.chain(graph.initializers.iter().filter_map(|t| t.name.clone())) {
        assert!(known.insert(name.clone()), "{name} is there twice");
    }
    for node in &graph.nodes {
        for name in node
            .input
            .iter()
            .cloned()
            .chain(node.captured())
            .filter(|n| !n.is_empty())
        {
            assert!(
                known.contains(&name),
                "{} uses {name} before it is made",
                node.title()
            );
        }
        for name in node.output.iter().filter(|n| !n.is_empty()) {
            assert!(known.insert(name.clone()), "{name} is made twice");
        }
    }
    for output in graph.outputs.iter().filter_map(|v| v.name.as_ref()) {
        assert!(known.contains(output), "the output {output} is not made");
    }
}

pub fn maker<'a>(quantized: &'a Quantized, value: &str) -> &'a NodeProto {
    let mut nodes = quantized.model.graph.nodes.iter();
    nodes.find(|n| n.output.iter().any(|o| o == value)).unwrap()
}
