//! Forward QDQ propagation: a pair before a data-movement node is copied behind it.

use std::collections::{HashMap, HashSet};

use super::{PairParameters, around_softmax, keeps_values};
use octet_graph::operators::{ChannelRole, Operator, Property, Treatment};
use octet_graph::{Graph, Node, Steps};

/// Visits the nodes in topological order, so a pair passes any number of data-movement nodes.
pub(super) fn propagate(graph: &mut Graph) {
    let asking = values_read_as_reals(graph);
    let around = around_softmax(graph);
    let mut steps = Steps::new(graph.names());
    let mut known: HashMap<String, PairParameters> = HashMap::new();
    let nodes = graph.take_nodes().into_iter().enumerate();
    for (index, mut node) in nodes {
        let passed = moved_pair(&node, graph, &known).filter(|_| !around.contains(&index));
        let passed = passed.cloned();
        if node.is("DequantizeLinear") {
            let pair = PairParameters::from_node(graph, &node);
            known.extend(node.output.first().cloned().zip(pair));
        }
        let Some(pair) = passed else {
            steps.nodes.push(node);
            continue;
        };
        let mut renamed = Vec::new();
        for output in &mut node.output {
            if asking.contains(output) {
                let real = steps.names.fresh(&format!("{output}_as_moved"));
                renamed.push((real.clone(), std::mem::replace(output, real)));
            }
        }
        steps.nodes.push(node);
        for (real, output) in renamed {
            pair.write(&real, &output, &mut steps);
            known.insert(output, pair.clone());
        }
    }
    steps.into_graph(graph);
}

/// Values that some node reads as reals.
fn values_read_as_reals(graph: &Graph) -> HashSet<String> {
    let result = graph.nodes().iter().flat_map(|node| &node.output);
    result
        .filter(|name| {
            let mut readers = graph.consumers(name).iter();
            readers.any(|reader| !graph.nodes()[reader.node].is("QuantizeLinear"))
        })
        .cloned()
        .collect()
}

/// The pair before all inputs that a node moves.
fn moved_pair<'a>(
    node: &Node,
    graph: &Graph,
    known: &'a HashMap<String, PairParameters>,
) -> Option<&'a PairParameters> {
    let pair = known.get(node.input_at(0)?)?;
    // True if the node's outputs contain only values of its inputs, or zeros.
    let operator = Operator::of(node);
    let treats = |treatment| operator.treatment == Some(treatment);
    let same = keeps_values(node)
        || treats(Treatment::Split)
        || node.is("Gather")
        || node.is("Relu")
        || operator.has(Property::ResizesImages) && picks_nearest(node)
        || treats(Treatment::Pad) && fills_with_zero(node, graph)
        || operator.channels == ChannelRole::Joins
            && node.input.iter().all(|name| {
                let other = known.get(name);
                other.is_some_and(|other| other.is_equal(pair, graph))
            });
    same.then_some(pair)
}

fn picks_nearest(node: &Node) -> bool {
    node.text("mode").unwrap_or("nearest") == "nearest"
        && node.text("coordinate_transformation_mode") != Some("tf_crop_and_resize")
}

fn fills_with_zero(node: &Node, graph: &Graph) -> bool {
    if node.text("mode").unwrap_or("constant") != "constant" {
        return true;
    }
    let zero = |value: &f32| *value == 0.0;
    match node.input_at(2) {
        Some(name) => graph
            .initializers
            .get(name)
            .and_then(|tensor| tensor.to_f32().ok())
            .is_some_and(|values| values.iter().all(zero)),
        None => zero(&node.float("value").unwrap_or(0.0)),
    }
}
