//! The activations beyond float16 on the samples.
//!
//! Numbers from 1e9 on stand for infinity, as in masks, which half precision keeps. They are numbers
//! where a product or a square made them. A calibration does not observe the input of a Relu or Clip; it
//! is as large as the output, or its excess is cut off anyway.

use std::collections::BTreeMap;

use crate::float16_numbers::{STANDS_FOR_INFINITY, TOO_LARGE};
use crate::ranges::ActivationRanges;
use octet_graph::operators::{Operator, PowerRule, Treatment, power_rule};
use octet_graph::{Graph, Model, Node};

/// The activations beyond float16, with their largest magnitude.
pub(crate) fn far_activations(
    model: &Model,
    ranges: ActivationRanges<'_>,
) -> BTreeMap<String, f32> {
    let graph = &model.graph;
    let sizes = sizes(ranges);
    let beyond = |size: &f32| *size >= TOO_LARGE && size.is_finite();
    let is_number = |size: &f32| *size < STANDS_FOR_INFINITY;
    let all = sizes
        .iter()
        .filter(|(_, size)| beyond(size) && is_number(size));
    let mut far: BTreeMap<String, f32> = all.map(|(name, &size)| (name.clone(), size)).collect();
    for node in graph.nodes() {
        for output in &node.output {
            let size = sizes
                .get(output)
                .filter(|size| beyond(size) && !is_number(size));
            if let Some(&size) = size.filter(|_| makes_numbers(node, graph, &far)) {
                far.insert(output.clone(), size);
            }
        }
        let clamps = Operator::of(node).treatment == Some(Treatment::Clamp);
        let output = node.output.first().and_then(|name| far.get(name).copied());
        let input = node
            .input_at(0)
            .filter(|name| clamps && !sizes.contains_key(*name));
        far.extend(
            input
                .zip(output)
                .map(|(name, size)| (name.to_owned(), size)),
        );
    }
    far
}

/// The largest magnitude of each observed value.
fn sizes(ranges: ActivationRanges<'_>) -> BTreeMap<String, f32> {
    let size = |min: f32, max: f32| min.abs().max(max.abs());
    match ranges {
        ActivationRanges::Provided(ranges) => {
            let all = ranges.iter();
            all.map(|(name, range)| (name.clone(), size(range.min, range.max)))
                .collect()
        }
        ActivationRanges::Observed(seen, _) => {
            let ends = seen.iter().filter_map(|(name, seen)| {
                let (min, max) = seen.min().zip(seen.max())?;
                Some((name.clone(), size(min, max)))
            });
            ends.collect()
        }
    }
}

/// True if the large results of a node are no masks.
fn makes_numbers(node: &Node, graph: &Graph, far: &BTreeMap<String, f32>) -> bool {
    let is_far = |slot: usize| {
        node.input_at(slot)
            .is_some_and(|name| far.contains_key(name))
    };
    match power_rule(node, graph) {
        Some(PowerRule::Square | PowerRule::Product | PowerRule::Quotient) => true,
        Some(PowerRule::Absorbs { constant, .. }) => {
            let tensor = node
                .input_at(constant)
                .and_then(|name| graph.initializers.get(name));
            let numbers = tensor
                .and_then(|tensor| tensor.to_f32().ok())
                .unwrap_or_default();
            numbers
                .iter()
                .all(|number| number.abs() < STANDS_FOR_INFINITY)
        }
        Some(PowerRule::Carries(slots)) => slots.into_iter().any(is_far),
        Some(PowerRule::Root | PowerRule::Normalizes) | None => false,
    }
}
