//! The power of two by which each value is divided.
//!
//! A far activation demands a power. Where its node passes powers, the inputs that a layer computes, or
//! that are far themselves, demand theirs. All demands only grow, so the search ends. Then one pass in
//! the order of the nodes gives each value its power; an input with another power than its node needs
//! is multiplied.

use std::collections::{BTreeMap, HashMap};

use crate::float16_numbers::STANDS_FOR_INFINITY;
use octet_graph::operators::{PowerRule, power_rule};
use octet_graph::{Model, Node};
use octet_onnx::schema::DataType;

/// The largest magnitude that a divided activation may have: half of the range is in reserve for other
/// samples.
const WANTED: f32 = 32752.0;

/// The least magnitude of the largest number in a divided weight: four bits above subnormal halves.
const LEAST_WEIGHT: f32 = 1.0 / 1024.0;

/// The largest power that a far activation may need. Small numbers beside larger ones would be lost.
const LARGEST_NEED: u32 = 32;

/// The largest power that a demand may grow to.
const HIGHEST: u32 = 40;

/// The powers of a model's values.
pub(super) struct Powers<'a> {
    /// The rule of each node; `None` where no power may pass.
    pub(super) rules: Vec<Option<PowerRule>>,
    demanded: BTreeMap<&'a str, u32>,
    /// The least power of each far activation.
    needs: HashMap<String, u32>,
    /// The power of each divided value.
    pub(super) of: HashMap<&'a str, u32>,
}

