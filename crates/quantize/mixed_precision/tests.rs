//! Tests of all rules together.

use std::collections::BTreeMap;

use super::*;
use crate::settings::{ElementType, LayerSettings, TensorSettings};
use octet_graph::Node;
use octet_onnx::schema::*;
use octet_stats::TensorStatistics;

fn value(name: &str) -> ValueInfoProto {
    let known = octet_graph::TensorType {
        element: DataType::Float,
        shape: None,
    };
    ValueInfoProto::new(name, &known)
}

/// x → Sigmoid → a → Reshape → b → Sigmoid → y
pub(crate) fn model() -> Model {
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
    Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
}

/// Statistics of a thousand values between 0 and 1, and an outlier.
pub(crate) fn seen(far: f32) -> TensorStatistics {
    let mut seen = TensorStatistics::new();
    let values: Vec<f32> = (0..1000).map(|i| i as f32 / 1000.0).chain([far]).collect();
    seen.observe(&values);
    seen
}

fn refined_far(far: f32) -> (Plan, MixedPrecisionNotes) {
    refined_with(seen(far), &Settings::default())
}

/// The plan and notes with these statistics for `a`.
pub(super) fn refined_with(
    a: TensorStatistics,
    settings: &Settings,
) -> (Plan, MixedPrecisionNotes) {
    let model = model();
    let mut plan = Plan::new(&model, settings).unwrap();
    let mut observations: BTreeMap<_, _> = ["x", "b", "y"]
        .map(|name| (name.to_string(), seen(1.0)))
        .into();
    observations.insert("a".to_string(), a);
    let ranges = ActivationRanges::Observed(&observations, Method::MinMax);
    let with_ranges = plan.find_ranges(ranges).unwrap();
    let notes = apply_mixed_precision(&model, settings, &mut plan, &with_ranges, ranges).unwrap();
    (plan, notes)
}

pub(super) fn typed(element: ElementType) -> TensorSettings {
    TensorSettings {
        element: Some(element),
        ..Default::default()
    }
}

#[test]
fn fine_activations_stay_unchanged() {
    let (plan, notes) = refined_far(2.0);
    assert!(
        notes.protected.is_empty() && notes.declined.is_empty(),
        "{notes:?}"
    );
    assert!(
        plan.representations
            .values()
            .all(|r| r.element == ElementType::U8)
    );
}

#[test]
fn coarse_activations_get_16_bits() {
    let (plan, notes) = refined_far(100.0);
    assert_eq!(plan.representations["a"].element, ElementType::U16);
    assert_eq!(plan.representations["x"].element, ElementType::U8);
    assert!(
        notes.protected.len() == 1 && notes.protected[0].contains("`a` has 16 bits"),
        "{notes:?}"
    );
}

#[test]
fn inputs_of_a_concat_are_measured_separately() {
    let mut proto = model().to_proto();
    let graph = proto.graph.as_mut().unwrap();
    // Boxes in pixels beside a few probabilities. The shortest half of all values is that of the
    // boxes.
    graph.node[1].op_type = Some("Concat".into());
    graph.node[1].input = vec!["a".into(), "x".into()];
    graph.node[1].attribute = vec![AttributeProto::int("axis", 0)];
    let model = Model::from_proto(proto).unwrap();
    let mut plan = Plan::new(&model, &Settings::default()).unwrap();
    let even = |count: usize, high: f32| {
        TensorStatistics::from_values(&Vec::from_iter(
            (0..count).map(|i| high * i as f32 / count as f32),
        ))
    };
    let (scores, boxes) = (even(500, 1.0), even(2000, 320.0));
    let mut both = boxes.clone();
    both.merge(&scores);
    let observations: BTreeMap<String, TensorStatistics> = [
        ("x", scores.clone()),
        ("a", boxes),
        ("b", both),
        ("y", scores),
    ]
    .map(|(name, seen)| (name.to_string(), seen))
    .into();
    let ranges = ActivationRanges::Observed(&observations, Method::MinMax);
    let with_ranges = plan.find_ranges(ranges).unwrap();
    let notes = apply_mixed_precision(
        &model,
        &Settings::default(),
        &mut plan,
        &with_ranges,
        ranges,
    )
    .unwrap();
    assert!(
        notes.protected.len() == 1 && notes.protected[0].contains("input `x`"),
        "{notes:?}"
    );
    assert_eq!(plan.representations["b"].element, ElementType::U16);
    assert_eq!(plan.representations["a"].element, ElementType::U8);
}

#[test]
fn a_value_without_suitable_integers_stays_float_with_all_that_share_its_scale() {
    let (plan, notes) = refined_far(-3.4e38);
    let forms: Vec<&str> = plan.forms.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(forms, ["x", "y"]);
    assert!(
        notes.protected.len() == 1 && notes.protected[0].contains("`a` stays float"),
        "{notes:?}"
    );
}

#[test]
fn a_clamp_of_a_float_value_is_restored() {
    let mut model = model();
    // x → Sigmoid → a, clipped at zero twice → c → Sigmoid → y
    let graph = &mut model.graph;
    graph.edit(1, |node| *node = Node::new("Relu", "first", &["a"], &["b"]));
    graph.insert(2, [Node::new("Clip", "second", &["b"], &["c"])]);
    graph.edit(3, |node| node.input = vec!["c".into()]);
    let known = model.graph.value_info[1].clone();
    model.graph.value_info.push(ValueInfoProto {
        name: Some("c".into()),
        ..known
    });
    let settings = Settings::default();
    let mut plan = Plan::new(&model, &settings).unwrap();
    assert_eq!(plan.removed, [1, 2].into());
    let observations: BTreeMap<_, _> = [("x", 1.0), ("c", 1e9), ("y", 1.0)]
        .map(|(name, far)| (name.to_string(), seen(far)))
        .into();
    let ranges = ActivationRanges::Observed(&observations, Method::MinMax);
    let with_ranges = plan.find_ranges(ranges).unwrap();
    apply_mixed_precision(&model, &settings, &mut plan, &with_ranges, ranges).unwrap();
    assert!(!plan.forms.iter().any(|(name, _)| name == "c"));
    assert!(plan.removed.is_empty() && plan.renamed.is_empty());
}

