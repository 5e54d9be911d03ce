//! Checks of a model, and views on it.

use std::collections::HashSet;

use octet_graph::{Model, Node};

/// The node that produces a value.
pub fn producer<'a>(model: &'a Model, value: &str) -> &'a Node {
    let mut nodes = model.graph.nodes().iter();
    nodes.find(|n| n.output.iter().any(|o| o == value)).unwrap()
}

/// The operators of the nodes, in order; one of another domain has that as a prefix.
pub fn operators(model: &Model) -> Vec<String> {
    model.graph.nodes().iter().map(Node::operator).collect()
}

/// Node names that several nodes of the graph have. ONNX Runtime refuses a model with such names.
pub fn repeated_node_names(model: &Model) -> HashSet<String> {
    let mut once = HashSet::new();
    let names = model.graph.nodes().iter().filter_map(|n| n.name.clone());
    names
        .filter(|name| !name.is_empty() && !once.insert(name.clone()))
        .collect()
}

/// Asserts that every value is produced once and before its use, that names are unique, and that
/// every output is produced.
pub fn assert_valid(model: &Model) {
    assert_valid_like(model, &HashSet::new());
}

/// As [`assert_valid`], with node names that may be repeated: those of the model's source.
pub fn assert_valid_like(model: &Model, repeated: &HashSet<String>) {
    let graph = &model.graph;
    let inputs = graph.inputs.iter().filter_map(|v| v.name.clone());
    let mut known: HashSet<String> = HashSet::new();
    for name in inputs.chain(graph.initializers.iter().filter_map(|t| t.name.clone())) {
        assert!(known.insert(name.clone()), "{name} is there twice");
    }
    for name in repeated_node_names(model) {
        assert!(repeated.contains(&name), "two nodes are named {name}");
    }
    for node in graph.nodes() {
        let captured = node.captured();
        for name in node.input.iter().chain(&captured).filter(|n| !n.is_empty()) {
            let title = node.title();
            assert!(
                known.contains(name),
                "{title} uses {name} before it is made"
            );
        }
        for name in node.output.iter().filter(|n| !n.is_empty()) {
            assert!(known.insert(name.clone()), "{name} is made twice");
        }
    }
    for output in graph.outputs().iter().filter_map(|v| v.name.as_ref()) {
        assert!(known.contains(output), "the output {output} is not made");
    }
    for tensor in graph.initializers.iter() {
        tensor.check().unwrap();
    }
}
