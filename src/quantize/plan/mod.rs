//! What is to be quantized in a model, node by node, before any range is known.
//!
//! The nodes are visited once, in order, since some treatments ask what came before: an operator that
//! shares its input's scale is quantized only if its input is, and a Relu behind a quantized value is
//! folded into that value's range and taken out.

mod clamp;
mod finish;
mod joined;
mod sources;
mod unheeded;
mod visit;

use std::collections::{BTreeSet, HashMap, HashSet};

use rayon::prelude::*;

use super::composed::{Composed, composed};
use super::operators::is_quantized_operator;
use super::ranges::Ranges;
use super::settings::{Layers, Operators, Representation, Rounding};
use super::{FIRST_OPSET_WITH_AXIS, NodeChoice, QuantizeError, Settings};
use crate::calibrate::{Range, SecondPassMissing};
use crate::graph::Model;
use crate::onnx::schema::NodeProto;
pub(super) use clamp::Folded;
pub(crate) use clamp::clamp_bounds;
pub(super) use sources::RangeSource;
use visit::Planner;

/// How a value or constant is quantized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// By its own range; a constant by its own values, in the activations' type.
    Activation,
    /// With scale and zero point of another value.
    Shared(String),
    /// A weight, with the axis of its channels where it has a scale for each.
    Weight(Option<usize>),
}

/// A bias to be quantized with the scales of what it is added to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bias {
    pub(super) node: usize,
    pub(super) name: String,
    pub(super) input: String,
    pub(super) weight: String,
    pub(super) beta: f32,
}

/// What is to be quantized.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In the order they were met.
    pub(super) forms: Vec<(String, Form)>,
    /// How each of them is represented, but for those that share another's scale.
    pub(super) representations: HashMap<String, Representation>,
    pub(super) biases: Vec<Bias>,
    /// Whether the scale of a weight grows where its bias would not fit 32 bits.
    pub(super) fit_biases: bool,
    /// Whether all is to be as ONNX Runtime has it, where that can be run.
    pub(super) like_onnx_runtime: bool,
    /// Whether biases make up for what rounding the weights adds.
    pub(super) correct_biases: bool,
    /// How weights are rounded.
    pub(super) rounding: Rounding,
    /// Nodes folded into what comes before them.
    pub(super) removed: BTreeSet<usize>,
    /// What removed nodes had read, and so takes the name of what they had made.
    pub(super) renamed: HashMap<String, Folded>,
    /// Nodes that read integers: the only ones whose weights are replaced.
    pub(super) quantized: HashSet<usize>,
    pub(super) ranges: HashMap<String, RangeSource>,
    /// Outputs of Softmax operators that stay float, though what they make becomes integers.
    pub(super) float_softmaxes: BTreeSet<String>,
    /// For a value that shares another's scale: the value at the end of that chain.
    pub(super) sources: HashMap<String, String>,
    pub(super) choices: Vec<NodeChoice>,
}

impl Plan {
    /// Plans for a prepared model whose values all have their types in `value_info`.
    pub fn new(model: &Model, settings: &Settings) -> Result<Plan, QuantizeError> {
        let graph = &model.graph;
        let mut chains = composed(graph, &graph.uses());
        // ONNX Runtime's own list knows no chains: what it quantizes of them are single operators.
        chains.retain(|chain| match &settings.operators {
            Operators::All => true,
            Operators::OnnxRuntime => false,
            Operators::Only(wanted) => wanted.iter().any(|name| name == chain.operator),
        });
        Plan::with_chains(model, settings, chains)
    }

    fn with_chains(
        model: &Model,
        settings: &Settings,
        chains: Vec<Composed>,
    ) -> Result<Plan, QuantizeError> {
        refuse_quantized(model)?;
        let layers = Layers::new(settings, model)?;
        let mut planner = Planner::new(model, settings, &layers, chains);
        for (index, node) in model.graph.nodes.iter().enumerate() {
            let reason = planner.visit(index, node).err();
            planner.choices.push(NodeChoice {
                node: node.title().to_string(),
                operator: node.operator(),
                quantized: reason.is_none(),
                reason: reason.map(str::to_string),
            });
        }
        let plan = planner.finish();
        for (name, _) in &plan.forms {
            if let Some(represented) = plan.representations.get(name) {
                represented.check(name)?;
            }
        }
        let opset = model.opset();
        let by_channel = |(_, form): &(String, Form)| matches!(form, Form::Weight(Some(_)));
        if opset < FIRST_OPSET_WITH_AXIS && plan.forms.iter().any(by_channel) {
            return Err(QuantizeError::Opset { opset });
        }
        if plan.forms.is_empty() {
            let reasons: BTreeSet<&str> = plan
                .choices
                .iter()
                .filter_map(|c| c.reason.as_deref())
                .collect();
            let reason = reasons
                .into_iter()
                .next()
                .unwrap_or("it has no nodes")
                .to_string();
            return Err(QuantizeError::Nothing { reason });
        }
        Ok(plan)
    }

