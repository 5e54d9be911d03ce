//! The costs of a tensor's bits: bytes of the file, and time of a run.
//!
//! The bytes are those of the written file. A node computes in the widest form among its inputs; a
//! node without products writes its outputs in that time, so these count, too. Times come from
//! profiles of three models, in 8 bits, with 16-bit activations and in float, or else from a model of
//! costs.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Bits;
use super::tensors::SearchTensor;
use crate::graph::operators::{MacRule, Operator};
use crate::graph::{Model, Node};
use crate::profile::macs::macs;
use crate::quantize::ScaleGroups;

/// The source of the times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TimeSource {
    /// Profiles of the layers on this machine, in milliseconds.
    Profile,
    /// A model of costs by multiplications and values. It has no unit.
    Model,
}

/// Time of a multiplication of a dense layer in each form. The unit is that of 8-bit integers.
const DENSE: Rates = Rates(1.0, 2.3, 1.5);
/// Time of a multiplication of a layer in groups, such as a depthwise convolution.
const GROUPED: Rates = Rates(5.0, 15.5, 12.0);
/// Time to compute and write a value.
const VALUE: Rates = Rates(14.0, 45.0, 30.0);

/// Times with 8-bit integers, with 16-bit activations and in float. They come from profiles of eleven
/// models (docs/benches.md).
struct Rates(f64, f64, f64);

/// Times of one node in the three forms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeTimes {
    /// With 8-bit integers or fewer.
    pub narrow: f64,
    /// With 16-bit activations.
    pub wide: f64,
    /// In float.
    pub float: f64,
    /// To make integers of the floats of a layer, where its neighbors compute in integers.
    pub conversion: f64,
}

/// Times of all nodes by the model of costs; `shape` returns the shape of a value.
pub fn modelled(model: &Model, shape: impl Fn(&str) -> Option<Vec<u64>>) -> Vec<NodeTimes> {
    let time = |node: &Node| {
        let products = macs(node, &shape) as f64;
        let outputs = node.output.iter().filter_map(|name| shape(name));
        let values: f64 = outputs
            .map(|dims| dims.iter().product::<u64>() as f64)
            .sum();
        let rates = match node.int("group").unwrap_or(1) > 1 {
            true => GROUPED,
            false => DENSE,
        };
        NodeTimes {
            narrow: rates.0 * products + VALUE.0 * values,
            wide: rates.1 * products + VALUE.1 * values,
            float: rates.2 * products + VALUE.2 * values,
            conversion: VALUE.2 * values,
        }
    };
    model.graph.nodes().iter().map(time).collect()
}

/// Measured times, with the conversions of the model of costs in the unit of the measurement: no profile
/// shows each layer as a float one between integers.
pub(super) fn with_conversions(measured: Vec<NodeTimes>, modelled: &[NodeTimes]) -> Vec<NodeTimes> {
    let sum = |nodes: &[NodeTimes]| nodes.iter().map(|node| node.narrow).sum::<f64>();
    let unit = sum(&measured) / sum(modelled).max(f64::MIN_POSITIVE);
    let both = measured.into_iter().zip(modelled);
    both.map(|(node, modelled)| NodeTimes {
        conversion: unit * modelled.conversion,
        ..node
    })
    .collect()
}

/// The tensors and facts that decide on the form of a node.
struct NodeForm {
    /// The tensors.
    deciding: Vec<usize>,
    /// False if the node is float whatever the tensors have.
    is_quantized: bool,
    /// True if another node computes this one, where it is quantized.
    is_fused: bool,
}

impl NodeForm {
    fn new(node: &Node, place: impl Fn(&String) -> Option<usize>) -> NodeForm {
        let has_products = Operator::of(node).macs != MacRule::Zero;
        let written = node.output.iter().filter(|_| !has_products);
        NodeForm {
            deciding: node.input.iter().chain(written).filter_map(place).collect(),
            is_quantized: false,
            is_fused: false,
        }
    }
}

/// The costs of a model's tensors.
pub struct Costs {
    /// Bytes of the file in which every tensor has its 8 bits.
    pub bytes_of_eight: f64,
    nodes: Vec<NodeTimes>,
    forms: Vec<NodeForm>,
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
        groups: &ScaleGroups,
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
        let place = |name: &String| places.get(name.as_str()).copied();
        let form = |node| NodeForm::new(node, place);
        let mut forms: Vec<NodeForm> = graph.nodes().iter().map(form).collect();
        for &node in &groups.quantized {
            forms[node].is_quantized = true;
        }
        for fused in &groups.fused {
            let around: Vec<usize> = fused.tensors.iter().filter_map(place).collect();
            for &node in fused.others.iter().chain(&fused.last) {
                forms[node] = NodeForm {
                    deciding: around.clone(),
                    is_quantized: true,
                    is_fused: fused.last != Some(node),
                };
            }
        }
        Costs {
            bytes_of_eight,
            nodes,
            forms,
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
        if choice.iter().all(|&bits| bits == Bits::Float) {
            return self.float_time();
        }
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
        let (times, form) = (self.nodes[node], &self.forms[node]);
        let bits = |&tensor: &usize| match choice[tensor] {
            // No kernel multiplies 16-bit weights.
            Bits::Sixteen if self.weights[tensor] => Bits::Float,
            bits => bits,
        };
        let widest = form.deciding.iter().map(bits).max();
        match widest.filter(|_| form.is_quantized) {
            None => times.float,
            // A float layer between integers takes longer than in a float model, as profiles show:
            // it loses what its neighbors would compute with it.
            Some(Bits::Float) => times.float.max(times.wide) + times.conversion,
            Some(_) if form.is_fused => 0.0,
            Some(Bits::Sixteen) => times.wide,
            Some(Bits::Four | Bits::Eight) => times.narrow,
        }
    }

