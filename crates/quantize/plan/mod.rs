//! Decides for each node and tensor of a model if and how it is quantized, before ranges are known.
//!
//! The nodes are visited once in order, because some treatments depend on the nodes before them. An
//! operator that shares its input's scale is quantized only if its input is. A Relu behind a
//! quantized value is folded into the range of that value and removed.

mod concat_scales;
mod finish;
mod fold_clamp;
mod fused_nodes;
mod ignored_settings;
mod range_sources;
mod visit;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rayon::prelude::*;

use super::operator_patterns::{OperatorPattern, find_patterns};
use super::operators::is_quantized_operator;
use super::ranges::ActivationRanges;
use super::settings::{LayerResolver, Operators, Representation, Rounding};
use super::stays_float::StaysFloat;
use super::{FIRST_OPSET_WITH_AXIS, NodeChoice, QuantizeError, Settings};
pub(super) use fold_clamp::FoldedClamp;
pub use fold_clamp::clamp_bounds;
pub use fused_nodes::FusedNodes;
use octet_graph::{Model, Node};
use octet_stats::{Range, SecondPassMissing};
pub(super) use range_sources::RangeOrigin;
use visit::Planner;

/// The source of a tensor's scale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TensorRole {
    /// Its own range; a constant takes its own values and the activations' type.
    Activation,
    /// Scale and zero point of another value.
    Shared(String),
    /// A weight; the axis is set where each channel has its own scale.
    Weight(Option<usize>),
}

/// A bias that takes the scales of its layer's accumulators.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlannedBias {
    pub(super) node: usize,
    pub(super) name: String,
    pub(super) input: String,
    pub(super) weight: String,
    pub(super) beta: f32,
}

/// The decisions of a quantization, before and after ranges are known.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Every quantized tensor, in the order of the visits.
    pub(super) forms: Vec<(String, TensorRole)>,
    /// The representation of each tensor that has a scale of its own.
    pub(super) representations: HashMap<String, Representation>,
    pub(super) biases: Vec<PlannedBias>,
    /// True if a weight's scale grows where its bias would overflow int32.
    pub(super) fit_biases: bool,
    /// True if the result follows ONNX Runtime's quantizer wherever that model would run.
    pub(super) like_onnx_runtime: bool,
    /// True if ONNX Runtime may run the result on the processor.
    pub(super) runs_in_onnx_runtime: bool,
    /// True if an int32 bias has a zero point, as ONNX Runtime writes it.
    pub(super) bias_zero_points: bool,
    /// True if bias correction is on.
    pub(super) correct_biases: bool,
    /// The rounding of weights: nearest or GPTQ.
    pub(super) rounding: Rounding,
    /// Nodes folded into the node before them.
    pub(super) removed: BTreeSet<usize>,
    /// FoldedClamp nodes by their input, which takes the name of their output.
    pub(super) renamed: HashMap<String, FoldedClamp>,
    /// Quantized nodes. Only these read the integers of their weights.
    pub(super) quantized: HashSet<usize>,
    /// Quantized operator patterns.
    pub(super) patterns: Vec<FusedNodes>,
    pub(super) ranges: HashMap<String, RangeOrigin>,
    /// Outputs of float Softmax nodes whose values are quantized.
    pub(super) float_softmaxes: BTreeSet<String>,
    /// The value that owns the scale, by the value that shares it.
    pub(super) scale_owners: HashMap<String, String>,
    pub(super) choices: Vec<NodeChoice>,
}

impl Plan {
    /// Makes the plan of a prepared model whose values all have their types in `value_info`.
    pub fn new(model: &Model, settings: &Settings) -> Result<Plan, QuantizeError> {
        let graph = &model.graph;
        let mut chains = find_patterns(graph);
        // ONNX Runtime's default list has no operator patterns; it quantizes their nodes one by
        // one.
        chains.retain(|chain| match &settings.operators {
            Operators::All => true,
            Operators::OnnxRuntime => false,
            Operators::Only(wanted) => wanted.iter().any(|name| name == chain.operator.name),
        });
        Plan::with_chains(model, settings, chains)
    }

    fn with_chains(
        model: &Model,
        settings: &Settings,
        chains: Vec<OperatorPattern>,
    ) -> Result<Plan, QuantizeError> {
        refuse_quantized(model)?;
        let layers = LayerResolver::new(settings, model)?;
        let mut planner = Planner::new(model, settings, &layers, chains);
        for (index, node) in model.graph.nodes().iter().enumerate() {
            let reason = planner.visit(index, node).err();
            planner.choices.push(NodeChoice {
                node: node.title().to_string(),
                operator: node.operator(),
                quantized: reason.is_none(),
                reason,
                mixed: None,
            });
        }
        let plan = planner.finish();
        for (name, _) in &plan.forms {
            if let Some(represented) = plan.representations.get(name) {
                represented.check(name)?;
            }
        }
        let opset = model.opset();
        let by_channel =
            |(_, form): &(String, TensorRole)| matches!(form, TensorRole::Weight(Some(_)));
        if opset < FIRST_OPSET_WITH_AXIS && plan.forms.iter().any(by_channel) {
            return Err(QuantizeError::Opset { opset });
        }
        if plan.forms.is_empty() {
            let reasons = plan.choices.iter().filter_map(|choice| choice.reason);
            let reason = reasons.min_by_key(|reason| reason.words());
            let mut nodes = model.graph.nodes().iter();
            if let Some(node) = nodes.find(|node| node.subgraphs().next().is_some()) {
                return Err(QuantizeError::OnlyGraphs {
                    node: node.title().to_string(),
                    operator: node.operator(),
                });
            }
            return Err(QuantizeError::Nothing { reason });
        }
        Ok(plan)
    }