    /// Finds the ranges that the settings don't give, many tensors at a time since some methods search long; names those
    /// that were found.
    pub(super) fn find_ranges(&mut self, ranges: Ranges<'_>) -> Result<Vec<String>, QuantizeError> {
        self.follow_onnx_runtime(ranges);
        let wanted: Vec<(&String, &String, &Representation)> = self
            .forms
            .iter()
            .filter(|(_, form)| *form == Form::Activation)
            .filter_map(|(name, _)| {
                let represented = self.representations.get(name)?;
                match self.ranges.get(name)? {
                    RangeSource::Observed(source) if !represented.is_chosen() => {
                        Some((name, source, represented))
                    }
                    _ => None,
                }
            })
            .collect();
        let found: Vec<(String, Option<Range>)> = wanted
            .into_par_iter()
            .map(|(name, source, represented)| Ok((name.clone(), ranges.of(source, represented)?)))
            .collect::<Result<_, SecondPassMissing>>()?;
        let mut names = Vec::with_capacity(found.len());
        for (name, range) in found {
            let range = range.map(|range| self.cut(&name, range));
            if let (Some(represented), Some(range)) = (self.representations.get_mut(&name), range) {
                represented.range = Some(range);
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Takes the integers from a value and from all that share its scale.
    pub(super) fn free(&mut self, name: &str) {
        let sources = &self.sources;
        let is_of = |other: &str| sources.get(other).is_some_and(|source| source == name);
        let (freed, kept) = std::mem::take(&mut self.forms)
            .into_iter()
            .partition(|(other, _)| other == name || is_of(other));
        self.forms = kept;
        for (name, _) in freed {
            // A bias has the scale of what its node reads: without that it stays what it was, and is taken as often.
            self.biases.retain(|bias| bias.input != name);
            self.unfold(name);
        }
    }

    /// Takes the integers from values of four bits that a MaxPool reads, and says so: a sentence each. ONNX Runtime moves it between these
    /// integers, where it takes none of four bits, and then doesn't load the model (1.31.1).
    pub(super) fn free_pooled(&mut self, model: &Model) -> Vec<String> {
        let mut said = Vec::new();
        let nodes = model.graph.nodes.iter().zip(0..);
        for (node, index) in nodes.filter(|(node, _)| node.is("MaxPool")) {
            let input = node.input_at(0).unwrap_or_default();
            let source = self.sources.get(input).map_or(input, String::as_str);
            let source = source.to_string();
            let marked = self.forms.iter().any(|(name, _)| *name == source);
            let represented = self.representations.get(&source).filter(|_| marked);
            let four_bits = represented.is_some_and(|represented| represented.element.bits() < 8);
            if !four_bits || self.like_onnx_runtime {
                continue;
            }
            self.free(&source);
            self.choices[index].quantized = false;
            self.choices[index].reason =
                Some("ONNX Runtime's MaxPool takes no integers of four bits".to_string());
            said.push(format!(
                "`{source}` stays float: ONNX Runtime would let the MaxPool `{}` work on its integers, which takes none of four bits",
                node.title()
            ));
        }
        said
    }

    /// The axis of a weight along which each channel has its own scale.
    pub fn channel_axis(&self, weight: &str) -> Option<usize> {
        let mut forms = self.forms.iter();
        match forms.find(|(name, _)| name == weight)? {
            (_, Form::Weight(axis)) => *axis,
            _ => None,
        }
    }

    /// Each node and whether it is quantized.
    pub fn choices(&self) -> &[NodeChoice] {
        &self.choices
    }
}

/// An error that names the first operator that only quantized models have.
pub fn refuse_quantized(model: &Model) -> Result<(), QuantizeError> {
    let quantized =
        |n: &&NodeProto| is_quantized_operator(n.op_type.as_deref().unwrap_or_default());
    match model.graph.nodes.iter().find(quantized) {
        Some(node) => Err(QuantizeError::AlreadyQuantized {
            node: node.title().to_string(),
            operator: node.operator(),
        }),
        None => Ok(()),
    }
}
