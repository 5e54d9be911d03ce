//! Folds Relu and Clip into the node before them where the integers clip in their place.

use std::collections::HashMap;

use super::Plan;
use super::visit::Planner;
use octet_graph::{Graph, Node};
use octet_stats::Range;

/// A Relu or Clip that is folded into the node before it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FoldedClamp {
    pub(super) node: usize,
    /// The output of the folded node.
    pub(super) output: String,
    /// The bounds of the folded node, narrowed by those folded before it.
    bounds: ClampBounds,
}

/// Finds a folded node by its output; returns its input and the node.
fn folded_with_output<'a>(
    renamed: &'a HashMap<String, FoldedClamp>,
    output: &str,
) -> Option<(&'a String, &'a FoldedClamp)> {
    renamed.iter().find(|(_, folded)| folded.output == output)
}

/// The interval that a Relu or Clip clips to; it contains zero.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ClampBounds {
    low: f32,
    high: f32,
}

impl ClampBounds {
    /// True if the integers of any scale can end exactly at these bounds.
    fn is_exact(self) -> bool {
        let is = |bound: f32| bound == 0.0 || bound.is_infinite();
        is(self.low) && is(self.high)
    }

    fn within(self, other: ClampBounds) -> ClampBounds {
        ClampBounds {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
        }
    }

    /// Clips a range to the bounds.
    fn clip(self, range: Range) -> Range {
        Range::new(range.min.max(self.low), range.max.min(self.high))
    }
}

impl Plan {
    /// The name that a value takes when the nodes folded behind it are removed.
    pub(crate) fn folded_name(&self, value: &str) -> Option<&String> {
        let next = |name: &str| self.renamed.get(name).map(|folded| &folded.output);
        // The limit ends the walk if the chain has a cycle.
        std::iter::successors(next(value), |name| next(name))
            .take(self.renamed.len())
            .last()
    }

    /// Clips the range of a value to the bounds of the nodes folded into it. A calibration method
    /// may extend a range beyond the observed values.
    pub(crate) fn clip(&self, name: &str, range: Range) -> Range {
        folded_with_output(&self.renamed, name)
            .map_or(range, |(_, folded)| folded.bounds.clip(range))
    }

    /// Restores the nodes folded into a value, because its integers won't clip in their place.
    pub(super) fn unfold(&mut self, mut name: String) {
        while let Some((input, folded)) = folded_with_output(&self.renamed, &name) {
            self.removed.remove(&folded.node);
            name = input.clone();
            self.renamed.remove(&name);
        }
    }
}

impl Planner<'_> {
    /// Folds a Relu or Clip into the node before it, which then makes the output. This is exact
    /// where the integers start at zero, or where the range ends at the bound of the Clip.
    pub(super) fn fold_clamp(&mut self, index: usize, input: &str, output: &str) -> bool {
        let (Some(mut producers), Some(bounds)) = (self.producers(input), self.bounds(index))
        else {
            return false;
        };
        producers.push(index);
        let alone = self.model.graph.consumers(input).len() == 1;
        let represented = self.layers.tensor(output, &self.activations_of(&producers));
        // A chosen scale may represent values beyond the bounds. A power of two exceeds every bound
        // except zero.
        let exact = bounds.is_exact() || !represented.power_of_two.is_required();
        if represented.is_symmetric(false)
            || represented.is_chosen()
            || !exact
            || !alone
            || self.model.graph.is_output(input)
            // A subgraph reads the float value, which no integers have clipped.
            || self.model.graph.is_captured(output)
            || self.nodes[index].float_output
            || !self.is_float(output)
        {
            return false;
        }
        let before = folded_with_output(&self.renamed, input);
        let folded = FoldedClamp {
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

    /// The bounds of a Relu or Clip if they are constant and contain zero.
    ///
    /// Integers always represent zero, so they can't replace a Clip to [1, 6] or one with computed
    /// bounds. (ONNX Runtime folds these too; its quantized model then gives values outside the
    /// bounds.)
    fn bounds(&self, index: usize) -> Option<ClampBounds> {
        let graph = &self.model.graph;
        let (low, high) = clamp_bounds(graph, &graph.nodes()[index])?;
        (low <= 0.0 && high >= 0.0).then_some(ClampBounds { low, high })
    }
}

/// The bounds of a Relu or Clip; `None` for other nodes and for bounds that are not constant.
pub fn clamp_bounds(graph: &Graph, node: &Node) -> Option<(f32, f32)> {
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
    use crate::Settings;
    use crate::ranges::ActivationRanges;
    use octet_graph::{Model, TensorType};
    use octet_onnx::schema::*;
    use octet_stats::{Method, PowerOfTwo, Range, TensorStatistics};

    /// x → Sigmoid → a → Clip → b → Sigmoid → y
    fn model() -> Model {
        let element = DataType::Float;
        let value = |name: &str| {
            ValueInfoProto::new(
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
        Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
    }

    #[test]
    fn a_range_ends_at_the_bounds_of_a_folded_clip() {
        let fold = |settings: &Settings| {
            let mut plan = Plan::new(&model(), settings).unwrap();
            let mut seen = TensorStatistics::new();
            seen.observe(&[0.0, 0.5, 1.0]);
            let observations: BTreeMap<_, _> = ["x", "a", "b", "y"]
                .map(|name| (name.to_string(), seen.clone()))
                .into();
            let ranges = ActivationRanges::Observed(&observations, Method::MinMax);
            plan.find_ranges(ranges).unwrap();
            (plan.removed.len(), plan.representations["b"].range)
        };
        let folded = (1, Some(Range::new(0.0, 0.75)));
        assert_eq!(fold(&Settings::default()), folded);
        // A power-of-two scale represents values far beyond the bound.
        let mut rounded = Settings::default();
        rounded.activations.power_of_two = Some(PowerOfTwo::Covering);
        let kept = (0, Some(Range::new(0.0, 255.0 / 128.0)));
        assert_eq!(fold(&rounded), kept);
    }
}
