//! What keeps a network whole: ranges that cut off too much are widened, and tensors whose integers would be too
//! coarse get more bits, or stay float.
//!
//! A method may cut off more than it gains: that shows in the error the range is expected to make, against the least that
//! any range makes.
//!
//! Of each activation is asked how many integers its bulk has: half of its values, where they lie closest.
//! A handful can't carry what a layer found, however small the error of the few large values is. What a Concat
//! joins is asked for part by part: boxes in pixels leave nothing of probabilities.

use rayon::prelude::*;

use super::plan::{Plan, RangeSource};
use super::ranges::Ranges;
use super::settings::ElementType;
use crate::calibrate::{Bulk, Method, Observations, Range};
use crate::graph::Model;

/// Fewer steps than this for the bulk of a tensor are too few. Of the corpus, six is what brings every network
/// back that eight bits ruin, and leaves those alone that they don't (docs/accuracy.md).
const ENOUGH: f64 = 6.0;
/// Of a part of what a Concat joins: less than this, and nothing is left of it. (Parts of unlike size are common
/// and do no harm.)
const ENOUGH_OF_A_PART: f64 = 1.0;

/// Outputs with more axes than these (batch, position, class) are images.
const MOST_AXES: usize = 3;

/// How many times the least expected squared error a range may make by what it cuts off: 3 dB.
const FAR_FROM_THE_LEAST: f64 = 2.0;

/// Widens or frees what of these tensors, whose ranges are found, would be too coarse, and says so: a sentence each.
/// Needs a calibration; ranges alone don't tell where the values lie.
pub(super) fn guard(
    model: &Model,
    plan: &mut Plan,
    found: &[String],
    ranges: Ranges<'_>,
) -> Vec<String> {
    let Ranges::Seen(observations, _) = ranges else {
        return Vec::new();
    };
    let mut said = widen(plan, found, observations);
    let uses = model.graph.uses();
    for name in found {
        let (Some(represented), Some(RangeSource::Observed(source))) =
            (plan.representations.get(name), plan.ranges.get(name))
        else {
            continue;
        };
        let joined = uses.producer(name).map(|node| &model.graph.nodes[node]);
        let parts = joined
            .filter(|node| node.is("Concat"))
            .map_or(&[][..], |node| &node.input);
        let bulk_of = |value: &String| observations.get(value).and_then(|seen| seen.bulk());
        let whole = bulk_of(source).map(|bulk| (bulk, source, ENOUGH));
        let parts = parts
            .iter()
            .filter_map(|part| Some((bulk_of(part)?, part, ENOUGH_OF_A_PART)));
        // That which has the least of what it needs.
        let found = whole.into_iter().chain(parts).min_by(|one, other| {
            let share = |(bulk, _, enough): &(Bulk, &String, f64)| bulk.width / enough;
            share(one).total_cmp(&share(other))
        });
        let Some((bulk, of, enough)) = found else {
            continue;
        };
        let Some(range) = represented.range else {
            continue;
        };
        let steps = |element: ElementType| {
            let (low, high) = (f64::from(range.min.min(0.0)), f64::from(range.max.max(0.0)));
            let mut wider = represented.clone();
            wider.element = element;
            let target = wider.target();
            let integers = f64::from(target.high) - f64::from(target.low);
            bulk.width / ((high - low) / integers)
        };
        let (now, wide) = (represented.element, represented.element.with_16_bits());
        if steps(now) >= enough {
            continue;
        }
        let whose = match of == source {
            true => "its values".to_string(),
            false => format!("the values of its part `{of}`"),
        };
        let why = format!(
            "its range, {} to {}, would leave {:.2} integers to half of {whose}",
            range.min,
            range.max,
            steps(now)
        );
        if bulk.resolved && steps(wide) >= enough {
            said.push(format!("`{name}` has 16 bits: {why}"));
            if let Some(represented) = plan.representations.get_mut(name) {
                // The range of 16 bits is another: less need be cut off.
                (represented.element, represented.range) = (wide, None);
            }
        } else {
            said.push(format!("`{name}` stays float: {why}"));
            plan.free(name);
        }
    }
    said
}

