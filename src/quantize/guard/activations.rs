//! Activations whose integers would be too coarse get 16 bits or stay float.
//!
//! The measure is the number of integers in the shortest interval that holds half of a tensor's
//! values. A few integers cannot carry a layer's result, however small the error of the few large
//! values is.
//!
//! Each input of a Concat is measured separately, because boxes in pixels can leave no integers for
//! probabilities. The model's inputs are also measured by the noise that their rounding adds to the
//! first layers (see `inlets/`).

use super::super::inlets::Additions;
use super::super::plan::{Plan, RangeSource};
use super::super::settings::{ElementType, GuardSettings};
use super::{HARMLESS, decibel, settle};
use crate::calibrate::{Observations, ShortestHalf};
use crate::graph::{Model, Uses};

/// Minimum of integers in the shortest half of a tensor's values. With six, every network of the
/// corpus that 8 bits ruin recovers, and the others stay unchanged (docs/accuracy.md).
const ENOUGH: f64 = 6.0;
/// The minimum for one input of a Concat. Below one integer, nothing of the input is left. Inputs
/// of unequal size are common and harmless above it.
const ENOUGH_OF_A_PART: f64 = 1.0;

/// Applies the rule to the tensors with computed ranges (`found`). Returns the notes on changed
/// tensors, and those on tensors that keep their type.
pub(super) fn refine_activations(
    model: &Model,
    uses: &Uses,
    plan: &mut Plan,
    found: &[String],
    observations: &Observations,
    additions: &Additions,
    may: GuardSettings,
) -> (Vec<String>, Vec<String>) {
    let (mut said, mut declined) = (Vec::new(), Vec::new());
    for name in found {
        let (Some(represented), Some(RangeSource::Observed(source))) =
            (plan.representations.get(name), plan.ranges.get(name))
        else {
            continue;
        };
        let joined = uses.producer(name).map(|node| &model.graph.nodes[node]);
        let parts = joined
            .filter(|node| node.is("Concat"))
            .map_or(&[][..], |node| &node.input);
        let bulk_of = |value: &String| {
            observations
                .get(value)
                .and_then(|seen| seen.shortest_half())
        };
        let whole = bulk_of(source).map(|bulk| (bulk, source, ENOUGH));
        let parts = parts
            .iter()
            .filter_map(|part| Some((bulk_of(part)?, part, ENOUGH_OF_A_PART)));
        // The candidate with the fewest integers relative to its minimum.
        let found = whole.into_iter().chain(parts).min_by(|one, other| {
            let share = |(bulk, _, enough): &(ShortestHalf, &String, f64)| bulk.width / enough;
            share(one).total_cmp(&share(other))
        });
        let Some((bulk, of, enough)) = found else {
            continue;
        };
        let Some(range) = represented.range else {
            continue;
        };
        let step = |element: ElementType| {
            let (low, high) = (f64::from(range.min.min(0.0)), f64::from(range.max.max(0.0)));
            let mut other = represented.clone();
            other.element = element;
            let target = other.target();
            let integers = f64::from(target.high) - f64::from(target.low);
            (high - low) / integers
        };
        let added = |element: ElementType| additions.of_step(name, step(element));
        let is_harmless = |element: ElementType| element.bits() < 8 || added(element) <= HARMLESS;
        // With 4 bits the minimum is the same fraction of all integers as with 8.
        let is_enough = |element: ElementType| {
            let part = if element.bits() < 8 { 1.0 / 16.0 } else { 1.0 };
            bulk.width / step(element) >= enough * part && is_harmless(element)
        };
        let (now, wide) = (represented.element, represented.element.with_16_bits());
        if is_enough(now) {
            continue;
        }
        let whose = match of == source {
            true => "its values".to_string(),
            false => format!("the values of its part `{of}`"),
        };
        let what = match is_harmless(now) {
            true => format!(
                "leave {:.2} integers to half of {whose}",
                bulk.width / step(now)
            ),
            false => format!(
                "leave channels of it so few integers that what the first weights make has {:.0} dB of signal over noise",
                decibel(added(now))
            ),
        };
        let why = format!("its range, {} to {}, would {what}", range.min, range.max);
        let suits = wide != now && bulk.resolved && is_enough(wide);
        settle(plan, name, &why, suits, may, [&mut said, &mut declined]);
    }
    (said, declined)
}