impl<'a> Powers<'a> {
    /// The powers for these far activations; `None` if none can be divided.
    pub(super) fn new(model: &'a Model, far: &BTreeMap<String, f32>) -> Option<Powers<'a>> {
        let graph = &model.graph;
        let elements = graph.element_types();
        let is_float = |name: &str| elements.get(name) == Some(&DataType::Float);
        let rule = |node: &Node| {
            let output = node.output.first()?;
            let captured = node.output.iter().any(|name| graph.is_captured(name));
            power_rule(node, graph).filter(|_| is_float(output) && !captured)
        };
        let rules: Vec<_> = graph.nodes().iter().map(rule).collect();
        let mut powers = Powers {
            rules,
            demanded: BTreeMap::new(),
            needs: far
                .iter()
                .map(|(name, &size)| (name.clone(), need(size)))
                .collect(),
            of: HashMap::new(),
        };
        for (node, rule) in graph.nodes().iter().zip(&powers.rules) {
            let Some(rule) = rule.as_ref() else { continue };
            for output in &node.output {
                let Some(&power) = powers.needs.get(output.as_str()) else {
                    continue;
                };
                if power <= LARGEST_NEED && takes(model, node, rule, power) {
                    powers.demanded.insert(output, power);
                }
            }
        }
        if powers.demanded.is_empty() {
            return None;
        }
        while powers.spread(model) {
            if powers.demanded.values().any(|&power| power > HIGHEST) {
                return None;
            }
        }
        for (index, node) in graph.nodes().iter().enumerate() {
            powers.assign(model, index, node);
        }
        Some(powers)
    }

    /// The power of a value; 0 for one that is stored as it is.
    pub(super) fn power(&self, name: &str) -> u32 {
        self.of.get(name).copied().unwrap_or(0)
    }

    fn wanted(&self, name: &str) -> u32 {
        self.demanded.get(name).copied().unwrap_or(0)
    }

    /// Carries demands one node further. True if one grew.
    fn spread(&mut self, model: &'a Model) -> bool {
        let mut grew = false;
        for (index, node) in model.graph.nodes().iter().enumerate().rev() {
            let output = node.output.first().map_or("", String::as_str);
            let demand = node.output.iter().map(|name| self.wanted(name)).max();
            let demand = demand.unwrap_or(0);
            let Some(rule) = self.rules[index].clone().filter(|_| demand > 0) else {
                continue;
            };
            match rule {
                PowerRule::Carries(slots) => {
                    let inputs = slots.iter().filter_map(|&slot| node.input_at(slot));
                    let liftable: Vec<&str> = inputs
                        .filter(|name| self.is_liftable(model, name))
                        .collect();
                    let most = liftable.iter().map(|name| self.wanted(name)).max();
                    let most = most.unwrap_or(0).max(demand);
                    for name in liftable {
                        grew |= self.raise(name, most);
                    }
                    for name in node.output.iter().filter(|name| !name.is_empty()) {
                        grew |= self.raise(name, most);
                    }
                }
                // The input of a square is divided where it is read, so others keep its precision.
                PowerRule::Square => grew |= self.raise(output, demand.next_multiple_of(2)),
                PowerRule::Root => grew |= self.lift(model, node, 2 * demand),
                PowerRule::Product | PowerRule::Quotient => grew |= self.lift(model, node, demand),
                PowerRule::Absorbs { .. } | PowerRule::Normalizes => {}
            }
        }
        grew
    }

    /// Demands a power of a node's first input, if a layer computes it or it has a demand already.
    fn lift(&mut self, model: &'a Model, node: &'a Node, power: u32) -> bool {
        let name = node.input_at(0).unwrap_or_default();
        self.is_liftable(model, name) && self.raise(name, power)
    }

    fn is_liftable(&self, model: &Model, name: &str) -> bool {
        let layer = || {
            let index = model.graph.producer(name)?;
            let node = &model.graph.nodes()[index];
            let rule = self.rules[index].as_ref()?;
            Some(matches!(rule, PowerRule::Absorbs { .. }) && takes(model, node, rule, 1))
        };
        self.demanded.contains_key(name) || layer() == Some(true)
    }

    fn raise(&mut self, name: &'a str, power: u32) -> bool {
        let before = self.wanted(name);
        if power > before {
            self.demanded.insert(name, power);
        }
        power > before
    }

    /// Gives the outputs of a node their power.
    fn assign(&mut self, model: &'a Model, index: usize, node: &'a Node) {
        let Some(rule) = &self.rules[index] else {
            return;
        };
        let of = |slot: usize| node.input_at(slot).map_or(0, |name| self.power(name));
        let demand = node.output.iter().map(|name| self.wanted(name)).max();
        let demand = demand.unwrap_or(0);
        let power = match rule {
            PowerRule::Carries(slots) => {
                let inputs = slots.iter().map(|&slot| of(slot));
                inputs.max().unwrap_or(0).max(demand)
            }
            PowerRule::Absorbs { .. } => match takes(model, node, rule, demand) {
                true => demand,
                false => 0,
            },
            PowerRule::Product => demand.max(of(0) + of(1)),
            PowerRule::Quotient => demand,
            PowerRule::Square => demand.max(2 * of(0)),
            PowerRule::Root => demand.max(of(0).div_ceil(2)),
            PowerRule::Normalizes => 0,
        };
        let outputs = node.output.iter().filter(|name| !name.is_empty());
        // A value that would still be far is stored as it is, so its nodes stay float32.
        let least = outputs
            .clone()
            .filter_map(|name| self.needs.get(name))
            .max();
        if power > 0 && least.is_none_or(|&least| power >= least) {
            self.of.extend(outputs.map(|name| (name.as_str(), power)));
        }
    }

    /// The powers in which a node reads its inputs, by slot. Other inputs are read as they are.
    pub(super) fn reads(&self, index: usize, node: &Node) -> Vec<(usize, u32)> {
        let Some(rule) = &self.rules[index] else {
            return Vec::new();
        };
        let of = |slot: usize| node.input_at(slot).map_or(0, |name| self.power(name));
        let output = node.output.first().map_or(0, |name| self.power(name));
        match rule {
            PowerRule::Carries(slots) => slots.iter().map(|&slot| (slot, output)).collect(),
            &PowerRule::Absorbs { value, .. } => vec![(value, of(value))],
            // A product that is still far is made of the values themselves.
            PowerRule::Product if output < of(1) => vec![(0, 0), (1, 0)],
            PowerRule::Product => vec![(0, output - of(1)), (1, of(1))],
            // The dividend keeps its power, and so its precision, where the divisor allows it.
            PowerRule::Quotient => {
                let divisor = node.input_at(1).and_then(|name| self.needs.get(name));
                let least = divisor.copied().unwrap_or(0).min(of(1));
                let below = of(0).saturating_sub(output).max(least);
                vec![(0, output + below), (1, below)]
            }
            // A product of a value with itself reads it twice.
            PowerRule::Square if node.input_at(0) == node.input_at(1) => {
                vec![(0, output / 2), (1, output / 2)]
            }
            PowerRule::Square => vec![(0, output / 2)],
            PowerRule::Root => vec![(0, 2 * output)],
            PowerRule::Normalizes => vec![(0, of(0))],
        }
    }
}

/// The power that brings a far activation into range.
fn need(size: f32) -> u32 {
    (size / WANTED).log2().ceil().max(1.0) as u32
}

/// True if the constant of a layer stays within half precision when its output is divided.
fn takes(model: &Model, node: &Node, rule: &PowerRule, power: u32) -> bool {
    let &PowerRule::Absorbs {
        constant, divides, ..
    } = rule
    else {
        return *rule != PowerRule::Normalizes;
    };
    let name = node.input_at(constant).unwrap_or_default();
    let tensor = model.graph.initializers.get(name);
    let Some(numbers) = tensor.and_then(|tensor| tensor.to_f32().ok()) else {
        return false;
    };
    let largest = numbers
        .iter()
        .fold(0f32, |most, number| most.max(number.abs()));
    let factor = 2f32.powi(power as i32);
    match divides {
        true => largest * factor < WANTED,
        false => largest < STANDS_FOR_INFINITY && largest / factor >= LEAST_WEIGHT,
    }
}
