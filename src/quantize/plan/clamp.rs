//! Relu and Clip: folded into what comes before them where that changes nothing.

use std::collections::HashMap;

use super::Plan;
use super::visit::Planner;
use crate::calibrate::Range;
use crate::graph::Graph;
use crate::onnx::schema::NodeProto;

/// A node that is folded into what comes before it.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::quantize) struct Folded {
    node: usize,
    /// What it had made.
    pub(in crate::quantize) output: String,
    /// Where it, and what was folded before it, had cut off.
    bounds: Bounds,
}

/// What a folded node had read, and the node, by what it had made.
fn folded_into<'a>(
    renamed: &'a HashMap<String, Folded>,
    output: &str,
) -> Option<(&'a String, &'a Folded)> {
    renamed.iter().find(|(_, folded)| folded.output == output)
}

/// What a folded node would cut off to: from zero or below to zero or above.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bounds {
    low: f32,
    high: f32,
}

impl Bounds {
    /// Whether integers of any scale end there.
    fn is_exact(self) -> bool {
        let is = |bound: f32| bound == 0.0 || bound.is_infinite();
        is(self.low) && is(self.high)
    }

    fn within(self, other: Bounds) -> Bounds {
        Bounds {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
        }
    }

    /// The range as far as it lies within.
    fn cut(self, range: Range) -> Range {
        Range::new(range.min.max(self.low), range.max.min(self.high))
    }
}

impl Plan {
    /// Where a chain of folded nodes ends that begins with a value: the name that what makes it has now.
    pub(in crate::quantize) fn last_name(&self, value: &str) -> Option<&String> {
        let next = |name: &str| self.renamed.get(name).map(|folded| &folded.output);
        // As many steps as there are folded nodes end any chain that ends at all.
        std::iter::successors(next(value), |name| next(name))
            .take(self.renamed.len())
            .last()
    }

    /// A range of a value as far as folded nodes would have let it pass: a method may have looked beyond what was seen.
    pub(in crate::quantize) fn cut(&self, name: &str, range: Range) -> Range {
        folded_into(&self.renamed, name).map_or(range, |(_, folded)| folded.bounds.cut(range))
    }

    /// Puts back the nodes whose work the integers of a value would have done.
    pub(super) fn unfold(&mut self, mut name: String) {
        while let Some((input, folded)) = folded_into(&self.renamed, &name) {
            self.removed.remove(&folded.node);
            name = input.clone();
            self.renamed.remove(&name);
        }
    }
}

impl Planner<'_> {
    /// Lets what comes before a Relu or Clip make its output: with integers from zero up, or whose range
    /// ends where the clip does, there is nothing left for it to do.
    pub(super) fn fold_clamp(&mut self, index: usize, input: &str, output: &str) -> bool {
        let (Some(mut makers), Some(bounds)) = (self.makers(input), self.bounds(index)) else {
            return false;
        };
        makers.push(index);
        let alone = self.uses.consumers(input).len() == 1;
        let made = self.layers.tensor(output, &self.activations_of(&makers));
        // A scale that somebody chose may reach beyond the bounds, a power of two beyond all but zero.
        let exact = bounds.is_exact() || !made.power_of_two.is_required();
        if made.is_symmetric(false)
            || made.is_chosen()
            || !exact
            || !alone
            || self.uses.is_output(input)
            // A subgraph reads reals, which no integers have cut off.
            || self.uses.is_captured(output)
            || self.nodes[index].float_output
            || !self.is_float(output)
        {
            return false;
        }
        let before = folded_into(&self.renamed, input);
        let folded = Folded {
            node: index,
            output: output.to_string(),
            bounds: before.map_or(bounds, |(_, before)| before.bounds.within(bounds)),
        };
        self.forms.remove(input);
        self.order.retain(|name| name != input);
        self.renamed.insert(input.to_string(), folded);
        self.removed.insert(index);
        true
    }

    /// What a Relu or Clip cuts off to, where it is known to let zero pass. The integers always reach down or up to zero, so
    /// they can't stand for a Clip to [1, 6] or to bounds that come with the data. (ONNX Runtime folds
    /// these too, and then the model gives values outside the bounds.)
    fn bounds(&self, index: usize) -> Option<Bounds> {
        let graph = &self.model.graph;
        let (low, high) = clamp_bounds(graph, &graph.nodes[index])?;
        (low <= 0.0 && high >= 0.0).then_some(Bounds { low, high })
    }
}

/// What a Relu or Clip cuts off to, where that is known.
pub(crate) fn clamp_bounds(graph: &Graph, node: &NodeProto) -> Option<(f32, f32)> {
    let bound = |slot, open: f32| match node.input_at(slot) {
        None => Some(open),
        Some(name) => graph
            .initializers
            .get(name)?
            .to_f32()
            .ok()?
            .first()
            .copied(),
    };
    match (node.is("Relu"), node.is("Clip")) {
        (true, _) => Some((0.0, f32::INFINITY)),
        (_, true) => Some((bound(1, f32::NEG_INFINITY)?, bound(2, f32::INFINITY)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::Plan;
    use crate::calibrate::{Method, Observation, PowerOfTwo, Range};
    use crate::graph::{Model, TensorType};
    use crate::onnx::schema::*;
    use crate::quantize::Settings;
    use crate::quantize::ranges::Ranges;

    /// x → Sigmoid → a → Clip → b → Sigmoid → y
    fn model() -> Model {
        let element = DataType::Float;
        let value = |name: &str| {
            ValueInfoProto::of(
                name,
                &TensorType {
                    element,
                    shape: None,
                },
            )
        };
        let node = |operator: &str, inputs: &[&str], output: &str| {
            NodeProto::new(operator, output, inputs, &[output])
        };
        let graph = GraphProto {
            node: vec![
                node("Sigmoid", &["x"], "a"),
                node("Clip", &["a", "low", "high"], "b"),
                node("Sigmoid", &["b"], "y"),
            ],
            initializer: vec![
                TensorProto::from_f32("low", &[], &[-0.25]),
                TensorProto::from_f32("high", &[], &[0.75]),
            ],
            input: vec![value("x")],
            output: vec![value("y")],
            value_info: vec![value("a"), value("b")],
            ..Default::default()
        };
        Model::from_proto(ModelProto::of_graph(graph, 17)).unwrap()
    }

    #[test]
    fn no_range_reaches_beyond_a_clip_that_is_folded() {
        let found = |settings: &Settings| {
            let mut plan = Plan::new(&model(), settings).unwrap();
            let mut seen = Observation::new();
            seen.observe(&[0.0, 0.5, 1.0]);
            let observations: BTreeMap<_, _> = ["x", "a", "b", "y"]
                .map(|name| (name.to_string(), seen.clone()))
                .into();
            let ranges = Ranges::Seen(&observations, Method::MinMax);
            plan.find_ranges(ranges).unwrap();
            (plan.removed.len(), plan.representations["b"].range)
        };
        let folded = (1, Some(Range::new(0.0, 0.75)));
        assert_eq!(found(&Settings::default()), folded);
        // A scale that is a power of two reaches far beyond.
        let mut rounded = Settings::default();
        rounded.activations.power_of_two = Some(PowerOfTwo::Covering);
        let kept = (0, Some(Range::new(0.0, 255.0 / 128.0)));
        assert_eq!(found(&rounded), kept);
    }
}