    /// Computes the ranges that the settings don't give, and returns the names of their values.
    ///
    /// The tensors are processed in parallel, because some methods search for long.
    pub(super) fn find_ranges(
        &mut self,
        ranges: ActivationRanges<'_>,
    ) -> Result<Vec<String>, QuantizeError> {
        self.follow_onnx_runtime(ranges);
        let wanted: Vec<(&String, &String, &Representation)> = self
            .forms
            .iter()
            .filter(|(_, form)| *form == TensorRole::Activation)
            .filter_map(|(name, _)| {
                let represented = self.representations.get(name)?;
                match self.ranges.get(name)? {
                    RangeOrigin::Observed(source) if !represented.is_chosen() => {
                        Some((name, source, represented))
                    }
                    _ => None,
                }
            })
            .collect();
        let computed: Vec<(String, Option<Range>)> = wanted
            .into_par_iter()
            .map(|(name, source, represented)| {
                Ok((name.clone(), ranges.range_of(source, represented)?))
            })
            .collect::<Result<_, SecondPassMissing>>()?;
        let mut names = Vec::with_capacity(computed.len());
        for (name, range) in computed {
            let range = range.map(|range| self.clip(&name, range));
            if let (Some(represented), Some(range)) = (self.representations.get_mut(&name), range) {
                represented.range = Some(range);
                names.push(name);
            }
        }
        Ok(names)
    }

    /// The ranges that [`Plan::find_ranges`] computed for these values, by the name of the calibrated
    /// value. Some of these values then take the scale of another value or stay float.
    pub(super) fn found_ranges(&self, names: &[String]) -> BTreeMap<String, Range> {
        let found = names.iter().filter_map(|name| {
            let RangeOrigin::Observed(source) = self.ranges.get(name)? else {
                return None;
            };
            Some((source.clone(), self.representations.get(name)?.range?))
        });
        found.collect()
    }

    /// Keeps a value float, and all values that share its scale.
    pub(super) fn keep_float(&mut self, name: &str) {
        let scale_owners = &self.scale_owners;
        let is_of = |other: &str| scale_owners.get(other).is_some_and(|source| source == name);
        let (freed, kept) = std::mem::take(&mut self.forms)
            .into_iter()
            .partition(|(other, _)| other == name || is_of(other));
        self.forms = kept;
        for (name, _) in freed {
            // The bias scale derives from the input scale, so this bias stays float too.
            self.biases.retain(|bias| bias.input != name);
            self.unfold(name);
        }
    }

    /// Keeps the tensors float for which the settings say so.
    pub(super) fn keep_chosen_float(&mut self, settings: &Settings) {
        let tensors = settings.tensors.iter();
        for (name, _) in tensors.filter(|(_, tensor)| tensor.float == Some(true)) {
            self.keep_float(name);
        }
    }

    /// Keeps 4-bit values float that a MaxPool reads; returns a note for each.
    ///
    /// ONNX Runtime moves the MaxPool onto the integers, but has no 4-bit kernel and refuses the
    /// model (1.31.1).
    pub(super) fn keep_pooled_float(&mut self, model: &Model) -> Vec<String> {
        let mut notes = Vec::new();
        let nodes = model.graph.nodes().iter().zip(0..);
        for (node, index) in nodes.filter(|(node, _)| node.is("MaxPool")) {
            let input = node.input_at(0).unwrap_or_default();
            let source = self.scale_owners.get(input).map_or(input, String::as_str);
            let source = source.to_string();
            let marked = self.forms.iter().any(|(name, _)| *name == source);
            let represented = self.representations.get(&source).filter(|_| marked);
            let four_bits = represented.is_some_and(|represented| represented.element.bits() < 8);
            if !four_bits || self.like_onnx_runtime {
                continue;
            }
            self.keep_float(&source);
            self.choices[index].quantized = false;
            self.choices[index].reason = Some(StaysFloat::FourBitMaxPool);
            notes.push(format!(
                "`{source}` stays float: ONNX Runtime would run the MaxPool `{}` on its integers, and supports none of four bits",
                node.title()
            ));
        }
        notes
    }

    /// The channel axis of a weight with per-channel scales.
    pub fn channel_axis(&self, weight: &str) -> Option<usize> {
        let mut forms = self.forms.iter();
        match forms.find(|(name, _)| name == weight)? {
            (_, TensorRole::Weight(axis)) => *axis,
            _ => None,
        }
    }

    /// The decision for each node.
    pub fn choices(&self) -> &[NodeChoice] {
        &self.choices
    }
}

/// Fails if the model is quantized already; the error names the first quantized operator.
pub fn refuse_quantized(model: &Model) -> Result<(), QuantizeError> {
    let quantized = |n: &&Node| is_quantized_operator(n.op_type.as_str());
    match model.graph.nodes().iter().find(quantized) {
        Some(node) => Err(QuantizeError::AlreadyQuantized {
            node: node.title().to_string(),
            operator: node.operator(),
        }),
        None => Ok(()),
    }
}
