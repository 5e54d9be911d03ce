//! Edits that keep a graph valid.

use std::collections::{HashMap, HashSet};

use super::{Dim, Graph, Model, TensorType};
use crate::onnx::schema::{
    AttributeProto, AttributeType, DataType, Dimension, DimensionValue, GraphProto, ModelProto,
    NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto,
    TypeValue, ValueInfoProto,
};

/// Names in use in a graph and its subgraphs, of values and of nodes.
#[derive(Clone, Debug, Default)]
pub struct Names {
    taken: HashSet<String>,
    /// Last suffix per requested name. Similar names then need no search from the first suffix.
    numbers: HashMap<String, usize>,
}

impl Names {
    /// Reserves and returns `wanted` if it is free, else the first free name of `wanted_1`,
    /// `wanted_2` ….
    pub fn fresh(&mut self, wanted: &str) -> String {
        if !wanted.is_empty() && self.taken.insert(wanted.to_owned()) {
            return wanted.to_owned();
        }
        let number = self.numbers.entry(wanted.to_owned()).or_default();
        loop {
            *number += 1;
            let name = format!("{wanted}_{number}");
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }

    /// All names in use, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &String> {
        self.taken.iter()
    }

    /// Returns true if the name is in use.
    pub fn contains(&self, name: &str) -> bool {
        self.taken.contains(name)
    }

    fn nodes<'a>(&mut self, nodes: impl Iterator<Item = &'a NodeProto>) {
        for node in nodes {
            self.taken.extend(
                node.name
                    .iter()
                    .chain(&node.output)
                    .chain(&node.input)
                    .cloned(),
            );
            for inner in node.subgraphs() {
                self.taken
                    .extend(inner.initializer.iter().filter_map(|t| t.name.clone()));
                self.taken
                    .extend(inner.input.iter().filter_map(|v| v.name.clone()));
                self.nodes(inner.node.iter());
            }
        }
    }
}

impl Graph {
    /// All names in use, for the creation of fresh ones.
    pub fn names(&self) -> Names {
        let mut names = Names::default();
        let values = self
            .inputs
            .iter()
            .chain(&self.outputs)
            .chain(&self.value_info);
        names.taken.extend(values.filter_map(|v| v.name.clone()));
        names
            .taken
            .extend(self.initializers.iter().filter_map(|t| t.name.clone()));
        let sparse = self
            .rest
            .sparse_initializer
            .iter()
            .filter_map(|s| s.values.as_ref());
        names.taken.extend(sparse.filter_map(|t| t.name.clone()));
        names.nodes(self.nodes.iter());
        names
    }

    /// Removes the nodes at these indices. Their outputs must be unused.
    pub fn remove_nodes(&mut self, indices: &HashSet<usize>) {
        let mut index = 0;
        self.nodes.retain(|_| {
            index += 1;
            !indices.contains(&(index - 1))
        });
    }

    /// Replaces all uses of `old` by `new` in nodes and their subgraphs. Graph outputs keep their
    /// names.
    pub fn replace_uses(&mut self, old: &str, new: &str) {
        self.replace_all_uses(&HashMap::from([(old.to_owned(), new.to_owned())]));
    }

    /// Replaces the uses of several values at once. A new name may itself be an old one.
    pub fn replace_all_uses(&mut self, renamed: &HashMap<String, String>) {
        if renamed.is_empty() {
            return;
        }
        let last = |name: &str| {
            let mut name = renamed.get(name)?;
            // Chains are finite because the graph has no cycles; a chain is at most as long as the
            // map.
            for _ in 0..renamed.len() {
                match renamed.get(name) {
                    Some(next) => name = next,
                    None => break,
                }
            }
            Some(name.clone())
        };
        for node in &mut self.nodes {
            rename(node, &last, &HashSet::new());
        }
    }

    /// Removes unused nodes, constants and value types. Returns the number of removed nodes.
    pub fn remove_unused(&mut self) -> usize {
        self.remove_unused_except(&[])
    }

