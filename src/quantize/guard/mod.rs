//! What keeps a network whole, where the settings speak in general: a type that was chosen for a tensor, a node, a scope or an operator
//! stays as it is, and a note says so where it would have been changed.
//!
//! All but one thing needs a calibration; ranges alone don't tell where the values lie. Each thing can be switched off ([`GuardSettings`]).

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

/// A smaller error than this part of a weight, or of what one makes, is none of the large ones of a network: 25 dB below it.
const HARMLESS: f64 = 1.0 / 300.0;

fn decibel(error: f64) -> f64 {
    -10.0 * error.log10()
}

/// Gives a tensor with too few integers, for this reason, 16 bits where these suit it, or takes the integers from it, as far as the
/// settings let it; and says so in the first list, or in the second where it stays as it is.
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
        // The range of 16 bits is another: less need be cut off.
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

/// What was done, and what not: a sentence each.
#[derive(Debug, Default)]
pub(super) struct Guarded {
    /// Tensors that were kept from being ruined.
    pub(super) kept: Vec<String>,
    /// Those that are finer for a better result.
    pub(super) refined: Vec<String>,
    /// Those that stay as they are though they need more.
    pub(super) declined: Vec<String>,
}

/// Makes finer what needs it. `found` are the tensors whose ranges were found, in the order they are made.
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
