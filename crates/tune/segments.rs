//! Cuts a graph before each of some nodes, into segments that run one after another.
//!
//! A DequantizeLinear belongs to every segment that reads its result, so that the values between
//! two segments are integers wherever the model has them.

use std::collections::{BTreeSet, HashMap, HashSet};

use octet_graph::{Dim, Graph, Model, Node, TensorType};
use octet_onnx::in_memory::Tensor;
use octet_onnx::schema::{TensorProto, ValueInfoProto};

use crate::TuneError;

/// A part of a graph.
pub(crate) struct GraphSegment {
    /// Nodes in order.
    nodes: Vec<usize>,
    /// Values of earlier segments that this one reads.
    pub(crate) inputs: Vec<String>,
    /// Values that later segments or the model's caller read.
    pub(crate) outputs: Vec<String>,
    /// Values that no later segment reads.
    pub(crate) ended: Vec<String>,
}

/// True for a node that is repeated where its result is read.
/// Those of 4 and 16 bits are of another domain before opset 21.
pub(crate) fn is_repeated(node: &Node) -> bool {
    node.op_type == "DequantizeLinear"
}

/// The value that rests between segments in place of a value: the integers of a dequantized one.
pub(crate) fn resting<'a>(graph: &'a Graph, value: &'a str) -> &'a str {
    let producer = graph.producer(value).map(|node| &graph.nodes()[node]);
    match producer.filter(|node| is_repeated(node)) {
        Some(node) => node.input_at(0).unwrap_or(value),
        None => value,
    }
}

/// The values that a node reads from outside of the graph's constants, in the form that rests.
pub(crate) fn reads<'a>(graph: &'a Graph, node: &'a Node) -> impl Iterator<Item = &'a str> {
    let inputs = node.input.iter().filter(|input| !input.is_empty());
    let values = inputs.map(|input| resting(graph, input));
    values.filter(|value| !graph.initializers.contains(value))
}

/// Cuts a graph before the nodes `cuts`, which are in ascending order. The last segment ends with
/// the graph.
pub(crate) fn segments(graph: &Graph, cuts: &[usize]) -> Result<Vec<GraphSegment>, TuneError> {
    let control = graph
        .nodes()
        .iter()
        .find(|node| node.subgraphs().next().is_some());
    if let Some(node) = control {
        return Err(TuneError::ControlFlow {
            node: node.title().to_string(),
            operator: node.operator(),
        });
    }
    let count = graph.nodes().len();
    let ends: Vec<usize> = cuts.iter().copied().chain([count]).collect();
    let segment_of = |node: usize| ends.partition_point(|&end| end <= node);
    // The last segment that reads each value. The caller reads the outputs.
    let mut last_reader: HashMap<&str, usize> = HashMap::new();
    for (index, node) in graph
        .nodes()
        .iter()
        .enumerate()
        .filter(|(_, node)| !is_repeated(node))
    {
        for value in reads(graph, node) {
            let last = last_reader.entry(value).or_default();
            *last = segment_of(index).max(*last);
        }
    }
    for output in graph.outputs() {
        let name = output.name.as_deref().unwrap_or_default();
        last_reader.insert(resting(graph, name), ends.len());
    }
    let mut begin = 0;
    let mut all = Vec::new();
    for (place, &end) in ends.iter().enumerate() {
        let own: Vec<usize> = (begin..end)
            .filter(|&node| !is_repeated(&graph.nodes()[node]))
            .collect();
        let made: HashSet<&str> = own
            .iter()
            .flat_map(|&node| &graph.nodes()[node].output)
            .map(String::as_str)
            .collect();
        let mut nodes: BTreeSet<usize> = own.iter().copied().collect();
        let mut inputs = BTreeSet::new();
        for &node in &own {
            for input in &graph.nodes()[node].input {
                let producer = graph.producer(input);
                nodes.extend(producer.filter(|&node| is_repeated(&graph.nodes()[node])));
            }
            let from_outside = reads(graph, &graph.nodes()[node]);
            inputs.extend(from_outside.filter(|value| !made.contains(value)));
        }
        let outputs = made
            .iter()
            .filter(|value| last_reader.get(*value) > Some(&place));
        let ended = inputs
            .iter()
            .filter(|value| last_reader.get(*value) == Some(&place));
        let names = |values: Vec<&&str>| -> Vec<String> {
            let mut names: Vec<String> = values.iter().map(|name| name.to_string()).collect();
            names.sort();
            names
        };
        all.push(GraphSegment {
            outputs: names(outputs.collect()),
            ended: names(ended.collect()),
            inputs: inputs.into_iter().map(str::to_string).collect(),
            nodes: nodes.into_iter().collect(),
        });
        begin = end;
    }
    Ok(all)
}

impl GraphSegment {
    /// The segment of one node, for [`GraphSegment::model`] alone.
    pub(crate) fn of_node(node: usize, outputs: Vec<String>) -> GraphSegment {
        GraphSegment {
            nodes: vec![node],
            inputs: Vec::new(),
            outputs,
            ended: Vec::new(),
        }
    }

    /// The model of the segment, for inputs of these types. `known` inputs are constants.
    pub(crate) fn model(
        &self,
        model: &Model,
        inputs: &[(&str, &Tensor)],
        known: &[(&str, &Tensor)],
    ) -> Model {
        let mut part = model.clone();
        let graph = &mut part.graph;
        let nodes: Vec<Node> = self
            .nodes
            .iter()
            .map(|&node| model.graph.nodes()[node].clone())
            .collect();
        let read: HashSet<&String> = nodes.iter().flat_map(|node| &node.input).collect();
        graph
            .initializers
            .retain(|tensor| tensor.name.as_ref().is_some_and(|name| read.contains(name)));
        for (name, tensor) in known {
            graph
                .initializers
                .insert(TensorProto::from_tensor(name, tensor));
        }
        let port = |(name, tensor): &(&str, &Tensor)| {
            let shape = Some(vec![Dim::Unknown; tensor.shape().len()]);
            let element = tensor.element_type();
            ValueInfoProto::new(name, &TensorType { element, shape })
        };
        graph.inputs = inputs.iter().map(port).collect();
        graph.value_info.clear();
        let output = |name: &String| ValueInfoProto {
            name: Some(name.clone()),
            ..ValueInfoProto::default()
        };
        graph.replace_nodes(nodes);
        graph.set_outputs(self.outputs.iter().map(output).collect());
        part
    }
}
