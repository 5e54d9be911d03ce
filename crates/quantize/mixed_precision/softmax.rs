//! Softmax outputs over many classes get 16 bits where 8 bits would round them to zero.
//!
//! With a thousand equal classes, no output is half a step of 8 bits from 0 to 1. The range is
//! fixed at 0 to 1, so it does not show this. Most outputs of a Softmax may well be almost zero, so
//! the measure is the error of all of them together.

use super::super::plan::{Plan, RangeOrigin};
use super::super::settings::GuardSettings;
use super::widen_or_keep_float;
use octet_stats::{CalibrationStatistics, Range};

/// The maximum noise-to-signal ratio: 10 dB SQNR. Beyond it little of the signal is left.
const MAX_NOISE: f64 = 0.1;

/// Applies the rule to all values of a fixed range. Returns the notes on changed values, and those
/// on values that keep their type.
pub(super) fn refine_softmax(
    plan: &mut Plan,
    observations: &CalibrationStatistics,
    rules: GuardSettings,
) -> (Vec<String>, Vec<String>) {
    let (mut notes, mut declined) = (Vec::new(), Vec::new());
    let quantized: Vec<String> = plan.forms.iter().map(|(name, _)| name.clone()).collect();
    for name in &quantized {
        let (Some(&RangeOrigin::Fixed(min, max)), Some(represented), Some(seen)) = (
            plan.ranges.get(name),
            plan.representations.get(name),
            observations.get(name),
        ) else {
            continue;
        };
        let mut wide = represented.clone();
        wide.element = represented.element.with_16_bits();
        let targets = [represented.target(), wide.target()];
        // The energy of the signal equals the error of rounding everything to zero.
        let all = seen.squared_error(Range::new(0.0, 0.0), &targets[0]);
        let errors = targets.map(|target| seen.squared_error(Range::new(min, max), &target));
        let (Some(all), [Some(now), Some(finer)]) = (all, errors) else {
            continue;
        };
        if represented.is_chosen() || now <= MAX_NOISE * all {
            continue;
        }
        let why = format!(
            "its values are so small that its integers would have {:.0} dB SQNR",
            10.0 * (all / now).log10()
        );
        let suits = wide.element != represented.element && finer <= MAX_NOISE * all;
        widen_or_keep_float(plan, name, &why, suits, rules, [&mut notes, &mut declined]);
    }
    (notes, declined)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tests::{model, seen};
    use super::super::{MixedPrecisionNotes, apply_mixed_precision};
    use super::*;
    use crate::ranges::ActivationRanges;
    use crate::settings::{ElementType, Settings};
    use octet_graph::Model;
    use octet_stats::{Method, TensorStatistics};

    /// x → Softmax → a → …, with these values for `a`.
    fn softmax_of(shares: &[f32], settings: &Settings) -> (ElementType, bool, MixedPrecisionNotes) {
        let mut proto = model().to_proto();
        proto.graph.as_mut().unwrap().node[0].op_type = Some("Softmax".into());
        let model = Model::from_proto(proto).unwrap();
        let mut plan = Plan::new(&model, settings).unwrap();
        let mut observations: BTreeMap<_, _> = ["x", "b", "y"]
            .map(|name| (name.to_string(), seen(1.0)))
            .into();
        observations.insert("a".to_string(), TensorStatistics::from_values(shares));
        let ranges = ActivationRanges::Observed(&observations, Method::MinMax);
        let with_ranges = plan.find_ranges(ranges).unwrap();
        let notes =
            apply_mixed_precision(&model, settings, &mut plan, &with_ranges, ranges).unwrap();
        let quantized = plan.forms.iter().any(|(name, _)| name == "a");
        (plan.representations["a"].element, quantized, notes)
    }

    #[test]
    fn softmax_outputs_that_8_bits_lose_get_16() {
        let even: Vec<f32> = (0..1000)
            .map(|i| (0.5 + i as f32 / 1000.0) / 1000.0)
            .collect();
        let (element, _, notes) = softmax_of(&even, &Settings::default());
        assert_eq!(element, ElementType::U16);
        assert!(
            notes.protected[0].contains("`a` has 16 bits: its values are so small"),
            "{notes:?}"
        );
        // A few large values carry the signal. The many small ones may become zero.
        let sharp: Vec<f32> = (0..1000)
            .map(|i| if i % 100 == 0 { 0.9 } else { 1e-4 })
            .collect();
        let (element, _, notes) = softmax_of(&sharp, &Settings::default());
        assert_eq!((element, notes.protected.len()), (ElementType::U8, 0));
        // Values too small for 16 bits as well.
        let lost: Vec<f32> = even.iter().map(|share| share * 1e-3).collect();
        let (_, quantized, notes) = softmax_of(&lost, &Settings::default());
        assert!(
            !quantized && notes.protected[0].contains("stays float"),
            "{notes:?}"
        );
        let off = Settings {
            guard: GuardSettings::NONE,
            ..Default::default()
        };
        assert_eq!(softmax_of(&even, &off).0, ElementType::U8);
    }
}