    /// Removes unused nodes, constants and value types, but keeps the nodes that compute `watched`.
    pub fn remove_unused_except(&mut self, watched: &[String]) -> usize {
        let uses = self.uses();
        let mut wanted = vec![false; self.nodes.len()];
        let outputs = self.outputs.iter();
        let outputs = outputs.map(|v| v.name.as_deref().unwrap_or_default());
        let mut open: Vec<usize> = outputs
            .chain(watched.iter().map(String::as_str))
            .filter_map(|name| uses.producer(name))
            .collect();
        while let Some(i) = open.pop() {
            if std::mem::replace(&mut wanted[i], true) {
                continue;
            }
            let captured = self.nodes[i].captured();
            open.extend(
                self.nodes[i]
                    .input
                    .iter()
                    .chain(&captured)
                    .filter_map(|v| uses.producer(v)),
            );
        }
        let before = self.nodes.len();
        self.remove_nodes(&(0..before).filter(|&i| !wanted[i]).collect());

        let mut known: HashSet<String> = HashSet::new();
        for node in &self.nodes {
            known.extend(node.input.iter().chain(&node.output).cloned());
            known.extend(node.captured());
        }
        known.extend(self.outputs.iter().filter_map(|v| v.name.clone()));
        self.initializers
            .retain(|t| known.contains(t.name.as_deref().unwrap_or_default()));
        self.value_info
            .retain(|v| known.contains(v.name.as_deref().unwrap_or_default()));
        before - self.nodes.len()
    }
}

impl NodeProto {
    /// Replaces the uses of these names in the node and its subgraphs.
    pub fn replace_uses(&mut self, renamed: &HashMap<String, String>) {
        rename(self, &|name| renamed.get(name).cloned(), &HashSet::new());
    }

    /// Replaces the values that the subgraphs capture: `new` maps each old name to its new one.
    pub fn replace_captured(&mut self, mut new: impl FnMut(&str) -> String) {
        let captured = self.captured().into_iter();
        let renamed: HashMap<String, String> =
            captured.map(|name| (name.clone(), new(&name))).collect();
        for attribute in &mut self.attribute {
            for graph in attribute.g.iter_mut().chain(&mut attribute.graphs) {
                rename_inside(graph, &|name| renamed.get(name).cloned(), &HashSet::new());
            }
        }
    }
}

/// Renames the values that a node uses, including in its subgraphs unless they redefine the name.
fn rename(node: &mut NodeProto, new: &impl Fn(&str) -> Option<String>, hidden: &HashSet<String>) {
    let fresh = |name: &str| {
        if hidden.contains(name) {
            None
        } else {
            new(name)
        }
    };
    for input in &mut node.input {
        if let Some(name) = fresh(input) {
            *input = name;
        }
    }
    for attribute in &mut node.attribute {
        for graph in attribute.g.iter_mut().chain(&mut attribute.graphs) {
            rename_inside(graph, new, hidden);
        }
    }
}

fn rename_inside(
    graph: &mut GraphProto,
    new: &impl Fn(&str) -> Option<String>,
    hidden: &HashSet<String>,
) {
    let mut hidden = hidden.clone();
    hidden.extend(graph.input.iter().filter_map(|v| v.name.clone()));
    hidden.extend(graph.initializer.iter().filter_map(|t| t.name.clone()));
    hidden.extend(graph.node.iter().flat_map(|n| n.output.iter().cloned()));
    for node in &mut graph.node {
        rename(node, new, &hidden);
    }
    // A subgraph may return a value of the outer graph.
    for output in &mut graph.output {
        let name = output.name.as_deref().filter(|n| !hidden.contains(*n));
        if let Some(name) = name.and_then(new) {
            output.name = Some(name);
        }
    }
}

impl Model {
    /// Sets the version of ONNX's own operator set.
    pub fn set_opset(&mut self, version: i64) {
        let imports = &mut self.header.opset_import;
        match imports
            .iter_mut()
            .find(|o| matches!(o.domain.as_deref(), None | Some("" | "ai.onnx")))
        {
            Some(import) => import.version = Some(version),
            None => imports.push(OperatorSetIdProto {
                domain: Some(String::new()),
                version: Some(version),
            }),
        }
    }
}

impl ModelProto {
    /// A model of ONNX's own operators in this opset.
    pub fn from_graph(graph: GraphProto, opset: i64) -> ModelProto {
        let opset = OperatorSetIdProto {
            domain: None,
            version: Some(opset),
        };
        ModelProto {
            ir_version: Some(8),
            opset_import: vec![opset],
            graph: Some(graph),
            ..Default::default()
        }
    }
}

