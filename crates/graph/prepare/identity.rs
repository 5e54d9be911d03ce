//! Removes nodes that return their input.
//!
//! These are Identity, Dropout outside training, Cast to the type a value has, and Concat, Sum,
//! Max, Min and Mean of one input.

use std::collections::{HashMap, HashSet};

use crate::operators::{Operator, Property};
use crate::{Graph, Node, NodeId};

/// Removes such nodes; the graph's outputs keep their names. Returns the number of nodes.
pub(super) fn remove(graph: &mut Graph) -> usize {
    let types = crate::shapes::infer(graph);
    let fed: HashSet<String> = graph.inputs.iter().filter_map(|v| v.name.clone()).collect();
    let mut renamed: HashMap<String, String> = HashMap::new();
    let mut gone = HashSet::new();
    // Values whose producer takes over the name of a graph output.
    let mut moved: HashMap<String, String> = HashMap::new();
    for (i, node) in graph.nodes().iter().enumerate() {
        let same_type = |node: &Node| {
            let input = node
                .input_at(0)
                .and_then(|n| types.get(n))
                .map(|t| t.element as i64);
            input.is_some() && input == node.int("to")
        };
        let idle = node.is("Identity")
            || node.is("Cast") && same_type(node)
            || node.is("Dropout") && is_inference(node, graph)
            || node.input.len() == 1 && Operator::of(node).has(Property::IdleWithOneInput);
        let (Some(input), Some(output), true) = (node.input_at(0), node.output.first(), idle)
        else {
            continue;
        };
        let source = renamed
            .get(input)
            .cloned()
            .unwrap_or_else(|| input.to_owned());
        if !graph.is_output(output) {
            renamed.insert(output.clone(), source);
            gone.insert(i);
        } else if graph.producer(&source).is_some()
            && !fed.contains(&source)
            && !graph.is_output(&source)
            && !moved.contains_key(&source)
        {
            moved.insert(source, output.clone());
            gone.insert(i);
        }
    }
    graph.remove_nodes(&gone);
    graph.replace_all_uses(&renamed);
    let makers: Vec<NodeId> = moved
        .keys()
        .filter_map(|name| graph.producer(name))
        .collect();
    for maker in makers {
        graph.edit(maker, |node| node.rename_outputs(&moved));
    }
    graph.replace_all_uses(&moved);
    gone.len()
}

/// True for a Dropout that does nothing: no training mode, and its mask is unused.
fn is_inference(node: &Node, graph: &Graph) -> bool {
    let mask_unused = node
        .output
        .get(1)
        .is_none_or(|mask| mask.is_empty() || graph.is_unused(mask));
    let training = node.input_at(2).is_some_and(|name| {
        graph
            .initializers
            .get(name)
            .and_then(|t| t.to_i64().ok())
            .is_none_or(|v| v != [0])
    });
    mask_unused && !training
}
