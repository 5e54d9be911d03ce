//! Eight bits for the weights that count most, without samples: by their roles in the graph, by a
//! fixed rule or within a budget of size.

mod notes;
#[cfg(test)]
mod small_graphs;
#[cfg(test)]
mod tests;
mod weights;

use std::collections::HashMap;

use super::roles::{ConstantProduct, ProductRole, product_roles};
use crate::blocks::{BlockSettings, MixedBits};
use crate::{QuantizeError, Quantized};
use octet_graph::{Model, Node};
use weights::{MixedWeight, other_bytes, weights};

/// Bits of the weights that count most.
const MANY: u8 = 8;

/// The nodes with 8 bits.
#[derive(Debug, Default)]
pub(crate) struct MixedChoice {
    /// The role of a node, by its first output.
    raised: HashMap<String, String>,
    notes: Vec<String>,
}

/// A product's importance: least is first.
type Rank = (u8, usize, ProductRole);

impl MixedChoice {
    /// Chooses the nodes. `of` returns the settings of a node; a node whose own settings have bits
    /// has no `mixed`. Nodes in `keep_float` stay float, and so do other operators than `operators`.
    pub(crate) fn new(
        model: &Model,
        settings: &BlockSettings,
        of: &dyn Fn(&Node) -> BlockSettings,
        keep_float: &[String],
        operators: Option<&[String]>,
    ) -> Result<MixedChoice, QuantizeError> {
        let Some(mixed) = settings.mixed else {
            return Ok(MixedChoice::default());
        };
        settings.check()?;
        let is_quantized = |node: &Node| {
            !keep_float.iter().any(|name| name == node.title())
                && operators.is_none_or(|wanted| wanted.contains(&node.operator()))
        };
        let roles = product_roles(model);
        let weights = weights(model, &roles, of, &is_quantized)?;
        let mut choice = MixedChoice::default();
        let mut order: Vec<usize> = (0..weights.len())
            .filter(|&index| weights[index].can_grow())
            .collect();
        if order.is_empty() {
            choice.notes.push(NO_CANDIDATE.to_owned());
            return Ok(choice);
        }
        order.sort_by_key(|&index| rank(weights[index].product, roles.layers));
        let growth = |index: usize| {
            let [before, after] = [false, true].map(|raised| weights[index].bytes(raised));
            after.saturating_sub(before)
        };
        let blocks: u64 = weights.iter().map(|weight| weight.bytes(false)).sum();
        let mut budget = match mixed {
            MixedBits::KQuantMixed => None,
            MixedBits::Bytes(limit) => Some(SizeBudget {
                limit,
                bytes: blocks + other_bytes(model, &weights)?,
            }),
            MixedBits::AverageBits(bits) => {
                let numbers: u64 = weights.iter().map(MixedWeight::numbers).sum();
                Some(SizeBudget {
                    limit: (numbers as f64 * bits / 8.0) as u64,
                    bytes: blocks,
                })
            }
        };
        order.retain(|&index| match &mut budget {
            Some(budget) => budget.take(growth(index)),
            None => is_of_rule(weights[index].product, roles.layers),
        });
        let chosen = order;
        choice.notes = notes::notes(&roles, &weights, &chosen, budget);
        for index in chosen {
            let weight = &weights[index];
            let label = notes::label(weight.product, roles.layers);
            for reader in weight.readers.iter().filter(|reader| !reader.fixed) {
                let node = &model.graph.nodes()[reader.node];
                let output = node.output.first().cloned().unwrap_or_default();
                choice.raised.insert(output, label.clone());
            }
        }
        Ok(choice)
    }

    /// The settings of a node: those of its own, with 8 bits if it was chosen.
    pub(crate) fn apply(&self, node: &Node, settings: BlockSettings) -> BlockSettings {
        BlockSettings {
            bits: match self.role_of(node) {
                Some(_) => MANY,
                None => settings.bits,
            },
            mixed: None,
            ..settings
        }
    }

    fn role_of(&self, node: &Node) -> Option<&String> {
        self.raised.get(node.output.first()?)
    }

    /// Adds the notes and the roles to the report of a model with these nodes.
    pub(crate) fn report(self, model: &Model, quantized: &mut Quantized) {
        let roles: HashMap<&str, &String> = model
            .graph
            .nodes()
            .iter()
            .filter_map(|node| Some((node.title(), self.role_of(node)?)))
            .collect();
        for choice in quantized.nodes.iter_mut().filter(|node| node.quantized) {
            if let Some(role) = roles.get(choice.node.as_str()) {
                choice.mixed = Some(format!("{MANY} bits: {role}"));
            }
        }
        quantized.notes.splice(0..0, self.notes);
    }
}

const NO_CANDIDATE: &str = "mixed bits have no effect: no weight in blocks has fewer than 8 bits, without bits of its own, \
                            and gains from 8";

/// Bytes that may be used, and those used so far.
#[derive(Clone, Copy, Debug)]
struct SizeBudget {
    limit: u64,
    bytes: u64,
}

impl SizeBudget {
    /// Uses bytes, if there are so many.
    fn take(&mut self, growth: u64) -> bool {
        let fits = self.bytes.saturating_add(growth) <= self.limit;
        if fits {
            self.bytes += growth;
        }
        fits
    }
}

/// True in the first and in the last eighth of the layers.
fn is_outer(layer: usize, layers: usize) -> bool {
    8 * layer < layers || 8 * layer >= 7 * layers
}

/// True for every third layer behind the first eighth.
fn is_third(layer: usize, layers: usize) -> bool {
    let first = (layers as f64 / 8.0).round_ties_even() as i64;
    (layer as i64 - first).rem_euclid(3) == 2
}

/// True for the weights that have 8 bits in onnxruntime-genai's `k_quant_mixed`.
fn is_of_rule(product: &ConstantProduct, layers: usize) -> bool {
    match product.role {
        ProductRole::Head => true,
        ProductRole::Value | ProductRole::Down => {
            is_outer(product.layer, layers) || is_third(product.layer, layers)
        }
        ProductRole::Other => false,
    }
}

/// The importance: the head, what the rule has, the other value and down projections, then the rest
/// of the first and the last layer. Outer layers come before inner ones.
fn rank(product: &ConstantProduct, layers: usize) -> Rank {
    let from_end = product
        .layer
        .min((layers.max(1) - 1).saturating_sub(product.layer));
    let step = match product.role {
        ProductRole::Head => 0,
        ProductRole::Other if from_end == 0 => 4,
        ProductRole::Other => 5,
        _ if is_outer(product.layer, layers) => 1,
        _ if is_third(product.layer, layers) => 2,
        _ => 3,
    };
    (step, from_end, product.role)
}
