//! A graph in an attribute: the branch of an If, the body of a Loop or Scan.

use std::collections::{HashMap, HashSet};

use octet_onnx::schema::{GraphProto, SparseTensorProto, TensorProto, ValueInfoProto};

use crate::Node;

/// A graph within a node. Its nodes may also use values of the graphs around it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subgraph {
    /// Nodes in the file's order.
    pub nodes: Vec<Node>,
    /// Constants.
    pub initializers: Vec<TensorProto>,
    /// Inputs.
    pub inputs: Vec<ValueInfoProto>,
    /// Outputs; a subgraph may also return a value of the outer graph.
    pub outputs: Vec<ValueInfoProto>,
    /// Types of intermediate values, as far as the file knows them.
    pub value_info: Vec<ValueInfoProto>,
    /// The message without these fields.
    rest: Box<GraphProto>,
}

impl Subgraph {
    /// Reads a message.
    pub fn from_proto(mut message: GraphProto) -> Subgraph {
        let nodes = std::mem::take(&mut message.node).into_iter();
        Subgraph {
            nodes: nodes.map(Node::from_proto).collect(),
            initializers: std::mem::take(&mut message.initializer),
            inputs: std::mem::take(&mut message.input),
            outputs: std::mem::take(&mut message.output),
            value_info: std::mem::take(&mut message.value_info),
            rest: Box::new(message),
        }
    }

    /// Writes the message; tensor bytes are shared.
    pub fn to_proto(&self) -> GraphProto {
        GraphProto {
            node: self.nodes.iter().map(Node::to_proto).collect(),
            initializer: self.initializers.clone(),
            input: self.inputs.clone(),
            output: self.outputs.clone(),
            value_info: self.value_info.clone(),
            ..GraphProto::clone(&self.rest)
        }
    }

    /// The sparse constants.
    pub fn sparse(&self) -> &[SparseTensorProto] {
        &self.rest.sparse_initializer
    }

    /// The sparse constants, for edits.
    pub(crate) fn sparse_mut(&mut self) -> &mut [SparseTensorProto] {
        &mut self.rest.sparse_initializer
    }

    /// The values of the outer graph that this graph uses.
    pub fn captured(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.capture(&HashSet::new(), &mut names);
        names.sort();
        names.dedup();
        names
    }

    /// Adds the used values that are not in `outer` and not defined here.
    pub(crate) fn capture(&self, outer: &HashSet<String>, names: &mut Vec<String>) {
        let mut known = outer.clone();
        known.extend(self.defined());
        let outputs = self.outputs.iter().filter_map(|v| v.name.as_ref());
        for name in self.nodes.iter().flat_map(|n| &n.input).chain(outputs) {
            if !name.is_empty() && !known.contains(name) {
                names.push(name.clone());
            }
        }
        for inner in self.nodes.iter().flat_map(Node::subgraphs) {
            inner.capture(&known, names);
        }
    }

    /// Renames the values that this graph uses, unless it or `hidden` defines the name.
    pub(crate) fn rename_uses(
        &mut self,
        new: &impl Fn(&str) -> Option<String>,
        hidden: &HashSet<String>,
    ) {
        let mut hidden = hidden.clone();
        hidden.extend(self.defined());
        for node in &mut self.nodes {
            node.rename_visible_uses(new, &hidden);
        }
        for output in &mut self.outputs {
            let name = output.name.as_deref().filter(|n| !hidden.contains(*n));
            if let Some(name) = name.and_then(new) {
                output.name = Some(name);
            }
        }
    }

    /// Names that this graph defines.
    pub(crate) fn defined(&self) -> impl Iterator<Item = String> {
        let inputs = self.inputs.iter().filter_map(|v| v.name.clone());
        let constants = self.initializers.iter().filter_map(|t| t.name.clone());
        let values = self.nodes.iter().flat_map(|n| n.output.iter().cloned());
        inputs.chain(constants).chain(values)
    }
}

impl Node {
    /// Subgraphs in the attributes.
    pub fn subgraphs(&self) -> impl Iterator<Item = &Subgraph> {
        self.attributes.iter().flat_map(|a| a.graphs())
    }

    /// Subgraphs in the attributes, for edits.
    pub(crate) fn subgraphs_mut(&mut self) -> impl Iterator<Item = &mut Subgraph> {
        self.attributes.iter_mut().flat_map(|a| a.graphs_mut())
    }

    /// The values of the outer graph that the subgraphs use.
    pub fn captured(&self) -> Vec<String> {
        let mut names = Vec::new();
        for graph in self.subgraphs() {
            graph.capture(&HashSet::new(), &mut names);
        }
        names.sort();
        names.dedup();
        names
    }

    /// Replaces the uses of these names in the node and its subgraphs.
    pub fn replace_uses(&mut self, renamed: &HashMap<String, String>) {
        self.rename_uses(&|name| renamed.get(name).cloned());
    }

    /// Replaces the uses of the names for which `new` returns another name, in the node and its
    /// subgraphs.
    pub fn rename_uses(&mut self, new: &impl Fn(&str) -> Option<String>) {
        self.rename_visible_uses(new, &HashSet::new());
    }

    /// Replaces the values that the subgraphs capture: `new` maps each old name to its new one.
    pub fn replace_captured(&mut self, mut new: impl FnMut(&str) -> String) {
        let captured = self.captured().into_iter();
        let renamed: HashMap<String, String> =
            captured.map(|name| (name.clone(), new(&name))).collect();
        for graph in self.subgraphs_mut() {
            graph.rename_uses(&|name| renamed.get(name).cloned(), &HashSet::new());
        }
    }

    /// Renames uses, also in the subgraphs unless these redefine the name.
    fn rename_visible_uses(
        &mut self,
        new: &impl Fn(&str) -> Option<String>,
        hidden: &HashSet<String>,
    ) {
        for input in &mut self.input {
            if let Some(name) = (!hidden.contains(input)).then(|| new(input)).flatten() {
                *input = name;
            }
        }
        for graph in self.subgraphs_mut() {
            graph.rename_uses(new, hidden);
        }
    }
}
