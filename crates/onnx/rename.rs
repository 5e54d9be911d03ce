//! Renames the values that a node and its subgraphs use.

use std::collections::{HashMap, HashSet};

use super::schema::{GraphProto, NodeProto};

impl NodeProto {
    /// Replaces the uses of these names in the node and its subgraphs.
    pub fn replace_uses(&mut self, renamed: &HashMap<String, String>) {
        self.rename_uses(&|name| renamed.get(name).cloned());
    }

    /// Replaces the uses of the names for which `new` returns another name, in the node and its
    /// subgraphs.
    pub fn rename_uses(&mut self, new: &impl Fn(&str) -> Option<String>) {
        rename(self, new, &HashSet::new());
    }

    /// Replaces the values that the subgraphs capture: `new` maps each old name to its new one.
    pub fn replace_captured(&mut self, mut new: impl FnMut(&str) -> String) {
        let captured = self.captured().into_iter();
        let renamed: HashMap<String, String> =
            captured.map(|name| (name.clone(), new(&name))).collect();
        for attribute in &mut self.attribute {
            for graph in attribute.g.iter_mut().chain(&mut attribute.graphs) {
                rename_inside(graph, &|name| renamed.get(name).cloned(), &HashSet::new());
            }
        }
    }
}

/// Renames the values that a node uses, including in its subgraphs unless they redefine the name.
fn rename(node: &mut NodeProto, new: &impl Fn(&str) -> Option<String>, hidden: &HashSet<String>) {
    let fresh = |name: &str| {
        if hidden.contains(name) {
            None
        } else {
            new(name)
        }
    };
    for input in &mut node.input {
        if let Some(name) = fresh(input) {
            *input = name;
        }
    }
    for attribute in &mut node.attribute {
        for graph in attribute.g.iter_mut().chain(&mut attribute.graphs) {
            rename_inside(graph, new, hidden);
        }
    }
}

fn rename_inside(
    graph: &mut GraphProto,
    new: &impl Fn(&str) -> Option<String>,
    hidden: &HashSet<String>,
) {
    let mut hidden = hidden.clone();
    hidden.extend(graph.input.iter().filter_map(|v| v.name.clone()));
    hidden.extend(graph.initializer.iter().filter_map(|t| t.name.clone()));
    hidden.extend(graph.node.iter().flat_map(|n| n.output.iter().cloned()));
    for node in &mut graph.node {
        rename(node, new, &hidden);
    }
    // A subgraph may return a value of the outer graph.
    for output in &mut graph.output {
        let name = output.name.as_deref().filter(|n| !hidden.contains(*n));
        if let Some(name) = name.and_then(new) {
            output.name = Some(name);
        }
    }
}
