//! From marks to the plan: who shares with whom, and how each tensor is represented.

use std::collections::{BTreeMap, HashMap};

use super::visit::Planner;
use super::{Form, Plan};
use crate::quantize::operators::factor_channels;
use crate::quantize::settings::{Operators, Representation, Rounding};

impl Planner<'_> {
    pub(super) fn finish(mut self) -> Plan {
        // A scale is shared with what is still quantized; a folded value goes by its new name.
        let mut forms = BTreeMap::new();
        for (name, form) in self.forms.drain() {
            let form = match form {
                Form::Shared(source) => {
                    let folded = self.renamed.get(&source);
                    Form::Shared(folded.map_or(source, |folded| folded.output.clone()))
                }
                form => form,
            };
            forms.insert(name, form);
        }
        let mut representations: HashMap<String, Representation> = forms
            .iter()
            .map(|(name, form)| (name.clone(), self.representation(name, form)))
            .collect();
        self.part_unlike(&mut forms, &representations);
        let ranges = self.range_sources(&forms);
        let float_softmaxes = self.float_softmaxes(&forms);
        let sources = sources(&forms);
        representations.retain(|name, _| !matches!(forms.get(name), Some(Form::Shared(_))));
        let ordered = self.order.into_iter();
        Plan {
            forms: ordered
                .filter_map(|name| forms.remove(&name).map(|form| (name, form)))
                .collect(),
            representations,
            biases: self.biases,
            fit_biases: self.settings.fit_bias,
            like_onnx_runtime: self.settings.operators == Operators::OnnxRuntime,
            correct_biases: false,
            rounding: Rounding::Nearest,
            removed: self.removed,
            renamed: self.renamed,
            quantized: self.quantized,
            ranges,
            float_softmaxes,
            sources,
            choices: self.choices,
        }
    }

    /// What the settings say of a tensor: an activation is represented as the layer that makes it has it, and what is folded
    /// into that; or, where none does, as the first that takes it.
    fn representation(&self, name: &str, form: &Form) -> Representation {
        let mut consumers = self.uses.consumers(name).iter().map(|&(node, _)| node);
        let first = consumers.find(|node| self.quantized.contains(node));
        let layer = match form {
            Form::Weight(_) => first.map(|node| self.nodes[node].weights.clone()),
            _ => self
                .makers(name)
                .filter(|nodes| self.quantized.contains(&nodes[0]))
                .or(first.map(|node| vec![node]))
                .map(|nodes| self.activations_of(&nodes)),
        };
        let mut layer = layer.unwrap_or_else(|| self.layers.activations());
        if let Some(node) = first.filter(|_| self.model.graph.initializers.contains(name)) {
            // A constant's integers are reduced as weights are, whatever type they have.
            layer.reduce_range |= self.nodes[node].weights.reduce_range;
        }
        self.layers.tensor(name, &layer)
    }

    /// The axis along which a constant factor of a MatMul has scales, if ONNX Runtime can multiply by such.
    ///
    /// Its QLinearMatMul, which it makes of bytes, takes a scale for each column of a single matrix on the right, and of nothing
    /// else (1.31.1 fails as the model runs). Its quantizer has axis 1 all the same, and so has what is to be as its own.
    pub(super) fn factor_axis(&self, node: usize, slot: usize, name: &str) -> Option<usize> {
        let rank = self.model.graph.initializers.get(name)?.dims.len();
        let represented = self.layers.tensor(name, &self.nodes[node].weights);
        let bytes = represented.element.bits() == 8;
        match self.settings.operators {
            Operators::OnnxRuntime => Some(1),
            _ if bytes && (slot, rank) != (1, 2) => None,
            _ => factor_channels(slot, rank),
        }
    }

    /// The node that makes a value once folded nodes are out, and behind it those that were folded into it.
    pub(super) fn makers(&self, name: &str) -> Option<Vec<usize>> {
        let mut nodes = vec![self.uses.producer(name)?];
        while self.removed.contains(&nodes[0]) {
            let input = self.model.graph.nodes[nodes[0]].input_at(0)?;
            nodes.insert(0, self.uses.producer(input)?);
        }
        Some(nodes)
    }

    /// Gives a value a scale of its own where the settings want it represented otherwise than what it shares
    /// the scale of.
    fn part_unlike(
        &self,
        forms: &mut BTreeMap<String, Form>,
        representations: &HashMap<String, Representation>,
    ) {
        let chains = sources(forms);
        for (name, end) in &chains {
            // What is picked from a constant keeps the constant's scale, whatever that is.
            if self.model.graph.initializers.contains(end) || !forms.contains_key(end) {
                continue;
            }
            let (own, shared) = (&representations[name], &representations[end]);
            // A method of its own was said of it, not in general.
            let found_otherwise = own.method != shared.method && own.method != self.settings.method;
            if own.is_chosen() || found_otherwise || !own.is_like(shared) {
                forms.insert(name.clone(), Form::Activation);
            }
        }
    }
}

/// Where each chain of values that share a scale begins.
fn sources(forms: &BTreeMap<String, Form>) -> HashMap<String, String> {
    let next = |name: &String| match forms.get(name) {
        Some(Form::Shared(source)) => Some(source),
        _ => None,
    };
    let mut found = HashMap::new();
    for name in forms.keys() {
        // As many steps as there are values end any chain that ends at all.
        let end = std::iter::successors(next(name), |&source| next(source))
            .take(forms.len())
            .last();
        if let Some(end) = end {
            found.insert(name.clone(), end.clone());
        }
    }
    found
}
