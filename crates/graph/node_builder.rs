//! Builder for nodes that replace another node. Each name is the replaced node's name plus a word,
//! so the layer table attributes times correctly.

use super::{Graph, Names};
use crate::{Attribute, Node};
use octet_onnx::schema::TensorProto;

/// The new nodes of a graph, and the new constants that they read.
pub struct Steps {
    /// Names in use; new nodes take fresh ones from it.
    pub names: Names,
    /// New nodes, in order.
    pub nodes: Vec<Node>,
    /// New constants that the new nodes read.
    pub constants: Vec<TensorProto>,
}

impl Steps {
    /// A builder without nodes; `names` holds the names in use.
    pub fn new(names: Names) -> Steps {
        Steps {
            names,
            nodes: Vec::new(),
            constants: Vec::new(),
        }
    }

    /// Replaces the graph's nodes and adds the constants.
    pub fn into_graph(self, graph: &mut Graph) {
        graph.replace_nodes(self.nodes);
        for tensor in self.constants {
            graph.initializers.insert(tensor);
        }
    }

    /// Adds a node with one output. Node and output are named after the title and the word; returns
    /// this name.
    pub fn step(&mut self, operator: &str, inputs: &[&str], title: &str, word: &str) -> String {
        self.step_with(operator, inputs, title, word, Vec::new())
    }

    /// Adds a node with one output and attributes, like [`Self::step`].
    pub fn step_with(
        &mut self,
        operator: &str,
        inputs: &[&str],
        title: &str,
        word: &str,
        attributes: Vec<Attribute>,
    ) -> String {
        let output = self.names.fresh(&format!("{title}.{word}"));
        self.last(operator, inputs, &output, &output, attributes);
        output
    }

    /// Adds a node with given names of node and output.
    pub fn last(
        &mut self,
        operator: &str,
        inputs: &[&str],
        name: &str,
        output: &str,
        attributes: Vec<Attribute>,
    ) {
        let node = Node::new(operator, name, inputs, &[output]);
        self.nodes
            .push(attributes.into_iter().fold(node, Node::with));
    }

    /// Adds a constant vector of integers.
    pub fn integers(&mut self, title: &str, values: &[i64]) -> String {
        self.constant(title, |name| {
            TensorProto::from_i64(name, &[values.len()], values)
        })
    }

    /// Adds a constant number.
    pub(crate) fn number(&mut self, title: &str, value: f32) -> String {
        self.constant(title, |name| TensorProto::from_f32(name, &[], &[value]))
    }

    /// Adds a constant; `make` gets its name.
    pub fn constant(&mut self, title: &str, make: impl FnOnce(&str) -> TensorProto) -> String {
        let name = self.names.fresh(&format!("{title}.constant"));
        self.constants.push(make(&name));
        name
    }
}
