//! Maps the steps of a plan to the nodes of the model.
//!
//! tract names an operator after the node it comes from. A product that absorbed later nodes (a
//! Relu, a residual addition) is named after the last of them. This module assigns the cost to the
//! node that multiplies. Every node without a step of its own is assigned to the layer that does
//! its work.

use std::collections::{HashMap, HashSet};

use super::plan_step::PlanStep;
use octet_graph::operators::{Operator, Property};
use octet_graph::{Graph, is_random};

/// Returns for each node the node of its layer: itself if it has steps, another node if it was
/// fused, `None` if it was computed before the run.
pub(super) fn layers_of(graph: &Graph, steps: &[PlanStep]) -> Vec<Option<usize>> {
    let count = graph.nodes().len();
    let constant = constants(graph);
    let mut with_steps = vec![false; count];
    let mut with_product = vec![false; count];
    for step in steps {
        if let Some(node) = step.node {
            with_steps[node] = true;
            with_product[node] |= step.product;
        }
    }
    let mut layer: Vec<Option<usize>> = (0..count).map(|n| with_steps[n].then_some(n)).collect();
    let weighted = |node: usize| {
        let operator = graph.nodes()[node].op_type.as_str();
        Operator::in_any_domain(operator).has(Property::MatrixProduct)
    };
    for node in 0..count {
        if with_product[node] && !weighted(node) {
            for taken in path_to_product(graph, node, &with_product, &weighted) {
                layer[taken.0] = Some(taken.1);
            }
        }
    }
    // A fused node goes to the layer of its producer, or else to that of its reader.
    for node in 0..count {
        if layer[node].is_none() && !constant[node] {
            let makers = graph.nodes()[node].input.iter();
            layer[node] = makers
                .filter_map(|value| layer[graph.producer(value)?])
                .next();
        }
    }
    for node in (0..count).rev() {
        if layer[node].is_none() && !constant[node] {
            let readers = graph.nodes()[node]
                .output
                .iter()
                .flat_map(|value| graph.consumers(value));
            layer[node] = readers.filter_map(|reader| layer[reader.node]).next();
        }
    }
    // Layers may be assigned in a chain: follow it to the end.
    for node in 0..count {
        let mut found = layer[node];
        for _ in 0..count {
            match found.and_then(|l| layer[l]) {
                Some(next) if Some(next) != found => found = Some(next),
                _ => break,
            }
        }
        layer[node] = found;
    }
    layer
}

/// Finds the weighted node that a product named after `last` belongs to. Returns each node on the
/// way, paired with that node.
fn path_to_product(
    graph: &Graph,
    last: usize,
    with_product: &[bool],
    weighted: &impl Fn(usize) -> bool,
) -> Vec<(usize, usize)> {
    let mut seen = HashSet::from([last]);
    // Each node with the index of its predecessor in the search.
    let mut open = vec![(last, None)];
    let mut reached: Vec<(usize, Option<usize>)> = Vec::new();
    let mut best: Option<(bool, usize)> = None;
    while let Some((node, _)) = open.first().copied() {
        let from = open.remove(0).1;
        let here = reached.len();
        reached.push((node, from));
        if node != last && weighted(node) {
            // A node that has a product already is the second choice (tract computes a product of a
            // Concat as a sum of products).
            let taken = with_product[node];
            if best.is_none_or(|(found, _)| found && !taken) {
                best = Some((taken, here));
            }
            continue;
        }
        if node != last && with_product[node] {
            continue;
        }
        for value in &graph.nodes()[node].input {
            if let Some(maker) = graph.producer(value)
                && seen.insert(maker)
            {
                open.push((maker, Some(here)));
            }
        }
        if reached.len() > 32 {
            break;
        }
    }
    let Some((_, at)) = best else {
        return Vec::new();
    };
    let target = reached[at].0;
    let mut path = Vec::new();
    let mut here = reached[at].1;
    while let Some(index) = here {
        path.push((reached[index].0, target));
        here = reached[index].1;
    }
    path
}

