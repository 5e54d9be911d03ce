//! Values that are infinite at some places stay float.
//!
//! An attention's mask adds -∞ to the scores that mustn't count, and Softmax makes exact zeros of them. No integer is infinite: the lowest would
//! stand for them, which is the score of some place that counts, and so the masked would get as much attention as that. What was observed of
//! such a value is its finite part alone, whose range tells nothing of this.

use super::super::plan::{Plan, RangeSource};
use super::super::ranges::Ranges;
use crate::graph::{Model, Uses};

/// Frees what was infinite at some places, if the settings let it; and says so: a sentence each in the first list, in the second of those that
/// stay as they are. `found` are the tensors whose ranges were found.
pub(super) fn free_infinite(
    model: &Model,
    uses: &Uses,
    plan: &mut Plan,
    found: &[String],
    ranges: Ranges<'_>,
    may_free: bool,
) -> (Vec<String>, Vec<String>) {
    let (mut said, mut declined) = (Vec::new(), Vec::new());
    let names: Vec<String> = plan.forms.iter().map(|(name, _)| name.clone()).collect();
    for name in names {
        let (Some(represented), Some(RangeSource::Observed(source))) =
            (plan.representations.get(&name), plan.ranges.get(&name))
        else {
            continue;
        };
        let Some(why) = infinite(model, uses, source, ranges) else {
            continue;
        };
        let chosen = represented.typed || (represented.is_chosen() && !found.contains(&name));
        if may_free && !chosen {
            said.push(format!("`{name}` stays float: {why}, and no integer is"));
            plan.keep_float(&name);
        } else {
            let wanted = match chosen {
                true => "is represented as the settings have it",
                false => "becomes integers, as the settings let nothing else",
            };
            declined.push(format!(
                "`{name}` {wanted}, though {why}: its lowest or greatest integer stands for that, so that a mask of -∞ lets something through"
            ));
        }
    }
    (said, declined)
}

/// Why a value is known to be infinite at some places.
fn infinite(model: &Model, uses: &Uses, name: &str, ranges: Ranges<'_>) -> Option<String> {
    match ranges {
        Ranges::Seen(observations, _) => {
            let seen = observations.get(name)?;
            let (infinite, all) = (seen.infinite_count(), seen.count());
            (infinite > 0).then(|| format!("{infinite} of its {all} values were infinite"))
        }
        // Ranges alone don't tell; a constant does.
        Ranges::Given(_) => source(model, uses, name, FARTHEST)
            .map(|constant| format!("the constant `{constant}` makes some of it infinite")),
    }
}

/// So many nodes lie between a mask and what it masks, at most.
const FARTHEST: usize = 8;

/// The infinite constant that comes out in a value, if one does.
fn source<'a>(model: &'a Model, uses: &Uses, name: &'a str, left: usize) -> Option<&'a str> {
    if is_infinite(model, name) {
        return Some(name);
    }
    let node = &model.graph.nodes[uses.producer(name)?];
    let passes = match node.op_type.as_deref().unwrap_or_default() {
        "Add" | "Sub" | "Where" | "Concat" => node.input.len(),
        "Reshape" | "Transpose" | "Squeeze" | "Unsqueeze" | "Flatten" | "Slice" | "Expand" => 1,
        _ => 0,
    };
    let nearer = left.checked_sub(1)?;
    let mut inputs = node.input.iter().take(passes);
    inputs.find_map(|input| source(model, uses, input, nearer))
}

/// Whether a constant is infinite at some places.
fn is_infinite(model: &Model, name: &str) -> bool {
    let constant = model.graph.initializers.get(name);
    let values = constant.and_then(|tensor| tensor.to_f32().ok());
    values.is_some_and(|values| values.iter().any(|value| value.is_infinite()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::calibrate::{Observation, Range};
    use crate::graph::Model;
    use crate::onnx::schema::{NodeProto, TensorProto};
    use crate::quantize::guard::tests::{guarded_of, model, seen, typed};
    use crate::quantize::settings::{ElementType, GuardSettings};
    use crate::quantize::{Plan, Ranges, Settings, TensorSettings};

    /// What is seen of scores of which some are masked.
    fn masked() -> Observation {
        let mut masked = seen(1.0);
        masked.observe(&[f32::NEG_INFINITY; 3]);
        masked
    }

    fn forms(plan: &Plan) -> Vec<&str> {
        plan.forms.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn what_was_infinite_stays_float_with_all_that_share_its_scale() {
        let (plan, said) = guarded_of(masked(), &Settings::default());
        assert_eq!(forms(&plan), ["x", "y"]);
        let [said] = said.kept.as_slice() else {
            panic!("{said:?}")
        };
        assert!(
            said.contains("`a` stays float: 3 of its 1004 values were infinite"),
            "{said}"
        );
    }

    #[test]
    fn what_the_settings_have_stays_and_it_is_said_what_that_costs() {
        let own = |own: TensorSettings| Settings {
            tensors: [("a".to_string(), own)].into(),
            ..Settings::default()
        };
        let range = TensorSettings {
            range: Some(Range::new(-1.0, 1.0)),
            ..Default::default()
        };
        let never = Settings {
            guard: GuardSettings {
                float: false,
                ..GuardSettings::ALL
            },
            ..Settings::default()
        };
        for settings in [own(typed(ElementType::U8)), own(range), never] {
            let (plan, said) = guarded_of(masked(), &settings);
            assert_eq!(forms(&plan), ["x", "a", "b", "y"]);
            assert!(
                said.kept.is_empty() && said.declined[0].contains("a mask of -∞"),
                "{said:?}"
            );
        }
    }

    #[test]
    fn ranges_from_elsewhere_do_not_tell_but_a_constant_does() {
        for (least, left) in [
            (f32::NEG_INFINITY, vec!["y"]),
            (-1.0, vec!["x", "a", "b", "y"]),
        ] {
            let mut proto = model().to_proto();
            let graph = proto.graph.as_mut().unwrap();
            graph.node[0] = NodeProto::new("Add", "mask", &["x", "m"], &["a"]);
            let mask = TensorProto::from_f32("m", &[2], &[0.0, least]);
            graph.initializer.push(mask);
            let model = Model::from_proto(proto).unwrap();
            let mut plan = Plan::new(&model, &Settings::default()).unwrap();
            let ranges: BTreeMap<_, _> = ["x", "a", "b", "y"]
                .map(|name| (name.to_string(), Range::new(-1.0, 1.0)))
                .into();
            let given = Ranges::Given(&ranges);
            let found = plan.find_ranges(given).unwrap();
            let uses = model.graph.uses();
            let (said, _) = super::free_infinite(&model, &uses, &mut plan, &found, given, true);
            let mut forms = forms(&plan);
            forms.retain(|name| *name != "m");
            assert_eq!((forms, said.len()), (left, usize::from(least < -1.0)));
        }
    }
}
