//! Decides which calibrated range each value takes, and which values a calibration must observe.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::visit::Planner;
use super::{Plan, TensorRole};
use crate::operator_patterns::find_patterns;
use crate::operators::treatment;
use crate::ranges::ActivationRanges;
use crate::{QuantizeError, Settings};
use octet_graph::{Graph, Model};
use octet_onnx::schema::DataType;

/// The source of a value's range.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RangeOrigin {
    Observed(String),
    Fixed(f32, f32),
}

/// Values whose range is not their own observed range.
///
/// The input of a Clip or Relu takes the range of its output, because values outside are clipped
/// behind it. This holds for float Relu and Clip too. It doesn't hold for an input that is also a
/// model output, because its reader sees the unclipped values. (ONNX Runtime ignores model outputs
/// here, and clips one that a Relu also reads.) The nodes are visited in order, so in a chain of
/// two the nearer range wins.
///
/// A Softmax has the range 0 to 1 in any form. ONNX Runtime fuses pairs around a Softmax into an
/// integer operator, whose results overflow at a finer scale.
fn overridden(graph: &Graph, is_float: impl Fn(&str) -> bool) -> HashMap<String, RangeOrigin> {
    let mut sources: HashMap<String, RangeOrigin> = HashMap::new();
    for node in graph.nodes() {
        let Some(output) = node.output.first() else {
            continue;
        };
        if node.is("Softmax") {
            sources.insert(output.clone(), RangeOrigin::Fixed(0.0, 1.0));
        } else if (node.is("Relu") || node.is("Clip"))
            && let Some(input) = node.input_at(0)
            && graph.consumers(input).len() == 1
            && !graph.is_output(input)
            && is_float(input)
            && is_float(output)
        {
            let taken = source(&sources, output);
            sources.insert(input.to_string(), taken);
        }
    }
    sources
}

fn source(overridden: &HashMap<String, RangeOrigin>, name: &str) -> RangeOrigin {
    let own = || RangeOrigin::Observed(name.to_string());
    overridden.get(name).cloned().unwrap_or_else(own)
}

impl Planner<'_> {
    /// The range source of each activation.
    pub(super) fn range_sources(
        &self,
        forms: &BTreeMap<String, TensorRole>,
    ) -> HashMap<String, RangeOrigin> {
        let graph = &self.model.graph;
        let overridden = overridden(graph, |name| self.is_float(name));
        let marked = forms.iter().filter(|(name, form)| {
            **form == TensorRole::Activation && !graph.initializers.contains(name)
        });
        marked
            .map(|(name, _)| (name.clone(), source(&overridden, name)))
            .collect()
    }

    /// Outputs of Softmax nodes that stay float, where the consumer quantizes them.
    pub(super) fn float_softmaxes(&self, forms: &BTreeMap<String, TensorRole>) -> BTreeSet<String> {
        let nodes = self.model.graph.nodes().iter().enumerate();
        nodes
            .filter(|&(index, node)| node.is("Softmax") && self.excluded(index).is_some())
            .filter_map(|(_, node)| node.output.first())
            .filter(|name| forms.get(*name) == Some(&TensorRole::Activation))
            .cloned()
            .collect()
    }
}

impl Plan {
    /// The values that a calibration must observe, sorted by name.
    ///
    /// They suffice for any later settings, so layers can be kept float, quantized or retyped
    /// without a new calibration. The set holds all inputs and outputs of quantizable operators,
    /// whatever the default settings do with them. Other settings may keep a node that the defaults
    /// fold, or quantize one that they leave float.
    pub fn observed_values(model: &Model) -> Result<Vec<String>, QuantizeError> {
        // Without operator patterns, because settings may quantize the nodes inside a pattern.
        Plan::with_chains(model, &Settings::default(), Vec::new())?;
        let graph = &model.graph;
        let element = graph.element_types();
        let is_float = |name: &str| element.get(name) == Some(&DataType::Float);
        let overridden = overridden(graph, is_float);
        let treated = graph
            .nodes()
            .iter()
            .filter(|node| treatment(&node.operator()).is_some());
        let read_and_made = treated.flat_map(|node| node.input.iter().chain(&node.output));
        let chains = find_patterns(graph);
        let around = chains.iter().flat_map(|chain| {
            let output = graph.nodes()[chain.last()].output.first();
            output.into_iter().chain([&chain.input])
        });
        let names: BTreeSet<String> = read_and_made
            .chain(around)
            .filter(|name| is_float(name) && !graph.initializers.contains(name))
            .map(|name| match source(&overridden, name) {
                RangeOrigin::Observed(seen) => seen,
                // ONNX Runtime's methods may use its observed range.
                RangeOrigin::Fixed(..) => name.clone(),
            })
            .collect();
        Ok(names.into_iter().collect())
    }

    /// Uses the observed range of a float Softmax where the method is one of ONNX Runtime's. Its
    /// quantizer knows the range 0 to 1 only for a Softmax that it quantizes.
    pub(super) fn follow_onnx_runtime(&mut self, ranges: ActivationRanges<'_>) {
        for name in &self.float_softmaxes {
            let Some(represented) = self.representations.get(name) else {
                continue;
            };
            if ranges
                .method_of(represented)
                .is_some_and(|method| method.is_onnx_runtime())
            {
                let seen = RangeOrigin::Observed(name.clone());
                self.ranges.insert(name.clone(), seen);
            }
        }
    }
}
