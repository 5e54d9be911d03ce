//! Mixed precision: tensors that 8 bits would ruin get 16 bits or stay float.
//!
//! The rules apply to defaults only. A type that the settings choose for a tensor, a node, a scope
//! or an operator stays, and a note reports where it would have changed. Every rule but the one on
//! infinite values needs calibration statistics; ranges alone do not tell the distribution.
//! [`GuardSettings`] switches the rules one by one.

mod activations;
mod beginning;
mod constants;
mod infinite;
mod outputs;
mod ranges;
mod shares;
mod weights;

#[cfg(test)]
mod tests;

use super::QuantizeError;
use super::inlets::Additions;
use super::plan::Plan;
use super::ranges::Ranges;
use super::settings::{GuardSettings, Settings};
use crate::calibrate::Method;
use crate::graph::Model;

/// The tolerated noise-to-signal ratio of a weight, or of the output of the first weights: 25 dB
/// SQNR. A smaller error is never among the largest of a network.
const HARMLESS: f64 = 1.0 / 300.0;

fn decibel(error: f64) -> f64 {
    -10.0 * error.log10()
}

/// Gives 16 bits to a tensor whose integers are too coarse (`why`), or keeps it float.
///
/// `suits` is true where 16 bits are enough; `may` holds the allowed rules. A change adds a note to
/// the first list. A tensor that stays as it is adds a note to the second.
fn settle(
    plan: &mut Plan,
    name: &str,
    why: &str,
    suits: bool,
    may: GuardSettings,
    [said, declined]: [&mut Vec<String>; 2],
) {
    let Some(represented) = plan.representations.get_mut(name) else {
        return;
    };
    let now = represented.element;
    if represented.typed {
        declined.push(format!(
            "`{name}` keeps the type that the settings give it, though {why}"
        ));
    } else if may.finer && suits {
        said.push(format!("`{name}` has 16 bits: {why}"));
        // A new range is computed for 16 bits, because finer steps need less clipping.
        (represented.element, represented.range) = (now.with_16_bits(), None);
    } else if may.float {
        said.push(format!("`{name}` stays float: {why}"));
        plan.keep_float(name);
    } else {
        declined.push(format!(
            "`{name}` keeps {} bits, as the settings let nothing else, though {why}",
            now.bits()
        ));
    }
}

/// The notes of mixed precision, one sentence for each tensor.
#[derive(Debug, Default)]
pub(super) struct Guarded {
    /// Tensors that 8 bits would have ruined.
    pub(super) kept: Vec<String>,
    /// Tensors with 16 bits for a better result.
    pub(super) refined: Vec<String>,
    /// Tensors that need more bits but keep their type.
    pub(super) declined: Vec<String>,
}

/// Applies all rules to a plan. `found` lists the tensors with computed ranges, in execution order.
pub(super) fn guard(
    model: &Model,
    settings: &Settings,
    plan: &mut Plan,
    found: &[String],
    ranges: Ranges<'_>,
) -> Result<Guarded, QuantizeError> {
    let may = settings.guard;
    let mut guarded = Guarded::default();
    if may == GuardSettings::NONE {
        return Ok(guarded);
    }
    let uses = model.graph.uses();
    (guarded.kept, guarded.declined) =
        infinite::free_infinite(model, &uses, plan, found, ranges, may.float);
    let Ranges::Seen(observations, _) = ranges else {
        return Ok(guarded);
    };
    let is_left = |name: &&String| plan.forms.iter().any(|(form, _)| form == *name);
    let found: Vec<String> = found.iter().filter(is_left).cloned().collect();
    let found = found.as_slice();
    let additions = Additions::of(model, ranges)?;
    let auto = ranges.method(settings) == Some(Method::Auto);
    if may.ranges {
        let widened = ranges::widen(plan, found, observations);
        guarded.kept.extend(widened);
    }
    if may.finer || may.float {
        let (kept, declined) = activations::refine_activations(
            model,
            &uses,
            plan,
            found,
            observations,
            &additions,
            may,
        );
        guarded.kept.extend(kept);
        guarded.declined.extend(declined);
        let (kept, declined) = shares::refine_shares(plan, observations, may);
        guarded.kept.extend(kept);
        guarded.declined.extend(declined);
        let (kept, declined) = constants::refine_constants(model, plan, &additions, may)?;
        guarded.kept.extend(kept);
        guarded.declined.extend(declined);
    }
    if may.weights {
        let (kept, declined) = weights::refine_weights(model, &uses, plan, &additions, may)?;
        guarded.kept.extend(kept);
        guarded.declined.extend(declined);
    }
    if auto && may.outputs {
        guarded.refined = outputs::refine_outputs(model, plan, found);
    }
    if auto || settings.fine_first.is_some() {
        let refined =
            beginning::refine_beginning(model, &uses, settings, plan, found, observations);
        guarded.refined.extend(refined);
    }
    Ok(guarded)
}
