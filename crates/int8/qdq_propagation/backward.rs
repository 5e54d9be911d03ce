//! Backward QDQ propagation: a pair behind a data-movement node is copied before it.

use std::collections::{HashMap, HashSet};

use super::{PairParameters, around_softmax, keeps_values};
use octet_graph::{Graph, Steps};

/// Visits the nodes in reverse order, so a pair passes any number of data-movement nodes.
pub(super) fn propagate(graph: &mut Graph, watched: &[String]) {
    let kept: HashSet<&str> = watched.iter().map(String::as_str).collect();
    // The only reader of a value that is neither an output nor watched.
    let only_read_by = |name: &str| {
        let inside = !graph.is_output(name) && !kept.contains(name);
        let reader = graph.only_consumer(name).filter(|_| inside)?;
        Some(reader.node)
    };
    let around = around_softmax(graph);
    let mut rounded: HashMap<&str, PairParameters> = HashMap::new();
    let mut pairs: HashMap<String, PairParameters> = HashMap::new();
    for (index, node) in graph.nodes().iter().enumerate().rev() {
        if node.is("QuantizeLinear") {
            let real = node.input_at(0).unwrap_or_default();
            if let Some(pair) =
                PairParameters::from_node(graph, node).filter(|_| only_read_by(real).is_some())
            {
                rounded.insert(real, pair);
            }
            continue;
        }
        let behind = node
            .output
            .first()
            .and_then(|name| rounded.get(name.as_str()));
        let Some(pair) = behind.cloned().filter(|_| !around.contains(&index)) else {
            continue;
        };
        let moved = match node.is("Concat") {
            true => &node.input[..],
            false if keeps_values(node) || node.is("Pad") => {
                node.input.get(..1).unwrap_or_default()
            }
            false => continue,
        };
        for name in moved {
            let maker = graph.producer(name).map(|maker| &graph.nodes()[maker]);
            let real = maker.is_some_and(|maker| !maker.is("DequantizeLinear"));
            if real && only_read_by(name) == Some(index) {
                rounded.insert(name, pair.clone());
                pairs.insert(name.clone(), pair.clone());
            }
        }
    }
    if pairs.is_empty() {
        return;
    }
    let mut steps = Steps::new(graph.names());
    for mut node in graph.take_nodes() {
        let mut result = Vec::new();
        for output in &mut node.output {
            if let Some(pair) = pairs.get(output) {
                let real = steps.names.fresh(&format!("{output}_before_rounding"));
                result.push((real.clone(), std::mem::replace(output, real), pair));
            }
        }
        steps.nodes.push(node);
        for (real, output, pair) in result {
            pair.write(&real, &output, &mut steps);
        }
    }
    steps.into_graph(graph);
}
