//! Constants between the model's inputs and the first weights get 16 bits, or stay float, where 8
//! bits are too coarse.
//!
//! The divisors of a table's columns differ as much as the columns do. With one scale for all of
//! them the small ones become zero.

use super::super::QuantizeError;
use super::super::input_noise::InputNoise;
use super::super::plan::{Plan, TensorRole};
use super::super::settings::GuardSettings;
use super::super::weights::parameters;
use super::{TOLERATED_NOISE, sqnr_db, widen_or_keep_float};
use octet_graph::Model;

/// Applies the rule. Returns the notes on changed constants, and those on constants that keep their
/// type.
pub(super) fn refine_constants(
    model: &Model,
    plan: &mut Plan,
    input_noise: &InputNoise,
    rules: GuardSettings,
) -> Result<(Vec<String>, Vec<String>), QuantizeError> {
    let (mut notes, mut declined) = (Vec::new(), Vec::new());
    let own = |(name, role): &(String, TensorRole)| {
        matches!(role, TensorRole::Activation).then(|| name.clone())
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
            let params = parameters(tensor, None, &other, true)?;
            let step = params.scales.first().copied().unwrap_or(0.0);
            Ok::<f64, QuantizeError>(input_noise.of_step(&name, step.into()))
        };
        let (now, wide) = (represented.element, represented.element.with_16_bits());
        let error = added(now)?;
        if error <= TOLERATED_NOISE {
            continue;
        }
        let why = format!(
            "with {} bits the first layer's output has {:.0} dB SQNR",
            now.bits(),
            sqnr_db(error)
        );
        let suits = wide != now && added(wide)? <= TOLERATED_NOISE;
        widen_or_keep_float(plan, &name, &why, suits, rules, [&mut notes, &mut declined]);
    }
    Ok((notes, declined))
}
