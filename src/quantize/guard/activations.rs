//! Activations whose integers would be too coarse get 16 bits, or stay float.
//!
//! Of each is asked how many integers its bulk has: half of its values, where they lie closest.
//! A handful can't carry what a layer found, however small the error of the few large values is. What a Concat
//! joins is asked for part by part: boxes in pixels leave nothing of probabilities. Of what the model begins with is asked what it leaves of
//! the first layers' results, too (`inlets/`).

use super::super::inlets::Additions;
use super::super::plan::{Plan, RangeSource};
use super::super::settings::{ElementType, GuardSettings};
use super::{HARMLESS, decibel, settle};
use crate::calibrate::{Observations, ShortestHalf};
use crate::graph::{Model, Uses};

/// Fewer steps than this for the bulk of a tensor are too few. Of the corpus, six is what brings every network
/// back that eight bits ruin, and leaves those alone that they don't (docs/accuracy.md).
const ENOUGH: f64 = 6.0;
/// Of a part of what a Concat joins: less than this, and nothing is left of it. (Parts of unlike size are common
/// and do no harm.)
const ENOUGH_OF_A_PART: f64 = 1.0;

/// Widens or frees what of these tensors, whose ranges are found, would be too coarse, as far as the settings let it; and says so: a
/// sentence each in the first list, in the second of those that stay as they are.
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
        // That which has the least of what it needs.
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
        // Of 4 bits the same part is enough as of 8.
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
