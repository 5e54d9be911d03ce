//! Completes the plan: shared scales, and the representation of each tensor.

use std::collections::{BTreeMap, HashMap};

use super::visit::Planner;
use super::{Plan, TensorRole};
use crate::operators::operand_channel_axis;
use crate::settings::target_rules::{self, Biases};
use crate::settings::{Operators, Representation, Rounding};

impl Planner<'_> {
    pub(super) fn finish(mut self) -> Plan {
        // A shared scale belongs to a value that still exists, so a folded value takes its new
        // name.
        let mut forms = BTreeMap::new();
        for (name, form) in self.forms.drain() {
            let form = match form {
                TensorRole::Shared(source) => {
                    let folded = self.renamed.get(&source);
                    TensorRole::Shared(folded.map_or(source, |folded| folded.output.clone()))
                }
                form => form,
            };
            forms.insert(name, form);
        }
        let mut representations: HashMap<String, Representation> = forms
            .iter()
            .map(|(name, form)| (name.clone(), self.representation(name, form)))
            .collect();
        self.split_shared_scales(&mut forms, &representations);
        let ranges = self.range_sources(&forms);
        let float_softmaxes = self.float_softmaxes(&forms);
        let scale_owners = scale_owners(&forms);
        let patterns = self.quantized_patterns();
        representations.retain(|name, _| !matches!(forms.get(name), Some(TensorRole::Shared(_))));
        let rules = target_rules::of(self.settings.target);
        let ordered = self.order.into_iter();
        Plan {
            forms: ordered
                .filter_map(|name| forms.remove(&name).map(|form| (name, form)))
                .collect(),
            representations,
            biases: self.biases,
            fit_biases: self.settings.fit_bias,
            like_onnx_runtime: self.settings.operators == Operators::OnnxRuntime,
            runs_in_onnx_runtime: rules.runs_in_onnx_runtime,
            bias_zero_points: rules.biases != Biases::IntegersWithoutZeroPoint,
            correct_biases: false,
            rounding: Rounding::Nearest,
            removed: self.removed,
            renamed: self.renamed,
            patterns,
            quantized: self.quantized,
            ranges,
            float_softmaxes,
            scale_owners,
            choices: self.choices,
        }
    }

    /// The representation that the settings give a tensor.
    ///
    /// An activation takes the settings of the layer that makes it, including the nodes folded into
    /// that layer. Without such a layer it takes the settings of its first quantized consumer.
    fn representation(&self, name: &str, form: &TensorRole) -> Representation {
        let mut consumers = self
            .model
            .graph
            .consumers(name)
            .iter()
            .map(|reader| reader.node);
        let first = consumers.find(|node| self.quantized.contains(node));
        let layer = match form {
            TensorRole::Weight(_) => first.map(|node| self.nodes[node].weights.clone()),
            _ => self
                .producers(name)
                .filter(|nodes| self.quantized.contains(&nodes[0]))
                .or(first.map(|node| vec![node]))
                .map(|nodes| self.activations_of(&nodes)),
        };
        let mut layer = layer.unwrap_or_else(|| self.layers.activations());
        if let Some(node) = first.filter(|_| self.model.graph.initializers.contains(name)) {
            // `reduce_range` of weights applies to every constant, whatever its type.
            layer.reduce_range |= self.nodes[node].weights.reduce_range;
        }
        let represented = self.layers.tensor(name, &layer);
        match (form, self.prescribed(name, &represented)) {
            (TensorRole::Activation, Some(scale)) => Representation {
                scale: Some(scale),
                ..represented
            },
            _ => represented,
        }
    }

    /// Scale and zero point that the target prescribes for a value.
    fn prescribed(&self, name: &str, represented: &Representation) -> Option<(f32, i32)> {
        let outputs = target_rules::of(self.settings.target).outputs;
        let node = &self.model.graph.nodes()[self.model.graph.producer(name)?];
        let mut fixed = outputs
            .iter()
            .filter(|fixed| node.is(fixed.operator) && represented.element == fixed.element);
        let fixed = fixed.next().filter(|_| !represented.is_chosen())?;
        Some((fixed.scale, fixed.zero_point))
    }

    /// The channel axis of a constant MatMul operand, if ONNX Runtime can execute per-channel
    /// scales along it.
    ///
    /// For 8 bits it runs QLinearMatMul, which takes one scale for each column of a 2-D right
    /// operand only. Other layouts fail at run time (1.31.1). Its quantizer uses axis 1 in every
    /// case, so `Operators::OnnxRuntime` does too.
    pub(super) fn operand_axis(&self, node: usize, slot: usize, name: &str) -> Option<usize> {
        let rank = self.model.graph.initializers.get(name)?.dims.len();
        let represented = self.layers.tensor(name, &self.nodes[node].weights);
        let bytes = represented.element.bits() == 8;
        match self.settings.operators {
            Operators::OnnxRuntime => Some(1),
            _ if bytes && (slot, rank) != (1, 2) => None,
            _ => operand_channel_axis(slot, rank),
        }
    }

    /// The node that makes a value after folding, followed by the nodes folded into it.
    pub(super) fn producers(&self, name: &str) -> Option<Vec<usize>> {
        let mut nodes = vec![self.model.graph.producer(name)?];
        while self.removed.contains(&nodes[0]) {
            let input = self.model.graph.nodes()[nodes[0]].input_at(0)?;
            nodes.insert(0, self.model.graph.producer(input)?);
        }
        Some(nodes)
    }

    /// Gives a value its own scale where its settings differ from those of the value it shares
    /// with.
    fn split_shared_scales(
        &self,
        forms: &mut BTreeMap<String, TensorRole>,
        representations: &HashMap<String, Representation>,
    ) {
        let chains = scale_owners(forms);
        for (name, end) in &chains {
            // A value gathered from a constant keeps the scale of the constant.
            if self.model.graph.initializers.contains(end) || !forms.contains_key(end) {
                continue;
            }
            let (own, shared) = (&representations[name], &representations[end]);
            // The method was set for this tensor, not for all.
            let found_otherwise = own.method != shared.method && own.method != self.settings.method;
            if own.is_chosen() || found_otherwise || !own.is_like(shared) {
                forms.insert(name.clone(), TensorRole::Activation);
            }
        }
    }
}

/// Maps each value that shares a scale to the first value of its chain.
fn scale_owners(forms: &BTreeMap<String, TensorRole>) -> HashMap<String, String> {
    let next = |name: &String| match forms.get(name) {
        Some(TensorRole::Shared(source)) => Some(source),
        _ => None,
    };
    let mut owners = HashMap::new();
    for name in forms.keys() {
        // The limit ends the walk if the chain has a cycle.
        let end = std::iter::successors(next(name), |&source| next(source))
            .take(forms.len())
            .last();
        if let Some(end) = end {
            owners.insert(name.clone(), end.clone());
        }
    }
    owners
}
