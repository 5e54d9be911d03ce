//! Finds where to split a model: behind nodes whose output size depends on data, and behind nodes
//! that compute sizes from values.
//!
//! tract would continue with symbolic sizes. Behind a cut they are numbers.

use std::collections::{BTreeSet, HashSet};

use octet_graph::operators::{Operator, Property};
use octet_graph::{Graph, Node, is_shape_determined};

/// The cuts of a graph.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CutPoints {
    /// Nodes that end a part: those that hold graphs, and those followed by a cut.
    pub(super) ends: Vec<usize>,
    /// The values of a model input determine a shape.
    pub(super) input_dependent: bool,
}

impl CutPoints {
    /// Finds the cuts of a prepared graph; `is_seen` tells which values have readers outside the
    /// graph.
    pub(super) fn new(graph: &Graph, is_seen: impl Fn(&str) -> bool) -> CutPoints {
        let mut ends = BTreeSet::new();
        let mut input_dependent = false;
        // Values that follow from constants and shapes, or that are known when the next part
        // begins.
        let mut settled: HashSet<&str> = HashSet::new();
        let constants = graph.initializers.iter();
        settled.extend(constants.map(|tensor| tensor.title()));
        for (place, node) in graph.nodes().iter().enumerate() {
            let operator = Operator::of(node);
            let shape_slots = operator.shape_slots.iter();
            for name in shape_slots.filter_map(|&slot| node.input_at(slot)) {
                if settled.contains(name) {
                    continue;
                }
                match graph.producer(name) {
                    Some(maker) => {
                        ends.insert(maker);
                        let outputs = &graph.nodes()[maker].output;
                        settled.extend(outputs.iter().map(String::as_str));
                    }
                    None => {
                        input_dependent = true;
                        settled.insert(name);
                    }
                }
            }
            let read = |name: &String| !graph.consumers(name).is_empty() || is_seen(name);
            let control = holds_graphs(node);
            let data_dependent = operator.has(Property::DataDependentShape);
            if control || (data_dependent && node.output.iter().any(read)) {
                ends.insert(place);
            }
            if control || is_shape_determined(node, &settled) {
                settled.extend(node.output.iter().map(String::as_str));
            }
        }
        CutPoints {
            ends: ends.into_iter().collect(),
            input_dependent,
        }
    }

    pub(super) fn is_none(&self) -> bool {
        self.ends.is_empty() && !self.input_dependent
    }
}

/// Returns true if a node holds graphs, which run apart from the others.
pub(super) fn holds_graphs(node: &Node) -> bool {
    Operator::of(node).has(Property::HoldsGraphs)
}

/// The values that determine shapes, and the values from which those are computed.
pub(crate) fn shape_values<'a>(
    nodes: impl DoubleEndedIterator<Item = &'a Node>,
) -> HashSet<&'a str> {
    let mut wanted: HashSet<&str> = HashSet::new();
    // Readers follow their producers.
    for node in nodes.rev() {
        let tells = node
            .output
            .iter()
            .any(|name| wanted.contains(name.as_str()));
        let operator = Operator::of(node);
        let shape_slots = operator.shape_slots.iter();
        wanted.extend(shape_slots.filter_map(|&slot| node.input_at(slot)));
        if tells && !operator.has(Property::OfShapes) {
            wanted.extend(node.input.iter().map(String::as_str));
        }
    }
    wanted
}
