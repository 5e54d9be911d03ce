//! The main graph of a model.

use std::collections::{HashMap, HashSet};

use octet_onnx::schema::{DataType, GraphProto, SparseTensorProto, ValueInfoProto};

use crate::uses::{NodeId, Use, UseLists};
use crate::{Dim, GraphError, Initializers, Node, Slot, TensorType, order, tensor_type_of};

/// The main graph of a model. Its edits keep the lists of each value's producer and consumers.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    nodes: Vec<Node>,
    outputs: Vec<ValueInfoProto>,
    /// Constants.
    pub initializers: Initializers,
    /// Inputs; before `prepare` they may include initializers.
    pub inputs: Vec<ValueInfoProto>,
    /// Types of intermediate values, as far as the file or `prepare` knows them.
    pub value_info: Vec<ValueInfoProto>,
    uses: UseLists,
    rest: GraphProto,
}

impl Graph {
    /// Reads a message; tensor bytes are shared. Checks and sorts the nodes.
    pub(crate) fn from_proto(mut rest: GraphProto) -> Result<Graph, GraphError> {
        order::check_operators(&rest)?;
        let initializers = order::constants(std::mem::take(&mut rest.initializer))?;
        let nodes = std::mem::take(&mut rest.node).into_iter();
        let outputs = std::mem::take(&mut rest.output);
        let mut graph = Graph {
            nodes: Vec::new(),
            outputs: Vec::new(),
            initializers,
            inputs: std::mem::take(&mut rest.input),
            value_info: std::mem::take(&mut rest.value_info),
            uses: UseLists::default(),
            rest,
        };
        graph.set_outputs(outputs);
        graph.set_nodes(nodes.map(Node::from_proto).collect())?;
        Ok(graph)
    }

    /// Writes the message; tensor bytes are shared.
    pub(crate) fn to_proto(&self) -> GraphProto {
        GraphProto {
            node: self.nodes.iter().map(Node::to_proto).collect(),
            initializer: self.initializers.tensors.clone(),
            input: self.inputs.clone(),
            output: self.outputs.clone(),
            value_info: self.value_info.clone(),
            ..self.rest.clone()
        }
    }

    /// Name of the graph.
    pub fn name(&self) -> Option<&str> {
        self.rest.name.as_deref()
    }

    /// Nodes in topological order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Outputs.
    pub fn outputs(&self) -> &[ValueInfoProto] {
        &self.outputs
    }

    /// The node that produces the value.
    pub fn producer(&self, value: &str) -> Option<NodeId> {
        self.uses.producer(value)
    }

    /// The uses of a value, in the order of the nodes.
    pub fn consumers(&self, value: &str) -> &[Use] {
        self.uses.consumers(value)
    }

    /// The only use of a value; `None` if it has none or several.
    pub fn only_consumer(&self, value: &str) -> Option<Use> {
        match *self.consumers(value) {
            [reader] => Some(reader),
            _ => None,
        }
    }

    /// Returns true if a subgraph uses the value.
    pub fn is_captured(&self, value: &str) -> bool {
        let mut consumers = self.consumers(value).iter();
        consumers.any(|reader| reader.slot == Slot::Captured)
    }

    /// Returns true if the value is an output of the graph.
    pub fn is_output(&self, value: &str) -> bool {
        self.uses.is_output(value)
    }

    /// Returns true if nothing uses the value: no node, no subgraph, no output.
    pub fn is_unused(&self, value: &str) -> bool {
        self.consumers(value).is_empty() && !self.is_output(value)
    }

    /// Replaces the nodes, after a check and a topological sort. Trailing empty input and output
    /// names of nodes are removed.
    pub(crate) fn set_nodes(&mut self, mut nodes: Vec<Node>) -> Result<(), GraphError> {
        for node in &mut nodes {
            order::cut_absent_ends(node);
        }
        let nodes = order::sorted(nodes, self)?;
        self.replace_nodes(nodes);
        Ok(())
    }

    /// Replaces the nodes by others in topological order, each value produced once.
    pub fn replace_nodes(&mut self, nodes: Vec<Node>) {
        self.uses.set_nodes(&nodes);
        self.nodes = nodes;
    }

    /// Takes all nodes out, for a pass that writes each of them again.
    pub fn take_nodes(&mut self) -> Vec<Node> {
        self.uses.set_nodes(&[]);
        std::mem::take(&mut self.nodes)
    }

