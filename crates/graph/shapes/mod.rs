//! Inference of types, shapes and small integer values.
//!
//! Nothing is guessed: anything that the graph's inputs and constants don't imply is unknown.
//! `value_info` of the file is ignored, because real files carry wrong entries. The outputs of an
//! operator without a rule are unknown.

mod element_types;
mod shape_determined;

pub use shape_determined::{is_random, is_shape_determined};

use std::collections::{BTreeMap, HashMap};

use crate::inferred_value::{InferredValue, Types};
use crate::operators::Operator;
use crate::{Dim, Graph, Node, TensorType};
use octet_onnx::schema::{DataType, ValueInfoProto};

/// The outputs of a node, inferred; the list may be shorter than that of the node.
pub fn infer_node(node: &Node, types: &Types) -> Vec<Option<InferredValue>> {
    Operator::infer(node, types)
}

/// Infers all values of a graph.
pub fn infer(graph: &Graph) -> Types {
    infer_from(graph, &[])
}

/// Infers all values for inputs of these shapes; inputs beyond the list have their declared shapes.
pub fn infer_from(graph: &Graph, inputs: &[&[usize]]) -> Types {
    let mut types = Types::new();
    for (place, input) in graph.inputs.iter().enumerate() {
        let (Some(name), Some(port)) = (&input.name, crate::tensor_type_of(input)) else {
            continue;
        };
        // Old exporters write 0 for a size they don't know.
        let open = |d| if d == Dim::Known(0) { Dim::Unknown } else { d };
        let declared = port.shape.map(|s| s.into_iter().map(open).collect());
        let shape = match inputs.get(place) {
            Some(sizes) => Some(sizes.iter().map(|&size| Dim::Known(size)).collect()),
            None => declared,
        };
        types.insert(name.clone(), InferredValue::new(port.element, shape));
    }
    for tensor in graph.initializers.iter() {
        if let (Some(name), Some(known)) = (&tensor.name, InferredValue::from_constant(tensor)) {
            types.insert(name.clone(), known);
        }
    }
    for node in graph.nodes() {
        let outputs = Operator::infer(node, &types);
        for (name, known) in node.output.iter().zip(outputs) {
            if let (false, Some(known)) = (name.is_empty(), known) {
                types.insert(name.clone(), known);
            }
        }
    }
    types
}

/// Rebuilds `value_info`: inferred types, else the declared type and rank, else the element type
/// that a consumer requires.
pub(crate) fn annotate(graph: &mut Graph) {
    let types = infer(graph);
    let old: BTreeMap<String, TensorType> = graph
        .value_info
        .iter()
        .filter_map(|v| Some((v.name.clone()?, crate::tensor_type_of(v)?)))
        .collect();
    let outputs: Vec<_> = graph
        .outputs()
        .iter()
        .filter_map(|v| v.name.clone())
        .collect();
    let mut elements: HashMap<&str, DataType> = graph.element_types();
    let inferred = types.iter();
    elements.extend(inferred.map(|(name, known)| (name.as_str(), known.element)));
    element_types::complete(graph, &mut elements);
    let mut fresh: Vec<ValueInfoProto> = Vec::new();
    for name in graph
        .nodes()
        .iter()
        .flat_map(|n| &n.output)
        .filter(|n| !n.is_empty())
    {
        if outputs.contains(name) {
            continue;
        }
        let known = match (types.get(name), old.get(name)) {
            (Some(known), _) => TensorType {
                element: known.element,
                shape: known.shape.clone(),
            },
            (None, Some(old)) => {
                let shape = old.shape.as_ref().map(|s| vec![Dim::Unknown; s.len()]);
                TensorType {
                    element: old.element,
                    shape,
                }
            }
            (None, None) => match elements.get(name.as_str()) {
                Some(&element) => TensorType {
                    element,
                    shape: None,
                },
                None => continue,
            },
        };
        fresh.push(ValueInfoProto::new(name, &known));
    }
    graph.value_info = fresh;
}
