//! The costs of a tensor's bits: bytes of the file, and time of a run.
//!
//! The bytes are those of the written file. The time of a node depends on
//! all its inputs: it computes in the widest form among them. It comes from profiles of three
//! models, in 8 bits, 16 bits and float, or else from a model of costs by multiplications.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Bits;
use super::tensors::SearchTensor;
use crate::graph::Model;
use crate::profile::macs::macs;

/// The source of the times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TimeSource {
    /// Profiles of the layers on this machine, in milliseconds.
    Profile,
    /// A model of costs: multiplications, twice as many with 16 bits or in float. It has no unit.
    Model,
}

/// Time to read or write a value, in multiplications.
const VALUE: f64 = 8.0;
/// Products of 16-bit activations are two products of bytes; float ones are about as slow.
const WIDE: f64 = 2.0;

/// Times of one node in the three forms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeTimes {
    /// With 8-bit integers or fewer.
    pub narrow: f64,
    /// With 16-bit activations.
    pub wide: f64,
    /// In float.
    pub float: f64,
}

impl NodeTimes {
    fn of(self, bits: Bits) -> f64 {
        match bits {
            Bits::Four | Bits::Eight => self.narrow,
            Bits::Sixteen => self.wide,
            Bits::Float => self.float,
        }
    }
}

/// Times of all nodes by the model of costs; `shape` returns the shape of a value.
pub fn modelled(model: &Model, shape: impl Fn(&str) -> Option<Vec<u64>>) -> Vec<NodeTimes> {
    let time = |node: &crate::graph::Node| {
        let products = macs(node, &shape) as f64;
        let outputs = node.output.iter().filter_map(|name| shape(name));
        let values: f64 = outputs
            .map(|dims| dims.iter().product::<u64>() as f64)
            .sum();
        let (products, values) = (products, VALUE * values);
        NodeTimes {
            narrow: products + values / 4.0,
            wide: WIDE * products + values / 2.0,
            float: WIDE * products + values,
        }
    };
    model.graph.nodes().iter().map(time).collect()
}

/// The costs of a model's tensors.
pub struct Costs {
    /// Bytes of the file in which every tensor has its 8 bits.
    pub bytes_of_eight: f64,
    nodes: Vec<NodeTimes>,
    /// For each node, the tensors that it reads.
    reads: Vec<Vec<usize>>,
    /// Nodes that are quantized; all others are float whatever the tensors have.
    quantized: Vec<bool>,
    weights: Vec<bool>,
    bytes: Vec<BTreeMap<Bits, f64>>,
    /// Weight, input of its layer, and the bytes that a float bias of this layer saves.
    biases: Vec<(usize, usize, f64)>,
}

impl Costs {
    /// The costs of these tensors.
    pub fn new(
        model: &Model,
        tensors: &[SearchTensor],
        quantized: &[usize],
        bytes_of_eight: f64,
        nodes: Vec<NodeTimes>,
    ) -> Costs {
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (index, tensor) in tensors.iter().enumerate() {
            places.extend(
                tensor
                    .group
                    .members
                    .iter()
                    .map(|name| (name.as_str(), index)),
            );
        }
        let graph = &model.graph;
        let biases = tensors.iter().enumerate().flat_map(|(weight, tensor)| {
            let places = &places;
            tensor
                .bias_savings
                .iter()
                .filter_map(move |&(node, saving)| {
                    let input = graph.nodes()[node].input_at(0)?;
                    Some((weight, *places.get(input)?, saving))
                })
        });
        let biases = biases.collect();
        let reads = |node: &crate::graph::Node| {
            let read = node
                .input
                .iter()
                .filter_map(|name| places.get(name.as_str()));
            read.copied().collect()
        };
        let mut is_quantized = vec![false; graph.nodes().len()];
        quantized.iter().for_each(|&node| is_quantized[node] = true);
        Costs {
            bytes_of_eight,
            nodes,
            reads: graph.nodes().iter().map(reads).collect(),
            quantized: is_quantized,
            biases,
            weights: tensors
                .iter()
                .map(|tensor| tensor.group.is_weight)
                .collect(),
            bytes: tensors.iter().map(|tensor| tensor.bytes.clone()).collect(),
        }
    }

    /// Bytes of a tensor in the file.
    pub fn bytes_of(&self, tensor: usize, bits: Bits) -> f64 {
        self.bytes[tensor].get(&bits).copied().unwrap_or(0.0)
    }

    /// Bytes of the file for a choice of bits.
    pub fn bytes(&self, choice: &[Bits]) -> f64 {
        let more = choice.iter().enumerate().map(|(tensor, &bits)| {
            self.bytes_of(tensor, bits) - self.bytes_of(tensor, Bits::Eight)
        });
        let saved = self.biases.iter().filter(|(weight, input, _)| {
            choice[*weight] != Bits::Float && choice[*input] == Bits::Float
        });
        self.bytes_of_eight + more.sum::<f64>() - saved.map(|(.., saving)| saving).sum::<f64>()
    }

    /// Time of a run for a choice of bits.
    pub fn time(&self, choice: &[Bits]) -> f64 {
        (0..self.nodes.len())
            .map(|node| self.time_of_node(node, choice))
            .sum()
    }

    /// Time of a run of the float model.
    pub fn float_time(&self) -> f64 {
        self.nodes.iter().map(|node| node.float).sum()
    }

    /// The work of a node, for cuts into parts of equal work.
    pub fn work(&self, node: usize) -> f64 {
        self.nodes[node].float
    }

    fn time_of_node(&self, node: usize, choice: &[Bits]) -> f64 {
        let read = self.reads[node].iter();
        let form = |&tensor: &usize| match choice[tensor] {
            // No kernel multiplies 16-bit weights.
            Bits::Sixteen if self.weights[tensor] => Bits::Float,
            bits => bits,
        };
        let widest = read.map(form).max();
        match widest.filter(|_| self.quantized[node]) {
            Some(widest) => self.nodes[node].of(widest),
            None => self.nodes[node].float,
        }
    }

    /// The time that a tensor adds with some bits, while all others have 8.
    pub fn added_time(&self, tensor: usize, bits: Bits) -> f64 {
        let eight = vec![Bits::Eight; self.bytes.len()];
        let mut other = eight.clone();
        other[tensor] = bits;
        let readers = (0..self.nodes.len()).filter(|&node| self.reads[node].contains(&tensor));
        readers
            .map(|node| self.time_of_node(node, &other) - self.time_of_node(node, &eight))
            .sum()
    }
}