    /// The time that a tensor adds with some bits, while all others have 8.
    pub fn added_time(&self, tensor: usize, bits: Bits) -> f64 {
        let eight = vec![Bits::Eight; self.bytes.len()];
        let mut other = eight.clone();
        other[tensor] = bits;
        let changed =
            (0..self.nodes.len()).filter(|&node| self.forms[node].deciding.contains(&tensor));
        changed
            .map(|node| self.time_of_node(node, &other) - self.time_of_node(node, &eight))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantize::{FusedNodes, ScaleGroup};
    use octet_test_models::{constant, model, node};

    /// A tensor of a search without forms.
    fn tensor(name: &str, is_weight: bool) -> SearchTensor {
        SearchTensor {
            group: ScaleGroup {
                name: name.into(),
                is_weight,
                is_constant: is_weight,
                members: vec![name.into()],
                biases: Vec::new(),
                element: crate::quantize::ElementType::U8,
                is_fixed: false,
            },
            bytes: BTreeMap::new(),
            bias_savings: Vec::new(),
            rounded: BTreeMap::new(),
            local: BTreeMap::new(),
        }
    }

    /// A convolution, a folded Relu, an operator pattern of two nodes, an addition.
    fn costs() -> Costs {
        let nodes = vec![
            node("Conv", &["x", "w"], "made"),
            node("Relu", &["made"], "a"),
            node("Sigmoid", &["a"], "inner"),
            node("Mul", &["a", "inner"], "b"),
            node("Add", &["b", "x"], "y"),
        ];
        let model = model(nodes, vec![constant("w", &[3, 3, 1, 1])], &["y"]);
        let tensors = ["x", "w", "a", "b", "y"].map(|name| tensor(name, name == "w"));
        let groups = ScaleGroups {
            quantized: vec![0, 3, 4],
            fused: vec![
                FusedNodes {
                    last: None,
                    others: vec![1],
                    tensors: vec!["a".into()],
                },
                FusedNodes {
                    last: Some(3),
                    others: vec![2],
                    tensors: vec!["a".into(), "b".into()],
                },
            ],
            ..ScaleGroups::default()
        };
        let shape = |name: &str| match name {
            "w" => Some(vec![3, 3, 1, 1]),
            _ => Some(vec![1, 3, 10, 10]),
        };
        let times = modelled(&model, shape);
        Costs::new(&model, &tensors, &groups, 0.0, times)
    }

    #[test]
    fn fused_nodes_take_time_only_in_float() {
        let costs = costs();
        let eight = [Bits::Eight; 5];
        let values = VALUE.0 * 300.0;
        // A convolution, a pattern and an addition.
        assert_eq!(costs.time(&eight), DENSE.0 * 900.0 + 3.0 * values);
        let all: f64 = (0..5).map(|node| costs.work(node)).sum();
        assert_eq!(all, DENSE.2 * 900.0 + 5.0 * VALUE.2 * 300.0);
        assert_eq!(costs.float_time(), all);
        assert_eq!(costs.time(&[Bits::Float; 5]), all);
    }

    #[test]
    fn no_float_between_integers_is_faster_than_sixteen_bits() {
        let costs = costs();
        for tensor in 0..5 {
            let [sixteen, float] =
                [Bits::Sixteen, Bits::Float].map(|bits| costs.added_time(tensor, bits));
            assert!(
                sixteen > 0.0 && float >= sixteen,
                "{tensor}: {sixteen} {float}"
            );
        }
        // A float input of the pattern makes both of its nodes float, and the Relu before them.
        let added = 3.0 * (VALUE.1.max(VALUE.2) + VALUE.2) - VALUE.0;
        assert_eq!(costs.added_time(2, Bits::Float), 300.0 * added);
    }

    #[test]
    fn weights_of_sixteen_bits_are_multiplied_in_float() {
        let costs = costs();
        assert_eq!(
            costs.added_time(1, Bits::Sixteen),
            costs.added_time(1, Bits::Float)
        );
    }
}
