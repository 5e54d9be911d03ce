//! Constants that the model's inputs meet before any weights get 16 bits, or stay float, where eight would leave too little.
//!
//! What a table's columns are divided by is as unlike as the columns are, and with one scale the small ones become zero.

use super::super::QuantizeError;
use super::super::inlets::Additions;
use super::super::plan::{Plan, TensorRole};
use super::super::settings::GuardSettings;
use super::super::weights::parameters;
use super::{HARMLESS, decibel, settle};
use crate::graph::Model;

/// Widens or frees such constants; and says so: a sentence each in the first list, in the second of those that stay as they are.
pub(super) fn refine_constants(
    model: &Model,
    plan: &mut Plan,
    additions: &Additions,
    may: GuardSettings,
) -> Result<(Vec<String>, Vec<String>), QuantizeError> {
    let (mut said, mut declined) = (Vec::new(), Vec::new());
    let own = |(name, form): &(String, TensorRole)| {
        matches!(form, TensorRole::Activation).then(|| name.clone())
    };
    for name in plan.forms.iter().filter_map(own).collect::<Vec<_>>() {
        let (Some(tensor), Some(represented)) = (
            model.graph.initializers.get(&name),
            plan.representations.get(&name),
        ) else {
            continue;
        };
        if represented.is_chosen() || represented.element.bits() < 8 {
            continue;
        }
        let added = |element| {
            let mut other = represented.clone();
            other.element = element;
            let found = parameters(tensor, None, &other, true)?;
            let step = found.scales.first().copied().unwrap_or(0.0);
            Ok::<f64, QuantizeError>(additions.of_step(&name, step.into()))
        };
        let (now, wide) = (represented.element, represented.element.with_16_bits());
        let error = added(now)?;
        if error <= HARMLESS {
            continue;
        }
        let why = format!(
            "with {} bits what the first weights make has {:.0} dB of signal over noise",
            now.bits(),
            decibel(error)
        );
        let suits = wide != now && added(wide)? <= HARMLESS;
        settle(plan, &name, &why, suits, may, [&mut said, &mut declined]);
    }
    Ok((said, declined))
}
