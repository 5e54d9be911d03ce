//! QDQ propagation: copies QuantizeLinear/DequantizeLinear pairs across nodes that only move data.
//!
//! A product runs on integers if a DequantizeLinear precedes it and a QuantizeLinear follows. Many
//! tools omit pairs around data-movement nodes, where they change nothing. Before matching, pairs
//! are therefore copied forwards (`forward`) and backwards (`backward`) across such nodes. Weights
//! that are moved after their DequantizeLinear become new constants (`weights`). Results are
//! unchanged.

mod backward;
mod forward;
mod pair;
mod weights;

use std::collections::HashSet;

use octet_graph::operators::{Operator, Property, Treatment};
use octet_graph::{Graph, Model, Node, Use};
use pair::PairParameters;

/// Propagates pairs through the model; watched values keep their meaning.
pub(super) fn propagate(model: &mut Model, watched: &[String]) {
    weights::fold_moved(&mut model.graph);
    forward::propagate(&mut model.graph);
    backward::propagate(&mut model.graph, watched);
}

/// True for nodes that keep all or some values of their first input. Rounding before or behind them
/// is the same, as it is monotonic. A MaxPool that returns the index of its maximum is none of them.
fn keeps_values(node: &Node) -> bool {
    let operator = Operator::of(node);
    let shares_scale =
        operator.has(Property::KeepsRange) && operator.treatment == Some(Treatment::Share);
    let has_index = node.output.get(1).is_some_and(|name| !name.is_empty());
    weights::is_data_movement(node) || shares_scale && !has_index
}

/// Nodes around each row Softmax that together form one over several axes (`operators/softmax.rs`).
/// They need no pairs.
fn around_softmax(graph: &Graph) -> HashSet<usize> {
    let mut around = HashSet::new();
    for node in graph.nodes().iter().filter(|node| node.is("Softmax")) {
        let before = node.input_at(0).and_then(|name| graph.producer(name));
        let behind = node
            .output
            .first()
            .and_then(|name| graph.only_consumer(name));
        let behind = behind.filter(|reader| reader.is_input(0));
        if let (Some(before), Some(Use { node: behind, .. })) = (before, behind)
            && graph.nodes()[before].is("Flatten")
            && graph.nodes()[behind].is("Reshape")
        {
            around.extend([before, behind]);
        }
    }
    around
}