#[test]
fn a_range_that_clips_too_much_is_widened() {
    // Clipping a tenth at each end costs far more than the finer steps gain.
    let by = |method| Settings {
        method: Some(method),
        ..Default::default()
    };
    let even =
        TensorStatistics::from_values(&Vec::from_iter((0..10_000).map(|i| i as f32 / 10_000.0)));
    let (plan, notes) = refined_with(even.clone(), &by(Method::Percentile(80.0)));
    let range = plan.representations["a"].range.unwrap();
    assert!(range.max > 0.99, "{range:?}");
    assert!(
        notes
            .protected
            .iter()
            .any(|notes| notes.contains("`a` has the range") && notes.contains("times the least")),
        "{notes:?}"
    );
    let (_, notes) = refined_with(even, &by(Method::Percentile(99.999)));
    assert!(
        notes.protected.is_empty() && notes.declined.is_empty(),
        "{notes:?}"
    );
}

#[test]
fn logits_get_16_bits_but_images_do_not() {
    for (operator, axes, wanted) in [
        ("Softmax", 2, ElementType::U16),
        ("Sigmoid", 3, ElementType::U16),
        ("Sigmoid", 4, ElementType::U8),
    ] {
        let mut proto = model().to_proto();
        let graph = proto.graph.as_mut().unwrap();
        graph.node[0].op_type = Some("Softmax".into());
        graph.node[2].op_type = Some(operator.into());
        let known = octet_graph::TensorType {
            element: DataType::Float,
            shape: Some(vec![octet_graph::Dim::Known(1); axes]),
        };
        graph.output = vec![ValueInfoProto::new("y", &known)];
        let model = Model::from_proto(proto).unwrap();
        let mut plan = Plan::new(&model, &Settings::default()).unwrap();
        let observations = ["x", "a", "b", "y"].map(|name| (name.to_string(), seen(1.0)));
        let observations = observations.into();
        let ranges = ActivationRanges::Observed(&observations, Method::Auto);
        let with_ranges = plan.find_ranges(ranges).unwrap();
        let notes = logits::refine_logits(&model, &mut plan, &with_ranges);
        assert_eq!(plan.representations["y"].element, wanted, "{operator}");
        assert_eq!(plan.representations["a"].element, ElementType::U8);
        assert_eq!(notes.len(), usize::from(wanted == ElementType::U16));
    }
}

#[test]
fn each_rule_can_be_switched_off() {
    let with = |guard| Settings {
        guard,
        ..Default::default()
    };
    let (all, none) = (GuardSettings::ALL, GuardSettings::NONE);
    // Too coarse for 8 bits: 16 bits, else float, else a note.
    let (plan, notes) = refined_with(
        seen(100.0),
        &with(GuardSettings {
            finer: false,
            ..all
        }),
    );
    assert!(
        notes.protected[0].contains("`a` stays float")
            && !plan.forms.iter().any(|(name, _)| name == "a"),
        "{notes:?}"
    );
    let (plan, notes) = refined_with(
        seen(100.0),
        &with(GuardSettings {
            finer: false,
            float: false,
            ..all
        }),
    );
    assert_eq!(plan.representations["a"].element, ElementType::U8);
    assert!(
        notes.protected.is_empty() && notes.declined.is_empty(),
        "{notes:?}"
    );
    // Too coarse for 16 bits: float, else a note.
    let (plan, notes) = refined_with(
        seen(-3.4e38),
        &with(GuardSettings {
            float: false,
            ..all
        }),
    );
    assert_eq!(plan.representations["a"].element, ElementType::U8);
    assert!(
        notes.protected.is_empty()
            && notes.declined[0].contains("keeps 8 bits because the settings allow no other type"),
        "{notes:?}"
    );
    let (_, notes) = refined_with(seen(100.0), &with(none));
    assert!(notes.protected.is_empty() && notes.refined.is_empty() && notes.declined.is_empty());
}

#[test]
fn a_chosen_type_stays_with_a_note() {
    let layer = LayerSettings {
        activations: typed(ElementType::U8),
        ..Default::default()
    };
    for settings in [
        Settings {
            tensors: [("a".to_string(), typed(ElementType::U8))].into(),
            ..Default::default()
        },
        Settings {
            by_operator: [("Sigmoid".to_string(), layer)].into(),
            ..Default::default()
        },
    ] {
        let (plan, notes) = refined_with(seen(100.0), &settings);
        assert_eq!(plan.representations["a"].element, ElementType::U8);
        assert!(
            notes.protected.is_empty()
                && notes.declined[0].contains("`a` keeps its type from the settings"),
            "{notes:?}"
        );
    }
    // A default for all activations does not fix the type of one tensor.
    let settings = Settings {
        activations: typed(ElementType::I8),
        ..Default::default()
    };
    assert_eq!(
        refined_with(seen(100.0), &settings).0.representations["a"].element,
        ElementType::I16
    );
}

#[test]
fn the_minimum_for_four_bits_is_proportional() {
    let settings = Settings {
        activations: typed(ElementType::U4),
        ..Default::default()
    };
    assert_eq!(
        refined_with(seen(2.0), &settings).0.representations["a"].element,
        ElementType::U4
    );
    assert_eq!(
        refined_with(seen(100.0), &settings).0.representations["a"].element,
        ElementType::U16
    );
}
