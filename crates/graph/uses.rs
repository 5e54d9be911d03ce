//! Producers and consumers of each value. The graph's edits keep them.

use std::collections::{HashMap, HashSet};

use octet_onnx::schema::ValueInfoProto;

use crate::Node;

/// Place of a node in the topological order of its graph. Removing nodes changes the places behind.
pub type NodeId = usize;

/// A use of a value by a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Use {
    /// The node that uses the value.
    pub node: NodeId,
    /// Input slot or capture.
    pub slot: Slot,
}

impl Use {
    /// The input slot; `None` for a use within a subgraph.
    pub fn input(&self) -> Option<usize> {
        match self.slot {
            Slot::Input(slot) => Some(slot),
            Slot::Captured => None,
        }
    }

    /// True if the value is the node's input of this number.
    pub fn is_input(&self, slot: usize) -> bool {
        self.slot == Slot::Input(slot)
    }
}

/// The way in which a node uses a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// As its input of this number.
    Input(usize),
    /// Within a subgraph (If, Loop, Scan).
    Captured,
}

/// Producer and consumers of one value.
#[derive(Clone, Debug, Default, PartialEq)]
struct ValueUses {
    producer: Option<NodeId>,
    consumers: Vec<Use>,
}

/// Producers and consumers of all values of a graph, and the names of its outputs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UseLists {
    values: HashMap<String, ValueUses>,
    outputs: HashSet<String>,
}

impl UseLists {
    pub(crate) fn producer(&self, value: &str) -> Option<NodeId> {
        self.values.get(value)?.producer
    }

    pub(crate) fn consumers(&self, value: &str) -> &[Use] {
        self.values.get(value).map_or(&[], |uses| &uses.consumers)
    }

    pub(crate) fn is_output(&self, value: &str) -> bool {
        self.outputs.contains(value)
    }

    /// Replaces the names of the outputs.
    pub(crate) fn set_outputs(&mut self, outputs: &[ValueInfoProto]) {
        self.outputs.clear();
        outputs.iter().for_each(|output| self.add_output(output));
    }

    pub(crate) fn add_output(&mut self, output: &ValueInfoProto) {
        self.outputs.extend(output.name.clone());
    }

    /// Replaces the lists by those of other nodes.
    pub(crate) fn set_nodes(&mut self, nodes: &[Node]) {
        self.values.clear();
        for (id, node) in nodes.iter().enumerate() {
            self.add(id, node);
        }
    }

    /// Adds a node's outputs and uses.
    pub(crate) fn add(&mut self, id: NodeId, node: &Node) {
        for output in node.output.iter().filter(|name| !name.is_empty()) {
            self.value(output).producer = Some(id);
        }
        each_use(node, |value, slot| {
            let new = Use { node: id, slot };
            let consumers = &mut self.value(value).consumers;
            let place = consumers.partition_point(|other| *other < new);
            consumers.insert(place, new);
        });
    }

    /// Removes a node's outputs and uses.
    pub(crate) fn remove(&mut self, id: NodeId, node: &Node) {
        for output in &node.output {
            self.change(output, |uses| {
                uses.producer = uses.producer.filter(|&producer| producer != id);
            });
        }
        each_use(node, |value, _| {
            self.change(value, |uses| {
                uses.consumers.retain(|other| other.node != id)
            });
        });
    }

    /// Changes the entry of a value, and drops it if nothing is left.
    fn change(&mut self, value: &str, change: impl FnOnce(&mut ValueUses)) {
        if let Some(uses) = self.values.get_mut(value) {
            change(uses);
            if *uses == ValueUses::default() {
                self.values.remove(value);
            }
        }
    }

    fn value(&mut self, name: &str) -> &mut ValueUses {
        self.values.entry(name.to_owned()).or_default()
    }
}

/// Calls `each` for the values that a node uses, with the way.
fn each_use(node: &Node, mut each: impl FnMut(&str, Slot)) {
    for (slot, name) in node.input.iter().enumerate() {
        if !name.is_empty() {
            each(name, Slot::Input(slot));
        }
    }
    for name in node.captured() {
        each(&name, Slot::Captured);
    }
}
