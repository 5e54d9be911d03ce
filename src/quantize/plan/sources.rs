//! Where the ranges of values come from, and all that any settings may ask for.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::visit::Planner;
use super::{Form, Plan};
use crate::graph::{Graph, Model, Uses};
use crate::onnx::schema::DataType;
use crate::quantize::composed::composed;
use crate::quantize::operators::treatment;
use crate::quantize::ranges::Ranges;
use crate::quantize::{QuantizeError, Settings};

/// Where the range of a value comes from.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::quantize) enum RangeSource {
    Observed(String),
    Fixed(f32, f32),
}

/// The values whose range is not what was seen of themselves.
///
/// The input of a Clip or Relu takes the range of its output, also where that stays a float operator: what
/// lies outside is cut off behind it anyway. Not where the input goes out of the model, too: who reads it there sees all
/// of it. (ONNX Runtime looks at nodes only, and gives an output that a Relu reads nothing below zero.) Seen in order,
/// so that a chain of two takes the nearer range. A Softmax gives 0 to 1, whoever computes it: ONNX Runtime makes
/// pairs around one an operator on integers, whose results overflow with a finer scale.
fn elsewhere(
    graph: &Graph,
    uses: &Uses,
    is_float: impl Fn(&str) -> bool,
) -> HashMap<String, RangeSource> {
    let mut sources: HashMap<String, RangeSource> = HashMap::new();
    for node in &graph.nodes {
        let Some(output) = node.output.first() else {
            continue;
        };
        if node.is("Softmax") {
            sources.insert(output.clone(), RangeSource::Fixed(0.0, 1.0));
        } else if (node.is("Relu") || node.is("Clip"))
            && let Some(input) = node.input_at(0)
            && uses.consumers(input).len() == 1
            && !uses.is_output(input)
            && is_float(input)
            && is_float(output)
        {
            let taken = source(&sources, output);
            sources.insert(input.to_string(), taken);
        }
    }
    sources
}

fn source(elsewhere: &HashMap<String, RangeSource>, name: &str) -> RangeSource {
    let own = || RangeSource::Observed(name.to_string());
    elsewhere.get(name).cloned().unwrap_or_else(own)
}

impl Planner<'_> {
    /// Where the range of each activation comes from.
    pub(super) fn range_sources(
        &self,
        forms: &BTreeMap<String, Form>,
    ) -> HashMap<String, RangeSource> {
        let graph = &self.model.graph;
        let elsewhere = elsewhere(graph, &self.uses, |name| self.is_float(name));
        let marked = forms.iter().filter(|(name, form)| {
            **form == Form::Activation && !graph.initializers.contains(name)
        });
        marked
            .map(|(name, _)| (name.clone(), source(&elsewhere, name)))
            .collect()
    }

    /// What Softmax operators make that stay float, where it becomes integers behind them.
    pub(super) fn float_softmaxes(&self, forms: &BTreeMap<String, Form>) -> BTreeSet<String> {
        let nodes = self.model.graph.nodes.iter().enumerate();
        nodes
            .filter(|&(index, node)| node.is("Softmax") && self.excluded(index).is_some())
            .filter_map(|(_, node)| node.output.first())
            .filter(|name| forms.get(*name) == Some(&Form::Activation))
            .cloned()
            .collect()
    }
}

impl Plan {
    /// The values whose ranges any settings may want, in order of name: what a calibration has to watch so
    /// that layers can be kept float, given back and retyped without another.
    ///
    /// It is all that any operator with integers reads and makes, whatever becomes of it by the usual settings: these fold
    /// what others keep, and pass over what others quantize.
    pub fn observable(model: &Model) -> Result<Vec<String>, QuantizeError> {
        // Operator by operator: settings may have the nodes inside a composed operator quantized, too.
        Plan::with_chains(model, &Settings::default(), Vec::new())?;
        let graph = &model.graph;
        let (uses, element) = (graph.uses(), graph.element_types());
        let is_float = |name: &str| element.get(name) == Some(&DataType::Float);
        let elsewhere = elsewhere(graph, &uses, is_float);
        let treated = graph
            .nodes
            .iter()
            .filter(|node| treatment(&node.operator()).is_some());
        let read_and_made = treated.flat_map(|node| node.input.iter().chain(&node.output));
        let chains = composed(graph, &uses);
        let around = chains.iter().flat_map(|chain| {
            let made = graph.nodes[chain.last()].output.first();
            made.into_iter().chain([&chain.input])
        });
        let names: BTreeSet<String> = read_and_made
            .chain(around)
            .filter(|name| is_float(name) && !graph.initializers.contains(name))
            .map(|name| match source(&elsewhere, name) {
                RangeSource::Observed(seen) => seen,
                // ONNX Runtime's methods may look at it all the same.
                RangeSource::Fixed(..) => name.clone(),
            })
            .collect();
        Ok(names.into_iter().collect())
    }

    /// Takes what was seen of a Softmax that stays float where the method is one of ONNX Runtime's own, whose quantizer knows
    /// the ends of those only that it quantizes.
    pub(super) fn follow_onnx_runtime(&mut self, ranges: Ranges<'_>) {
        for name in &self.float_softmaxes {
            let Some(represented) = self.representations.get(name) else {
                continue;
            };
            if ranges
                .method_of(represented)
                .is_some_and(|method| method.is_onnx_runtime())
            {
                let seen = RangeSource::Observed(name.clone());
                self.ranges.insert(name.clone(), seen);
            }
        }
    }
}
