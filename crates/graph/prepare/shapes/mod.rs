//! Inference of types, shapes and small integer values.
//!
//! Nothing is guessed: anything that the graph's inputs and constants don't imply is unknown.
//! `value_info` of the file is ignored, because real files carry wrong entries. The outputs of an
//! operator without a rule are unknown.

mod element_types;
mod rules;
mod small_values;
mod windows;

pub use rules::{position, slice_bounds};

use std::collections::{BTreeMap, HashMap};

use crate::{Dim, Graph, TensorType};
use octet_onnx::schema::{DataType, NodeProto, TensorProto, ValueInfoProto};

/// Limit on the elements of a value whose numbers are followed.
const LARGEST: usize = 4096;

/// Inferred type, shape and numbers of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct InferredValue {
    /// Element type.
    pub element: DataType,
    /// Shape, or `None` if even the rank is unknown.
    pub shape: Option<Vec<Dim>>,
    /// Numbers of a small integer or bool value; each may be unknown.
    pub integers: Option<Vec<Option<i64>>>,
    /// Numbers of a small `f32` value.
    pub floats: Option<Vec<f32>>,
}

/// Inferred values by name; a value of which nothing is known is absent.
pub type Types = BTreeMap<String, InferredValue>;

impl InferredValue {
    /// A value of this type and shape, of whose numbers nothing is known.
    pub fn new(element: DataType, shape: Option<Vec<Dim>>) -> InferredValue {
        InferredValue {
            element,
            shape,
            integers: None,
            floats: None,
        }
    }

    /// The shape, if every size is known.
    pub fn sizes(&self) -> Option<Vec<usize>> {
        sizes(self.shape.as_deref()?)
    }

    fn from_constant(tensor: &TensorProto) -> Option<InferredValue> {
        let shape = tensor.shape().ok()?;
        let dims = shape.into_iter().map(Dim::Known).collect();
        let mut known = InferredValue::new(tensor.element().ok()?, Some(dims));
        if tensor.element_count().ok()? <= LARGEST && !tensor.is_external() {
            known.integers = tensor
                .to_i64()
                .ok()
                .map(|v| v.into_iter().map(Some).collect());
            if known.element == DataType::Float {
                known.floats = tensor.to_f32().ok();
            }
        }
        Some(known)
    }
}

impl From<InferredValue> for TensorType {
    fn from(known: InferredValue) -> TensorType {
        TensorType {
            element: known.element,
            shape: known.shape,
        }
    }
}

fn sizes(shape: &[Dim]) -> Option<Vec<usize>> {
    shape
        .iter()
        .map(|d| match d {
            Dim::Known(size) => Some(*size),
            _ => None,
        })
        .collect()
}

/// Number of elements of a value of these sizes, saturating.
pub fn count(sizes: &[usize]) -> usize {
    sizes
        .iter()
        .fold(1, |count: usize, &size| count.saturating_mul(size))
}

/// The first output of a node, inferred.
pub fn infer_node(node: &NodeProto, types: &Types) -> Option<InferredValue> {
    rules::outputs(node, types).into_iter().next().flatten()
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
    for node in &graph.nodes {
        if !matches!(node.domain.as_deref(), None | Some("" | "ai.onnx")) {
            continue;
        }
        let outputs = match super::constants::value(node) {
            Ok(Some(tensor)) => vec![InferredValue::from_constant(&tensor)],
            _ => rules::outputs(node, &types),
        };
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
pub(super) fn annotate(graph: &mut Graph) {
    let types = infer(graph);
    let old: BTreeMap<String, TensorType> = graph
        .value_info
        .iter()
        .filter_map(|v| Some((v.name.clone()?, crate::tensor_type_of(v)?)))
        .collect();
    let outputs: Vec<_> = graph
        .outputs
        .iter()
        .filter_map(|v| v.name.clone())
        .collect();
    let mut elements: HashMap<&str, DataType> = graph.element_types();
    let inferred = types.iter();
    elements.extend(inferred.map(|(name, known)| (name.as_str(), known.element)));
    element_types::complete(graph, &mut elements);
    let mut fresh: Vec<ValueInfoProto> = Vec::new();
    for name in graph
        .nodes
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
