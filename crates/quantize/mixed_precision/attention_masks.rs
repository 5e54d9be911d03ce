//! Values that are infinite somewhere, attention masks above all, stay float.
//!
//! A mask adds -∞ to the scores of masked positions, and Softmax turns these into exact zeros. No
//! integer represents -∞. The lowest integer would stand for it, which is also the score of an
//! unmasked position, so a masked position would get as much attention. Statistics cover finite
//! values only, so the range does not show this.

use super::super::plan::{Plan, RangeOrigin};
use super::super::ranges::ActivationRanges;
use octet_graph::Model;
use octet_graph::operators::{Operator, Property};

/// Keeps infinite values float if the settings allow it. Returns the notes on those, and on values
/// that become integers nevertheless. `with_ranges` lists the tensors with computed ranges.
pub(crate) fn keep_infinite_float(
    model: &Model,
    plan: &mut Plan,
    with_ranges: &[String],
    ranges: ActivationRanges<'_>,
    may_keep_float: bool,
) -> (Vec<String>, Vec<String>) {
    let (mut notes, mut declined) = (Vec::new(), Vec::new());
    let names: Vec<String> = plan.forms.iter().map(|(name, _)| name.clone()).collect();
    for name in names {
        let (Some(represented), Some(RangeOrigin::Observed(source))) =
            (plan.representations.get(&name), plan.ranges.get(&name))
        else {
            continue;
        };
        let Some(why) = infinite(model, source, ranges) else {
            continue;
        };
        let chosen = represented.typed || (represented.is_chosen() && !with_ranges.contains(&name));
        if may_keep_float && !chosen {
            notes.push(format!(
                "`{name}` stays float: {why}, which no integer represents"
            ));
            plan.keep_float(&name);
        } else {
            let wanted = match chosen {
                true => "keeps its type from the settings",
                false => "becomes integers because the settings do not allow float",
            };
            declined.push(format!(
                "`{name}` {wanted}, although {why}: its lowest or highest integer stands for infinity, so a mask of -∞ lets some attention through"
            ));
        }
    }
    (notes, declined)
}

/// The reason why a value is infinite somewhere, if it is.
fn infinite(model: &Model, name: &str, ranges: ActivationRanges<'_>) -> Option<String> {
    match ranges {
        ActivationRanges::Observed(observations, _) => {
            let seen = observations.get(name)?;
            let (infinite, all) = (seen.infinite_count(), seen.count());
            (infinite > 0).then(|| format!("{infinite} of its {all} values were infinite"))
        }
        // Provided ranges do not show infinities; an infinite constant among the sources does.
        ActivationRanges::Provided(_) => source(model, name, MAX_DISTANCE)
            .map(|constant| format!("the constant `{constant}` makes some of its values infinite")),
    }
}

/// The maximum number of nodes between a mask and the value that it masks.
const MAX_DISTANCE: usize = 8;

/// The infinite constant that a value contains, if any.
fn source<'a>(model: &'a Model, name: &'a str, left: usize) -> Option<&'a str> {
    if is_infinite(model, name) {
        return Some(name);
    }
    let node = &model.graph.nodes()[model.graph.producer(name)?];
    let operator = Operator::of(node);
    let nearer = left.checked_sub(1)?;
    if !operator.has(Property::PassesInfinity) {
        return None;
    }
    let inputs = node.input.iter().enumerate();
    let mut data = inputs.filter(|(slot, _)| !operator.shape_slots.contains(slot));
    data.find_map(|(_, input)| source(model, input, nearer))
}

/// True if a constant has an infinite element.
fn is_infinite(model: &Model, name: &str) -> bool {
    let constant = model.graph.initializers.get(name);
    let values = constant.and_then(|tensor| tensor.to_f32().ok());
    values.is_some_and(|values| values.iter().any(|value| value.is_infinite()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::mixed_precision::tests::{model, refined_with, seen, typed};
    use crate::settings::{ElementType, GuardSettings};
    use crate::{ActivationRanges, Plan, Settings, TensorSettings};
    use octet_graph::Model;
    use octet_onnx::schema::{NodeProto, TensorProto};
    use octet_stats::{Range, TensorStatistics};

    /// The statistics of scores, three of them masked.
    fn masked() -> TensorStatistics {
        let mut masked = seen(1.0);
        masked.observe(&[f32::NEG_INFINITY; 3]);
        masked
    }

    fn forms(plan: &Plan) -> Vec<&str> {
        plan.forms.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn infinite_values_stay_float_with_all_that_share_their_scale() {
        let (plan, notes) = refined_with(masked(), &Settings::default());
        assert_eq!(forms(&plan), ["x", "y"]);
        let [notes] = notes.protected.as_slice() else {
            panic!("{notes:?}")
        };
        assert!(
            notes.contains("`a` stays float: 3 of its 1004 values were infinite"),
            "{notes}"
        );
    }

    #[test]
    fn a_chosen_type_of_an_infinite_value_stays_with_a_note() {
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
            let (plan, notes) = refined_with(masked(), &settings);
            assert_eq!(forms(&plan), ["x", "a", "b", "y"]);
            assert!(
                notes.protected.is_empty() && notes.declined[0].contains("a mask of -∞"),
                "{notes:?}"
            );
        }
    }

    #[test]
    fn with_provided_ranges_an_infinite_constant_is_detected() {
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
            let provided = ActivationRanges::Provided(&ranges);
            let with_ranges = plan.find_ranges(provided).unwrap();
            let (notes, _) =
                super::keep_infinite_float(&model, &mut plan, &with_ranges, provided, true);
            let mut forms = forms(&plan);
            forms.retain(|name| *name != "m");
            assert_eq!((forms, notes.len()), (left, usize::from(least < -1.0)));
        }
    }
}
