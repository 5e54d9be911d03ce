//! A tensor read only by a Concat takes the scale of the Concat's output.
//!
//! The Concat rounds its inputs to that scale, so a scale of their own would round them twice. With
//! one scale the runtime copies integers; with two it must requantize each of them. ONNX Runtime's
//! quantizer gives each input its own scale.

use std::collections::{BTreeSet, HashSet};

use super::{Plan, TensorRole};
use octet_graph::operators::{Operator, Property};
use octet_graph::{Model, Node};

impl Plan {
    /// Gives the inputs of a Concat the scale of its output, unless the settings name a scale or
    /// range of theirs.
    ///
    /// `calibrated` lists the values whose ranges came from calibration. Call it after the set of
    /// quantized values and their types are final.
    pub(crate) fn share_concat_scales(&mut self, model: &Model, calibrated: &[String]) {
        if self.like_onnx_runtime {
            return;
        }
        let calibrated: HashSet<&String> = calibrated.iter().collect();
        // The order is reversed because a Concat may read the output of an earlier Concat.
        for (index, node) in model.graph.nodes().iter().enumerate().rev() {
            if !node.is("Concat") || !self.quantized.contains(&index) {
                continue;
            }
            let Some(whole) = self.output_scale_owner(node) else {
                continue;
            };
            for part in &node.input {
                let source = self.scale_owners.get(part).unwrap_or(part).clone();
                let [own, other] = [&source, &whole].map(|name| self.representations.get(name));
                let alike = own
                    .zip(other)
                    .is_some_and(|(own, other)| own.is_like(other) && own.method == other.method);
                let free = source != whole && calibrated.contains(&source);
                if free && alike && self.is_read_only_by(model, index, &source) {
                    self.share_scale(&source, &whole);
                }
            }
        }
    }

    /// The value whose scale a node's output has after folding.
    fn output_scale_owner(&self, node: &Node) -> Option<String> {
        let output = node.output.first()?;
        let output = self.folded_name(output).unwrap_or(output);
        let marked = self.forms.iter().any(|(name, _)| name == output);
        marked.then(|| self.scale_owners.get(output).unwrap_or(output).clone())
    }

    /// True if every consumer of the values with this scale is `node`, or moves data to such a
    /// value.
    fn is_read_only_by(&self, model: &Model, node: usize, source: &str) -> bool {
        let forms = self.forms.iter().map(|(name, _)| name.as_str());
        let has =
            |name: &str| name == source || self.scale_owners.get(name).is_some_and(|s| s == source);
        let group: BTreeSet<&str> = forms.filter(|name| has(name)).collect();
        group.contains(source)
            && group.iter().all(|name| {
                let mut readers = model.graph.consumers(name).iter();
                !model.graph.is_output(name)
                    && readers.all(|reader| {
                        let by = model.graph.nodes().get(reader.node);
                        let stays = |by: &Node| {
                            only_moves_data(by)
                                && by
                                    .output
                                    .iter()
                                    .all(|output| group.contains(output.as_str()))
                        };
                        reader.node == node || by.is_some_and(stays)
                    })
            })
    }

    fn share_scale(&mut self, source: &str, whole: &str) {
        self.representations.remove(source);
        for (name, form) in &mut self.forms {
            if name == source {
                *form = TensorRole::Shared(whole.to_string());
            }
        }
        for end in self.scale_owners.values_mut().filter(|end| *end == source) {
            *end = whole.to_string();
        }
        self.scale_owners
            .insert(source.to_string(), whole.to_string());
    }
}

/// True for a node whose output holds only its input values and zeros.
fn only_moves_data(node: &Node) -> bool {
    Operator::of(node).has(Property::KeepsRange)
        || node.is("Resize") && node.text("mode").unwrap_or("nearest") == "nearest"
}