/// Gives 16 bits to the scores that the model ends in, and says so: a sentence each. In 256 steps two classes tie, and
/// rounding a last Softmax is the largest error of many networks that eight bits suit; nothing reads these integers but
/// the DequantizeLinear behind them. Images stay as they are: there each value is one of many, and the operator that
/// makes them is most of the work. `found` are the tensors whose ranges were found.
pub(super) fn refine_outputs(model: &Model, plan: &mut Plan, found: &[String]) -> Vec<String> {
    let mut said = Vec::new();
    let outputs = model.graph.outputs.iter();
    for name in outputs.filter_map(|output| output.name.as_ref()) {
        let shape = model.graph.tensor_type(name).and_then(|t| t.shape);
        let scores = shape.is_some_and(|shape| shape.len() <= MOST_AXES);
        let quantized = plan.forms.iter().any(|(form, _)| form == name);
        let is_found = found.contains(name);
        let fixed = matches!(plan.ranges.get(name), Some(RangeSource::Fixed(..)));
        let Some(represented) = plan.representations.get_mut(name) else {
            continue;
        };
        let free = is_found || (fixed && !represented.is_chosen());
        let wide = represented.element.with_16_bits();
        if scores && quantized && free && represented.element != wide {
            represented.element = wide;
            if is_found {
                represented.range = None;
            }
            said.push(format!(
                "`{name}` has 16 bits: the model ends in it, and scores that are near each other would tie in 256 steps"
            ));
        }
    }
    said
}

