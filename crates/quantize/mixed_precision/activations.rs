//! Activations whose integers would be too coarse get 16 bits or stay float.
//!
//! The measure is the number of integers in the shortest interval that holds half of a tensor's
//! values. A few integers cannot carry a layer's result, however small the error of the few large
//! values is.
//!
//! Each input of a Concat is measured separately, because boxes in pixels can leave no integers for
//! probabilities. The model's inputs are also measured by the noise that their rounding adds to the
//! first layers (see `input_noise/`).

use super::super::input_noise::InputNoise;
use super::super::plan::{Plan, RangeOrigin};
use super::super::settings::{ElementType, GuardSettings};
use super::{TOLERATED_NOISE, sqnr_db, widen_or_keep_float};
use octet_graph::Model;
use octet_stats::{CalibrationStatistics, ShortestHalf};

/// Minimum of integers in the shortest half of a tensor's values. With six, every network of the
/// corpus that 8 bits ruin recovers, and the others stay unchanged (docs/accuracy.md).
const MIN_INTEGERS: f64 = 6.0;
/// The minimum for one input of a Concat. Below one integer, nothing of the input is left. Inputs
/// of unequal size are common and harmless above it.
const MIN_INTEGERS_OF_AN_INPUT: f64 = 1.0;

/// Applies the rule to the tensors with computed ranges (`with_ranges`). Returns the notes on changed
/// tensors, and those on tensors that keep their type.
pub(super) fn refine_activations(
    model: &Model,
    plan: &mut Plan,
    with_ranges: &[String],
    observations: &CalibrationStatistics,
    input_noise: &InputNoise,
    rules: GuardSettings,
) -> (Vec<String>, Vec<String>) {
    let (mut notes, mut declined) = (Vec::new(), Vec::new());
    for name in with_ranges {
        let (Some(represented), Some(RangeOrigin::Observed(source))) =
            (plan.representations.get(name), plan.ranges.get(name))
        else {
            continue;
        };
        let joined = model
            .graph
            .producer(name)
            .map(|node| &model.graph.nodes()[node]);
        let parts = joined
            .filter(|node| node.is("Concat"))
            .map_or(&[][..], |node| &node.input);
        let bulk_of = |value: &String| {
            observations
                .get(value)
                .and_then(|seen| seen.shortest_half())
        };
        let whole = bulk_of(source).map(|bulk| (bulk, source, MIN_INTEGERS));
        let parts = parts
            .iter()
            .filter_map(|part| Some((bulk_of(part)?, part, MIN_INTEGERS_OF_AN_INPUT)));
        // The candidate with the fewest integers relative to its minimum.
        let tightest = whole.into_iter().chain(parts).min_by(|one, other| {
            let share = |(bulk, _, minimum): &(ShortestHalf, &String, f64)| bulk.width / minimum;
            share(one).total_cmp(&share(other))
        });
        let Some((bulk, of, minimum)) = tightest else {
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
        let added = |element: ElementType| input_noise.of_step(name, step(element));
        let is_harmless =
            |element: ElementType| element.bits() < 8 || added(element) <= TOLERATED_NOISE;
        // With 4 bits the minimum is the same fraction of all integers as with 8.
        let is_enough = |element: ElementType| {
            let part = if element.bits() < 8 { 1.0 / 16.0 } else { 1.0 };
            bulk.width / step(element) >= minimum * part && is_harmless(element)
        };
        let (now, wide) = (represented.element, represented.element.with_16_bits());
        if is_enough(now) {
            continue;
        }
        let whose = match of == source {
            true => "its values".to_string(),
            false => format!("the values of its input `{of}`"),
        };
        let what = match is_harmless(now) {
            true => format!(
                "leaves {:.2} integers for half of {whose}",
                bulk.width / step(now)
            ),
            false => format!(
                "gives some channels so few integers that the first layer's output has {:.0} dB SQNR",
                sqnr_db(added(now))
            ),
        };
        let why = format!("its range {} to {} {what}", range.min, range.max);
        let suits = wide != now && bulk.resolved && is_enough(wide);
        widen_or_keep_float(plan, name, &why, suits, rules, [&mut notes, &mut declined]);
    }
    (notes, declined)
}
