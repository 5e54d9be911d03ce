//! Edits that keep a graph valid.

use std::collections::{HashMap, HashSet};

use super::{Graph, Model, NodeId};
use crate::Node;
use octet_onnx::schema::OperatorSetIdProto;

/// Names in use in a graph and its subgraphs, of values and of nodes.
#[derive(Clone, Debug, Default)]
pub struct Names {
    taken: HashSet<String>,
    /// Last suffix per requested name. Similar names then need no search from the first suffix.
    numbers: HashMap<String, usize>,
}

impl Names {
    /// Reserves and returns `wanted` if it is free, else the first free name of `wanted_1`,
    /// `wanted_2` ….
    pub fn fresh(&mut self, wanted: &str) -> String {
        if !wanted.is_empty() && self.taken.insert(wanted.to_owned()) {
            return wanted.to_owned();
        }
        let number = self.numbers.entry(wanted.to_owned()).or_default();
        loop {
            *number += 1;
            let name = format!("{wanted}_{number}");
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }

    /// All names in use, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &String> {
        self.taken.iter()
    }

    /// Returns true if the name is in use.
    pub fn contains(&self, name: &str) -> bool {
        self.taken.contains(name)
    }

    fn nodes<'a>(&mut self, nodes: impl Iterator<Item = &'a Node>) {
        for node in nodes {
            self.taken.extend(
                node.name
                    .iter()
                    .chain(&node.output)
                    .chain(&node.input)
                    .cloned(),
            );
            for inner in node.subgraphs() {
                self.taken
                    .extend(inner.initializers.iter().filter_map(|t| t.name.clone()));
                self.taken
                    .extend(inner.inputs.iter().filter_map(|v| v.name.clone()));
                self.nodes(inner.nodes.iter());
            }
        }
    }
}

impl Graph {
    /// All names in use, for the creation of fresh ones.
    pub fn names(&self) -> Names {
        let mut names = Names::default();
        let values = self
            .inputs
            .iter()
            .chain(self.outputs())
            .chain(&self.value_info);
        names.taken.extend(values.filter_map(|v| v.name.clone()));
        names
            .taken
            .extend(self.initializers.iter().filter_map(|t| t.name.clone()));
        let sparse = self.sparse().iter().filter_map(|s| s.values.as_ref());
        names.taken.extend(sparse.filter_map(|t| t.name.clone()));
        names.nodes(self.nodes().iter());
        names
    }

    /// Removes the nodes at these indices. Their outputs must be unused.
    pub fn remove_nodes(&mut self, indices: &HashSet<usize>) {
        let nodes = self.take_nodes().into_iter().enumerate();
        let kept = nodes.filter(|(id, _)| !indices.contains(id));
        self.replace_nodes(kept.map(|(_, node)| node).collect());
    }

    /// Keeps the constants for which `keep` returns true; it gets the graph and the name.
    pub fn retain_initializers(&mut self, keep: impl Fn(&Graph, &str) -> bool) {
        let names = self.initializers.iter().map(|tensor| tensor.title());
        let gone = names.filter(|name| !keep(self, name)).map(str::to_owned);
        let gone: HashSet<String> = gone.collect();
        self.initializers
            .retain(|tensor| !gone.contains(tensor.title()));
    }

    /// Replaces all uses of `old` by `new` in nodes and their subgraphs. Graph outputs keep their
    /// names.
    pub fn replace_uses(&mut self, old: &str, new: &str) {
        self.replace_all_uses(&HashMap::from([(old.to_owned(), new.to_owned())]));
    }

    /// Replaces the uses of several values at once. A new name may itself be an old one.
    pub fn replace_all_uses(&mut self, renamed: &HashMap<String, String>) {
        if renamed.is_empty() {
            return;
        }
        let last = |name: &str| {
            let mut name = renamed.get(name)?;
            // Chains are finite because the graph has no cycles; a chain is at most as long as the
            // map.
            for _ in 0..renamed.len() {
                match renamed.get(name) {
                    Some(next) => name = next,
                    None => break,
                }
            }
            Some(name.clone())
        };
        let readers = renamed.keys().flat_map(|name| self.consumers(name));
        let readers: HashSet<NodeId> = readers.map(|reader| reader.node).collect();
        for id in readers {
            self.edit(id, |node| node.rename_uses(&last));
        }
    }

    /// Removes unused nodes, constants and value types. Returns the number of removed nodes.
    pub fn remove_unused(&mut self) -> usize {
        self.remove_unused_except(&[])
    }

    /// Removes unused nodes, constants and value types, but keeps the nodes that compute `watched`.
    pub fn remove_unused_except(&mut self, watched: &[String]) -> usize {
        let mut wanted = vec![false; self.nodes().len()];
        let outputs = self.outputs().iter();
        let outputs = outputs.map(|v| v.name.as_deref().unwrap_or_default());
        let mut open: Vec<usize> = outputs
            .chain(watched.iter().map(String::as_str))
            .filter_map(|name| self.producer(name))
            .collect();
        while let Some(i) = open.pop() {
            if std::mem::replace(&mut wanted[i], true) {
                continue;
            }
            let captured = self.nodes()[i].captured();
            open.extend(
                self.nodes()[i]
                    .input
                    .iter()
                    .chain(&captured)
                    .filter_map(|v| self.producer(v)),
            );
        }
        let before = self.nodes().len();
        self.remove_nodes(&(0..before).filter(|&i| !wanted[i]).collect());

        let mut known: HashSet<String> = HashSet::new();
        for node in self.nodes() {
            known.extend(node.input.iter().chain(&node.output).cloned());
            known.extend(node.captured());
        }
        known.extend(self.outputs().iter().filter_map(|v| v.name.clone()));
        self.initializers
            .retain(|t| known.contains(t.name.as_deref().unwrap_or_default()));
        self.value_info
            .retain(|v| known.contains(v.name.as_deref().unwrap_or_default()));
        before - self.nodes().len()
    }
}

impl Model {
    /// Sets the version of ONNX's own operator set.
    pub fn set_opset(&mut self, version: i64) {
        let imports = &mut self.header_mut().opset_import;
        match imports
            .iter_mut()
            .find(|o| matches!(o.domain.as_deref(), None | Some("" | "ai.onnx")))
        {
            Some(import) => import.version = Some(version),
            None => imports.push(OperatorSetIdProto {
                domain: Some(String::new()),
                version: Some(version),
            }),
        }
    }
}
