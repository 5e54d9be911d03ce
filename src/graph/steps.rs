//! Nodes that are written in place of another: one after the other, each named after that and a word more, so a table of
//! layers knows whose time it is.

use super::{Graph, Names};
use crate::onnx::schema::{AttributeProto, NodeProto, TensorProto};

/// The nodes of a graph that is written anew, and the constants that they read beside the graph's own.
pub(crate) struct Steps {
    pub(crate) names: Names,
    pub(crate) nodes: Vec<NodeProto>,
    pub(crate) constants: Vec<TensorProto>,
}

impl Steps {
    pub(crate) fn new(names: Names) -> Steps {
        Steps {
            names,
            nodes: Vec::new(),
            constants: Vec::new(),
        }
    }

    /// Puts the nodes in place of the graph's, and the constants beside its own.
    pub(crate) fn into_graph(self, graph: &mut Graph) {
        graph.nodes = self.nodes;
        for tensor in self.constants {
            graph.initializers.insert(tensor);
        }
    }

    /// A node with one output, both under the title and the word; the name of both.
    pub(crate) fn step(
        &mut self,
        operator: &str,
        inputs: &[&str],
        title: &str,
        word: &str,
    ) -> String {
        self.step_with(operator, inputs, title, word, Vec::new())
    }

    /// The same with attributes.
    pub(crate) fn step_with(
        &mut self,
        operator: &str,
        inputs: &[&str],
        title: &str,
        word: &str,
        attributes: Vec<AttributeProto>,
    ) -> String {
        let output = self.names.fresh(&format!("{title}.{word}"));
        self.last(operator, inputs, &output, &output, attributes);
        output
    }

    /// A node that makes a value whose name is known, the node's own name, too.
    pub(crate) fn last(
        &mut self,
        operator: &str,
        inputs: &[&str],
        name: &str,
        output: &str,
        attributes: Vec<AttributeProto>,
    ) {
        let node = NodeProto::new(operator, name, inputs, &[output]);
        self.nodes
            .push(attributes.into_iter().fold(node, NodeProto::with));
    }

    /// A constant vector of integers.
    pub(crate) fn integers(&mut self, title: &str, values: &[i64]) -> String {
        self.constant(title, |name| {
            TensorProto::from_i64(name, &[values.len()], values)
        })
    }

    /// A constant number.
    pub(crate) fn number(&mut self, title: &str, value: f32) -> String {
        self.constant(title, |name| TensorProto::from_f32(name, &[], &[value]))
    }

    /// A constant of the name it is given.
    pub(crate) fn constant(
        &mut self,
        title: &str,
        make: impl FnOnce(&str) -> TensorProto,
    ) -> String {
        let name = self.names.fresh(&format!("{title}.constant"));
        self.constants.push(make(&name));
        name
    }
}
