//! What a Softmax makes of many is small: of a thousand like shares none reaches half a step of eight bits from 0 to 1.
//!
//! Its range is 0 to 1, whatever was seen, so no range tells of it. That most shares are next to nothing is as it should be; asked is
//! what rounding leaves of all of them.

use super::super::plan::{Plan, RangeSource};
use super::super::settings::GuardSettings;
use super::settle;
use crate::calibrate::{Observations, Range};

/// A larger error than this part of all shares, and little is left of them: 10 dB.
const RUINED: f64 = 0.1;

/// Widens or frees the shares that would be lost, and says so: a sentence each in the first list, in the second of those that stay as they are.
pub(super) fn refine_shares(
    plan: &mut Plan,
    observations: &Observations,
    may: GuardSettings,
) -> (Vec<String>, Vec<String>) {
    let (mut said, mut declined) = (Vec::new(), Vec::new());
    let quantized: Vec<String> = plan.forms.iter().map(|(name, _)| name.clone()).collect();
    for name in &quantized {
        let (Some(&RangeSource::Fixed(min, max)), Some(represented), Some(seen)) = (
            plan.ranges.get(name),
            plan.representations.get(name),
            observations.get(name),
        ) else {
            continue;
        };
        let mut wide = represented.clone();
        wide.element = represented.element.with_16_bits();
        let targets = [represented.target(), wide.target()];
        // Rounded to nothing but zero, a share loses all it is.
        let all = seen.squared_error(Range::new(0.0, 0.0), &targets[0]);
        let errors = targets.map(|target| seen.squared_error(Range::new(min, max), &target));
        let (Some(all), [Some(now), Some(finer)]) = (all, errors) else {
            continue;
        };
        if represented.is_chosen() || now <= RUINED * all {
            continue;
        }
        let why = format!(
            "its shares are so small that its integers would have {:.0} dB of signal over noise",
            10.0 * (all / now).log10()
        );
        let suits = wide.element != represented.element && finer <= RUINED * all;
        settle(plan, name, &why, suits, may, [&mut said, &mut declined]);
    }
    (said, declined)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tests::{model, seen};
    use super::super::{Guarded, guard};
    use super::*;
    use crate::calibrate::{Method, Observation};
    use crate::graph::Model;
    use crate::quantize::ranges::Ranges;
    use crate::quantize::settings::{ElementType, Settings};

    /// x → Softmax → a → …, which makes these shares.
    fn softmax_of(shares: &[f32], settings: &Settings) -> (ElementType, bool, Guarded) {
        let mut proto = model().to_proto();
        proto.graph.as_mut().unwrap().node[0].op_type = Some("Softmax".into());
        let model = Model::from_proto(proto).unwrap();
        let mut plan = Plan::new(&model, settings).unwrap();
        let mut observations: BTreeMap<_, _> = ["x", "b", "y"]
            .map(|name| (name.to_string(), seen(1.0)))
            .into();
        observations.insert("a".to_string(), Observation::from_values(shares));
        let ranges = Ranges::Seen(&observations, Method::MinMax);
        let found = plan.find_ranges(ranges).unwrap();
        let said = guard(&model, settings, &mut plan, &found, ranges).unwrap();
        let quantized = plan.forms.iter().any(|(name, _)| name == "a");
        (plan.representations["a"].element, quantized, said)
    }

    #[test]
    fn shares_that_eight_bits_would_lose_get_16() {
        let even: Vec<f32> = (0..1000)
            .map(|i| (0.5 + i as f32 / 1000.0) / 1000.0)
            .collect();
        let (element, _, said) = softmax_of(&even, &Settings::default());
        assert_eq!(element, ElementType::U16);
        assert!(
            said.kept[0].contains("`a` has 16 bits: its shares are so small"),
            "{said:?}"
        );
        // A few that are large carry all there is, and most are next to nothing, as it should be.
        let sharp: Vec<f32> = (0..1000)
            .map(|i| if i % 100 == 0 { 0.9 } else { 1e-4 })
            .collect();
        let (element, _, said) = softmax_of(&sharp, &Settings::default());
        assert_eq!((element, said.kept.len()), (ElementType::U8, 0));
        // So few that 16 bits lose them, too.
        let lost: Vec<f32> = even.iter().map(|share| share * 1e-3).collect();
        let (_, quantized, said) = softmax_of(&lost, &Settings::default());
        assert!(
            !quantized && said.kept[0].contains("stays float"),
            "{said:?}"
        );
        let off = Settings {
            guard: GuardSettings::NONE,
            ..Default::default()
        };
        assert_eq!(softmax_of(&even, &off).0, ElementType::U8);
    }
}