impl NodeProto {
    /// A node of ONNX's own operator set.
    pub fn new(operator: &str, name: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
        NodeProto {
            op_type: Some(operator.to_owned()),
            name: Some(name.to_owned()),
            input: inputs.iter().map(|&s| s.to_owned()).collect(),
            output: outputs.iter().map(|&s| s.to_owned()).collect(),
            ..NodeProto::default()
        }
    }

    /// A Cast of a value to another type.
    pub fn cast(name: &str, from: &str, to: &str, element: DataType) -> NodeProto {
        NodeProto::new("Cast", name, &[from], &[to]).with(AttributeProto::int("to", element as i64))
    }

    /// The node with one more attribute.
    pub fn with(mut self, attribute: AttributeProto) -> NodeProto {
        self.set(attribute);
        self
    }

    /// Sets an attribute, replacing one of the same name.
    pub fn set(&mut self, attribute: AttributeProto) {
        match self.attribute.iter_mut().find(|a| a.name == attribute.name) {
            Some(old) => *old = attribute,
            None => self.attribute.push(attribute),
        }
    }

    /// Removes and returns an attribute.
    pub fn take(&mut self, name: &str) -> Option<AttributeProto> {
        let at = self
            .attribute
            .iter()
            .position(|a| a.name.as_deref() == Some(name))?;
        Some(self.attribute.remove(at))
    }
}

impl AttributeProto {
    fn new(name: &str, kind: AttributeType) -> AttributeProto {
        AttributeProto {
            name: Some(name.to_owned()),
            r#type: Some(kind as i32),
            ..AttributeProto::default()
        }
    }

    /// An integer.
    pub fn int(name: &str, value: i64) -> AttributeProto {
        AttributeProto {
            i: Some(value),
            ..AttributeProto::new(name, AttributeType::Int)
        }
    }

    /// A float.
    pub fn float(name: &str, value: f32) -> AttributeProto {
        AttributeProto {
            f: Some(value),
            ..AttributeProto::new(name, AttributeType::Float)
        }
    }

    /// A list of integers.
    pub fn ints(name: &str, values: &[i64]) -> AttributeProto {
        AttributeProto {
            ints: values.to_vec(),
            ..AttributeProto::new(name, AttributeType::Ints)
        }
    }

    /// A string.
    pub fn text(name: &str, value: &str) -> AttributeProto {
        AttributeProto {
            s: Some(value.as_bytes().to_vec().into()),
            ..AttributeProto::new(name, AttributeType::String)
        }
    }

    /// A tensor.
    pub fn tensor(name: &str, value: TensorProto) -> AttributeProto {
        AttributeProto {
            t: Some(value),
            ..AttributeProto::new(name, AttributeType::Tensor)
        }
    }
}

impl ValueInfoProto {
    /// A value with its type. Unknown dimensions have no value.
    pub fn new(name: &str, tensor: &TensorType) -> ValueInfoProto {
        let dimension = |d: &Dim| Dimension {
            value: match d {
                Dim::Known(size) => Some(DimensionValue::DimValue(*size as i64)),
                Dim::Named(name) => Some(DimensionValue::DimParam(name.clone())),
                Dim::Unknown => None,
            },
            denotation: None,
        };
        let shape = tensor.shape.as_ref().map(|dims| TensorShapeProto {
            dim: dims.iter().map(dimension).collect(),
        });
        let value = TensorTypeProto {
            elem_type: Some(tensor.element as i32),
            shape,
        };
        ValueInfoProto {
            name: Some(name.to_owned()),
            r#type: Some(TypeProto {
                value: Some(TypeValue::TensorType(value)),
                denotation: None,
            }),
            ..ValueInfoProto::default()
        }
    }

    /// Sets the element type of a tensor.
    pub fn set_element(&mut self, element: DataType) {
        let kind = self.r#type.as_mut().and_then(|kind| kind.value.as_mut());
        if let Some(TypeValue::TensorType(tensor)) = kind {
            tensor.elem_type = Some(element as i32);
        }
    }
}
