//! Mixed precision: tensors that 8 bits would ruin get 16 bits or stay float.
//!
//! The rules apply to defaults only. A type that the settings choose for a tensor, a node, a scope
//! or an operator stays, and a note reports where it would have changed. Every rule but the one on
//! infinite values needs calibration statistics; ranges alone do not tell the distribution.
//! [`GuardSettings`] switches the rules one by one.

mod activations;
mod attention_masks;
mod constants;
mod early_layers;
mod logits;
mod ranges;
mod softmax;
mod weights;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use attention_masks::keep_infinite_float;

use super::QuantizeError;
use super::input_noise::InputNoise;
use super::plan::Plan;
use super::ranges::ActivationRanges;
use super::settings::{GuardSettings, Settings};
use octet_graph::Model;
use octet_stats::Method;

/// The tolerated noise-to-signal ratio of a weight, or of the output of the first weights: 25 dB
/// SQNR. A smaller error is never among the largest of a network.
const TOLERATED_NOISE: f64 = 1.0 / 300.0;

fn sqnr_db(error: f64) -> f64 {
    -10.0 * error.log10()
}

/// Gives 16 bits to a tensor whose integers are too coarse (`why`), or keeps it float.
///
/// `suits` is true where 16 bits are enough; `rules` holds the allowed rules. A change adds a note to
/// the first list. A tensor that stays as it is adds a note to the second.
fn widen_or_keep_float(
    plan: &mut Plan,
    name: &str,
    why: &str,
    suits: bool,
    rules: GuardSettings,
    [notes, declined]: [&mut Vec<String>; 2],
) {
    let Some(represented) = plan.representations.get_mut(name) else {
        return;
    };
    let now = represented.element;
    if represented.typed {
        declined.push(format!(
            "`{name}` keeps its type from the settings, although {why}"
        ));
    } else if rules.finer && suits {
        notes.push(format!("`{name}` has 16 bits: {why}"));
        // A new range is computed for 16 bits, because finer steps need less clipping.
        (represented.element, represented.range) = (now.with_16_bits(), None);
    } else if rules.float {
        notes.push(format!("`{name}` stays float: {why}"));
        plan.keep_float(name);
    } else {
        declined.push(format!(
            "`{name}` keeps {} bits because the settings allow no other type, although {why}",
            now.bits()
        ));
    }
}

/// The notes of mixed precision, one sentence for each tensor.
#[derive(Debug, Default)]
pub(super) struct MixedPrecisionNotes {
    /// Tensors that 8 bits would have ruined.
    pub(super) protected: Vec<String>,
    /// Tensors with 16 bits for a better result.
    pub(super) refined: Vec<String>,
    /// Tensors that need more bits but keep their type.
    pub(super) declined: Vec<String>,
}

/// Applies all rules to a plan. `with_ranges` lists the tensors with computed ranges, in execution order.
pub(super) fn apply_mixed_precision(
    model: &Model,
    settings: &Settings,
    plan: &mut Plan,
    with_ranges: &[String],
    ranges: ActivationRanges<'_>,
) -> Result<MixedPrecisionNotes, QuantizeError> {
    let rules = settings.guard;
    let mut notes = MixedPrecisionNotes::default();
    if rules == GuardSettings::NONE {
        return Ok(notes);
    }
    (notes.protected, notes.declined) =
        attention_masks::keep_infinite_float(model, plan, with_ranges, ranges, rules.float);
    let ActivationRanges::Observed(observations, _) = ranges else {
        return Ok(notes);
    };
    let is_left = |name: &&String| plan.forms.iter().any(|(tensor, _)| tensor == *name);
    let with_ranges: Vec<String> = with_ranges.iter().filter(is_left).cloned().collect();
    let with_ranges = with_ranges.as_slice();
    let input_noise = InputNoise::new(model, ranges)?;
    let auto = ranges.method(settings) == Some(Method::Auto);
    if rules.ranges {
        let widened = ranges::widen(plan, with_ranges, observations);
        notes.protected.extend(widened);
    }
    if rules.finer || rules.float {
        let (protected, declined) = activations::refine_activations(
            model,
            plan,
            with_ranges,
            observations,
            &input_noise,
            rules,
        );
        notes.protected.extend(protected);
        notes.declined.extend(declined);
        let (protected, declined) = softmax::refine_softmax(plan, observations, rules);
        notes.protected.extend(protected);
        notes.declined.extend(declined);
        let (protected, declined) = constants::refine_constants(model, plan, &input_noise, rules)?;
        notes.protected.extend(protected);
        notes.declined.extend(declined);
    }
    if rules.weights {
        let (protected, declined) = weights::refine_weights(model, plan, &input_noise, rules)?;
        notes.protected.extend(protected);
        notes.declined.extend(declined);
    }
    if auto && rules.outputs {
        notes.refined = logits::refine_logits(model, plan, with_ranges);
    }
    if auto || settings.fine_first.is_some() {
        let refined =
            early_layers::refine_early_layers(model, settings, plan, with_ranges, observations);
        notes.refined.extend(refined);
    }
    Ok(notes)
}