    /// Adds a node behind all others.
    pub fn push(&mut self, node: Node) {
        self.uses.add(self.nodes.len(), &node);
        self.nodes.push(node);
    }

    /// Adds nodes behind all others.
    pub fn extend(&mut self, nodes: impl IntoIterator<Item = Node>) {
        nodes.into_iter().for_each(|node| self.push(node));
    }

    /// Adds nodes before the one at `place`.
    pub fn insert(&mut self, place: NodeId, nodes: impl IntoIterator<Item = Node>) {
        let mut all = self.take_nodes();
        all.splice(place..place, nodes);
        self.replace_nodes(all);
    }

    /// Edits one node.
    pub fn edit<R>(&mut self, id: NodeId, change: impl FnOnce(&mut Node) -> R) -> R {
        self.uses.remove(id, &self.nodes[id]);
        let result = change(&mut self.nodes[id]);
        self.uses.add(id, &self.nodes[id]);
        result
    }

    /// Edits the nodes one after another.
    pub fn edit_all(&mut self, mut change: impl FnMut(NodeId, &mut Node)) {
        for (id, node) in self.nodes.iter_mut().enumerate() {
            change(id, node);
        }
        self.uses.set_nodes(&self.nodes);
    }

    /// Replaces the outputs.
    pub fn set_outputs(&mut self, outputs: Vec<ValueInfoProto>) {
        self.uses.set_outputs(&outputs);
        self.outputs = outputs;
    }

    /// Adds an output.
    pub fn push_output(&mut self, output: ValueInfoProto) {
        self.uses.add_output(&output);
        self.outputs.push(output);
    }

    /// Changes the declared types of inputs and outputs.
    pub fn edit_ports<R>(
        &mut self,
        change: impl FnOnce(&mut [ValueInfoProto], &mut [ValueInfoProto]) -> R,
    ) -> R {
        let result = change(&mut self.inputs, &mut self.outputs);
        self.uses.set_outputs(&self.outputs);
        result
    }

    /// The sparse constants.
    pub(crate) fn sparse(&self) -> &[SparseTensorProto] {
        &self.rest.sparse_initializer
    }

    /// Element types of all declared values and of constants.
    pub fn element_types(&self) -> HashMap<&str, DataType> {
        let declared = self
            .inputs
            .iter()
            .chain(&self.outputs)
            .chain(&self.value_info);
        let values =
            declared.filter_map(|v| Some((v.name.as_deref()?, tensor_type_of(v)?.element)));
        let constants = self.initializers.iter();
        let constants = constants.filter_map(|t| Some((t.name.as_deref()?, t.element().ok()?)));
        values.chain(constants).collect()
    }

    /// Mutable access to the sparse constants.
    pub(crate) fn sparse_mut(&mut self) -> &mut [SparseTensorProto] {
        &mut self.rest.sparse_initializer
    }

    /// Type and shape of an initializer, input, output or `value_info`.
    pub fn tensor_type(&self, name: &str) -> Option<TensorType> {
        if let Some(t) = self.initializers.get(name) {
            let shape = t
                .dims
                .iter()
                .map(|&d| Dim::Known(d.max(0) as usize))
                .collect();
            let element = DataType::try_from(t.data_type.unwrap_or(0)).ok()?;
            return Some(TensorType {
                element,
                shape: Some(shape),
            });
        }
        [&self.inputs, &self.outputs, &self.value_info]
            .into_iter()
            .flatten()
            .find(|v| v.name.as_deref() == Some(name))
            .and_then(tensor_type_of)
    }

    /// Returns true if every node output except graph outputs has a declared element type and
    /// dimensions. All operators must be ONNX's own.
    pub fn is_typed(&self) -> bool {
        let foreign = |node: &Node| !matches!(node.domain.as_deref(), None | Some("" | "ai.onnx"));
        if self.nodes.iter().any(foreign) {
            return false;
        }
        let shape = |value: &ValueInfoProto| tensor_type_of(value)?.shape;
        let whole = |value: &&ValueInfoProto| {
            shape(value).is_some_and(|shape| !shape.contains(&Dim::Unknown))
        };
        let typed = self.value_info.iter().filter(whole);
        let known: HashSet<&str> = typed
            .chain(&self.outputs)
            .filter_map(|value| value.name.as_deref())
            .collect();
        let mut outputs = self.nodes.iter().flat_map(|node| &node.output);
        outputs.all(|name| name.is_empty() || known.contains(name.as_str()))
    }
}