/// Marks the nodes whose results don't depend on the inputs once shapes are known.
fn constants(graph: &Graph) -> Vec<bool> {
    let mut known: HashSet<&str> = graph
        .initializers
        .iter()
        .filter_map(|t| t.name.as_deref())
        .collect();
    let mut found = Vec::with_capacity(graph.nodes().len());
    for node in graph.nodes() {
        let inputs = node.input.iter().filter(|name| !name.is_empty());
        let constant = Operator::of(node).has(Property::OfShapes)
            || inputs
                .clone()
                .all(|name| known.contains(name.as_str()) && !is_random(node));
        if constant {
            known.extend(node.output.iter().map(String::as_str));
        }
        found.push(constant);
    }
    found
}

/// Assigns each step to the node of its layer.
pub(super) fn in_layers(layers: &[Option<usize>], steps: &mut [PlanStep]) {
    let moved: HashMap<usize, usize> = layers
        .iter()
        .enumerate()
        .filter_map(|(node, layer)| Some((node, (*layer)?)))
        .collect();
    for step in steps {
        if let Some(node) = step.node {
            step.node = Some(moved.get(&node).copied().unwrap_or(node));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octet_graph::Model;
    use octet_graph::Node;
    use octet_onnx::schema::{GraphProto, ModelProto, TensorProto, ValueInfoProto};

    fn graph(nodes: &[(&str, &str, &[&str], &str)]) -> Graph {
        let value = |name: &str| ValueInfoProto {
            name: Some(name.into()),
            ..Default::default()
        };
        let node = nodes
            .iter()
            .map(|(op, name, i, o)| Node::new(op, name, i, &[o]));
        let header = ModelProto {
            graph: Some(GraphProto {
                node: node.map(|node| node.to_proto()).collect(),
                initializer: vec![TensorProto::from_f32("w", &[1], &[1.0])],
                input: vec![value("x")],
                output: vec![value("y")],
                ..Default::default()
            }),
            ..Default::default()
        };
        Model::from_proto(header).unwrap().graph
    }

    fn step(node: usize, product: bool) -> PlanStep {
        PlanStep {
            node: Some(node),
            kernel: String::new(),
            product,
            on_integers: false,
            inputs: vec![],
            outputs: vec![],
        }
    }

    #[test]
    fn a_product_of_anothers_operator_keeps_its_own() {
        let graph = graph(&[
            ("MatMul", "a", &["x", "w"], "a"),
            ("Reshape", "b", &["a", "w"], "b"),
            ("MatMulNBits", "c", &["b", "w"], "y"),
        ]);
        let steps = [step(0, true), step(2, true)];
        assert_eq!(layers_of(&graph, &steps), [Some(0), Some(0), Some(2)]);
    }

    #[test]
    fn a_product_goes_back_to_the_node_that_multiplies() {
        let graph = graph(&[
            ("Conv", "a", &["x", "w"], "a"),
            ("Relu", "r", &["a"], "r"),
            ("Conv", "b", &["r", "w"], "b"),
            ("Relu", "s", &["b"], "s"),
            ("Add", "add", &["s", "a"], "y"),
        ]);
        // tract packs for `b` under its name and multiplies under the name of the addition; `r` has
        // its own step.
        let steps = [
            step(0, true),
            step(1, false),
            step(2, false),
            step(4, true),
            step(2, false),
        ];
        let found = layers_of(&graph, &steps);
        assert_eq!(found, [Some(0), Some(1), Some(2), Some(2), Some(2)]);
    }

    #[test]
    fn fused_nodes_belong_to_a_neighbour_and_constants_to_none() {
        let graph = graph(&[
            ("Flatten", "f", &["x"], "f"),
            ("Mul", "m", &["w", "w"], "m"),
            ("Shape", "sh", &["f"], "sh"),
            ("Add", "add", &["f", "m"], "add"),
            ("Reshape", "re", &["add", "sh"], "y"),
        ]);
        let found = layers_of(&graph, &[step(3, false)]);
        assert_eq!(found, [Some(3), None, None, Some(3), Some(3)]);
    }

    #[test]
    fn a_product_over_parts_of_a_concat_is_one_layer() {
        let graph = graph(&[
            ("Relu", "p", &["x"], "p"),
            ("Concat", "c", &["p", "x"], "c"),
            ("Conv", "a", &["c", "w"], "a"),
            ("Relu", "r", &["a"], "y"),
        ]);
        let found = layers_of(&graph, &[step(0, false), step(2, true), step(3, true)]);
        assert_eq!(found, [Some(0), Some(0), Some(2), Some(2)]);
    }
}