/// Gives the range that the method `auto` finds to tensors of whose values theirs cuts off too much.
fn widen(plan: &mut Plan, found: &[String], observations: &Observations) -> Vec<String> {
    let wider = |name: &String| -> Option<(Range, f64)> {
        let (represented, Some(RangeSource::Observed(source))) =
            (plan.representations.get(name)?, plan.ranges.get(name))
        else {
            return None;
        };
        let (seen, range, target) = (
            observations.get(source)?,
            represented.range?,
            represented.target(),
        );
        if range.min <= seen.min()? && range.max >= seen.max()? {
            return None;
        }
        let range_by = |method: Method| method.range(seen, &target).ok();
        let error_of = |range: Range| seen.squared_error(range, &target);
        let (error, least) = (error_of(range)?, error_of(range_by(Method::Mse)?)?);
        if error <= FAR_FROM_THE_LEAST * least {
            return None;
        }
        let wider = range_by(Method::Auto)?;
        Some((wider, error / least))
    };
    let widened: Vec<(&String, Range, f64)> = found
        .par_iter()
        .filter_map(|name| wider(name).map(|(range, times)| (name, range, times)))
        .collect();
    let widened = widened.into_iter().filter_map(|(name, range, times)| {
        let represented = plan.representations.get_mut(name)?;
        let cut = represented.range.replace(range)?;
        Some(format!(
            "`{name}` has the range {} to {}: {} to {} would cut off so much that the expected error is {times:.1} times the least",
            range.min, range.max, cut.min, cut.max
        ))
    });
    widened.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::calibrate::Observation;
    use crate::onnx::schema::*;
    use crate::quantize::Settings;

    fn value(name: &str) -> ValueInfoProto {
        let known = crate::graph::TensorType {
            element: DataType::Float,
            shape: None,
        };
        ValueInfoProto::of(name, &known)
    }

    /// x → Sigmoid → a → Reshape → b → Sigmoid → y
    fn model() -> Model {
        let node = |operator: &str, inputs: &[&str], output: &str| NodeProto {
            op_type: Some(operator.into()),
            input: inputs.iter().map(ToString::to_string).collect(),
            output: vec![output.into()],
            ..Default::default()
        };
        let graph = GraphProto {
            node: vec![
                node("Sigmoid", &["x"], "a"),
                node("Reshape", &["a", "shape"], "b"),
                node("Sigmoid", &["b"], "y"),
            ],
            initializer: vec![TensorProto::from_raw(
                "shape",
                DataType::Int64,
                &[1],
                (-1i64).to_le_bytes().to_vec().into(),
            )],
            input: vec![value("x")],
            output: vec![value("y")],
            value_info: vec![value("a"), value("b")],
            ..Default::default()
        };
        Model::from_proto(ModelProto::of_graph(graph, 17)).unwrap()
    }

    /// A thousand values between 0 and 1, and one far off.
    fn seen(far: f32) -> Observation {
        let mut seen = Observation::new();
        let values: Vec<f32> = (0..1000).map(|i| i as f32 / 1000.0).chain([far]).collect();
        seen.observe(&values);
        seen
    }

    fn guarded(far: f32) -> (Plan, Vec<String>) {
        guarded_of(seen(far), Method::MinMax)
    }

    /// With these values for `a`.
    fn guarded_of(a: Observation, method: Method) -> (Plan, Vec<String>) {
        let model = model();
        let mut plan = Plan::new(&model, &Settings::default()).unwrap();
        let mut observations: BTreeMap<_, _> = ["x", "b", "y"]
            .map(|name| (name.to_string(), seen(1.0)))
            .into();
        observations.insert("a".to_string(), a);
        let ranges = Ranges::Seen(&observations, method);
        let found = plan.find_ranges(ranges).unwrap();
        let said = guard(&model, &mut plan, &found, ranges);
        (plan, said)
    }

    #[test]
    fn what_is_fine_enough_is_left_alone() {
        let (plan, said) = guarded(2.0);
        assert!(said.is_empty(), "{said:?}");
        assert!(
            plan.representations
                .values()
                .all(|r| r.element == ElementType::U8)
        );
    }

    #[test]
    fn what_is_too_coarse_gets_16_bits() {
        let (plan, said) = guarded(100.0);
        assert_eq!(plan.representations["a"].element, ElementType::U16);
        assert_eq!(plan.representations["x"].element, ElementType::U8);
        assert!(
            said.len() == 1 && said[0].contains("`a` has 16 bits"),
            "{said:?}"
        );
    }

    #[test]
    fn a_range_that_cuts_off_too_much_is_widened() {
        // Cutting a tenth off each side costs far more than the finer steps gain.
        let even = Observation::of(&Vec::from_iter((0..10_000).map(|i| i as f32 / 10_000.0)));
        let (plan, said) = guarded_of(even.clone(), Method::Percentile(80.0));
        let range = plan.representations["a"].range.unwrap();
        assert!(range.max > 0.99, "{range:?}");
        assert!(
            said.iter()
                .any(|said| said.contains("`a` has the range") && said.contains("times the least")),
            "{said:?}"
        );
        let (_, said) = guarded_of(even, Method::Percentile(99.999));
        assert!(said.is_empty(), "{said:?}");
    }

    #[test]
    fn what_a_concat_joins_is_judged_part_by_part() {
        let mut proto = model().to_proto();
        let graph = proto.graph.as_mut().unwrap();
        // Boxes in pixels beside a few probabilities: the bulk of all is that of the boxes.
        graph.node[1].op_type = Some("Concat".into());
        graph.node[1].input = vec!["a".into(), "x".into()];
        graph.node[1].attribute = vec![AttributeProto::int("axis", 0)];
        let model = Model::from_proto(proto).unwrap();
        let mut plan = Plan::new(&model, &Settings::default()).unwrap();
        let even = |count: usize, high: f32| {
            let seen = Observation::of(&Vec::from_iter(
                (0..count).map(|i| high * i as f32 / count as f32),
            ));
            seen
        };
        let (scores, boxes) = (even(500, 1.0), even(2000, 320.0));
        let mut both = boxes.clone();
        both.merge(&scores);
        let observations: BTreeMap<String, Observation> = [
            ("x", scores.clone()),
            ("a", boxes),
            ("b", both),
            ("y", scores),
        ]
        .map(|(name, seen)| (name.to_string(), seen))
        .into();
        let ranges = Ranges::Seen(&observations, Method::MinMax);
        let found = plan.find_ranges(ranges).unwrap();
        let said = guard(&model, &mut plan, &found, ranges);
        assert!(said.len() == 1 && said[0].contains("part `x`"), "{said:?}");
        assert_eq!(plan.representations["b"].element, ElementType::U16);
        assert_eq!(plan.representations["a"].element, ElementType::U8);
    }

    #[test]
    fn scores_that_come_out_are_finer_than_what_is_inside_and_than_images() {
        for (operator, axes, wanted) in [
            ("Softmax", 2, ElementType::U16),
            ("Sigmoid", 3, ElementType::U16),
            ("Sigmoid", 4, ElementType::U8),
        ] {
            let mut proto = model().to_proto();
            let graph = proto.graph.as_mut().unwrap();
            graph.node[0].op_type = Some("Softmax".into());
            graph.node[2].op_type = Some(operator.into());
            let known = crate::graph::TensorType {
                element: DataType::Float,
                shape: Some(vec![crate::graph::Dim::Known(1); axes]),
            };
            graph.output = vec![ValueInfoProto::of("y", &known)];
            let model = Model::from_proto(proto).unwrap();
            let mut plan = Plan::new(&model, &Settings::default()).unwrap();
            let observations = ["x", "a", "b", "y"].map(|name| (name.to_string(), seen(1.0)));
            let observations = observations.into();
            let ranges = Ranges::Seen(&observations, Method::Auto);
            let found = plan.find_ranges(ranges).unwrap();
            let said = refine_outputs(&model, &mut plan, &found);
            assert_eq!(plan.representations["y"].element, wanted, "{operator}");
            assert_eq!(plan.representations["a"].element, ElementType::U8);
            assert_eq!(said.len(), usize::from(wanted == ElementType::U16));
        }
    }

    #[test]
    fn what_no_integers_suit_stays_float_with_all_that_share_its_scale() {
        let (plan, said) = guarded(-3.4e38);
        let forms: Vec<&str> = plan.forms.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(forms, ["x", "y"]);
        assert!(
            said.len() == 1 && said[0].contains("`a` stays float"),
            "{said:?}"
        );
    }
}
