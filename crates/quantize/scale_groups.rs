//! The tensors of a plan by the scale that they share: the units whose bits can be chosen one by
//! one. A search under a budget takes its candidates from here.

use super::mixed_precision::keep_infinite_float;
use super::plan::{FusedNodes, Plan, TensorRole};
use super::ranges::ActivationRanges;
use super::settings::ElementType;
use super::{QuantizeError, Settings};
use octet_graph::Model;

/// Tensors with one scale, named after the tensor that owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleGroup {
    /// The tensor that owns the scale. Settings of this tensor apply to the group.
    pub name: String,
    /// True for a weight, whose channels may have a scale each.
    pub is_weight: bool,
    /// True for a constant; its integers are in the file.
    pub is_constant: bool,
    /// All tensors of the group, the owner first.
    pub members: Vec<String>,
    /// The nodes that read a weight and have a bias, with the bias. The scale of such a bias
    /// follows from that of the weight.
    pub biases: Vec<(usize, String)>,
    /// The integer type by the settings, before mixed precision.
    pub element: ElementType,
    /// True where the settings choose the type, range or scale, so that a search leaves it alone.
    pub is_fixed: bool,
}

/// The groups of a model, and the tensors that no integers can represent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScaleGroups {
    /// Groups in the order of the plan.
    pub groups: Vec<ScaleGroup>,
    /// Tensors that stay float because some of their values are infinite.
    pub infinite: Vec<String>,
    /// Nodes that are quantized, by their index.
    pub quantized: Vec<usize>,
    /// Nodes that are quantized together.
    pub fused: Vec<FusedNodes>,
}

/// Lists the groups of a prepared model in the static scheme.
pub fn scale_groups(
    model: &Model,
    settings: &Settings,
    ranges: ActivationRanges<'_>,
) -> Result<ScaleGroups, QuantizeError> {
    let mut plan = Plan::new(model, settings)?;
    let calibrated = plan.find_ranges(ranges)?;
    plan.keep_chosen_float(settings);
    let before: Vec<String> = plan.forms.iter().map(|(name, _)| name.clone()).collect();
    keep_infinite_float(model, &mut plan, &calibrated, ranges, settings.guard.float);
    let is_left = |name: &String| plan.forms.iter().any(|(left, _)| left == name);
    let infinite = before.iter().filter(|name| !is_left(name)).cloned();
    let infinite = infinite.collect();
    let chosen = |name: &str| settings.tensors.get(name);
    let mut groups = Vec::new();
    for (name, role) in &plan.forms {
        let Some(represented) = plan.representations.get(name) else {
            continue;
        };
        if matches!(role, TensorRole::Shared(_)) {
            continue;
        }
        let shares = plan.forms.iter().filter(|(other, role)| {
            matches!(role, TensorRole::Shared(_)) && plan.scale_owners.get(other) == Some(name)
        });
        let members = std::iter::once(name.clone());
        let members = members.chain(shares.map(|(other, _)| other.clone()));
        let biases = plan.biases.iter().filter(|bias| bias.weight == *name);
        let is_weight = matches!(role, TensorRole::Weight(_));
        let own = chosen(name).is_some_and(|own| own.range.is_some() || own.scale.is_some());
        groups.push(ScaleGroup {
            name: name.clone(),
            is_weight,
            is_constant: model.graph.initializers.contains(name),
            members: members.collect(),
            biases: biases.map(|bias| (bias.node, bias.name.clone())).collect(),
            element: represented.element,
            is_fixed: represented.typed || own,
        });
    }
    let mut quantized: Vec<usize> = plan.quantized.iter().copied().collect();
    quantized.sort_unstable();
    Ok(ScaleGroups {
        groups,
        infinite,
        quantized,
        fused: plan.fused_nodes(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::TensorSettings;
    use crate::mixed_precision::tests::{model, seen};
    use octet_stats::{CalibrationStatistics, Method, TensorStatistics};

    fn statistics(a: TensorStatistics) -> CalibrationStatistics {
        let mut all: BTreeMap<_, _> = ["x", "b", "y"]
            .map(|name| (name.to_string(), seen(1.0)))
            .into();
        all.insert("a".to_string(), a);
        all
    }

    fn found(settings: &Settings, a: TensorStatistics) -> ScaleGroups {
        let statistics = statistics(a);
        let ranges = ActivationRanges::Observed(&statistics, Method::MinMax);
        scale_groups(&model(), settings, ranges).unwrap()
    }

    #[test]
    fn tensors_with_one_scale_are_one_group() {
        let groups = found(&Settings::default(), seen(1.0)).groups;
        let members: Vec<_> = groups.iter().map(|group| group.members.join(" ")).collect();
        assert_eq!(members, ["x", "a b", "y"]);
        assert!(
            groups
                .iter()
                .all(|g| !g.is_weight && !g.is_constant && !g.is_fixed)
        );
    }

    #[test]
    fn nodes_that_integers_compute_together_are_listed() {
        use octet_onnx::schema::TensorProto;
        use octet_test_models::{constant, model, node};
        let number = |name: &str, value: f32| TensorProto::from_f32(name, &[], &[value]);
        let nodes = vec![
            node("Conv", &["x", "w"], "made"),
            node("Relu", &["made"], "a"),
            node("Add", &["a", "three"], "more"),
            node("Clip", &["more", "zero", "six"], "gate"),
            node("Mul", &["a", "gate"], "product"),
            node("Div", &["product", "six"], "y"),
        ];
        let constants = vec![
            constant("w", &[3, 3, 1, 1]),
            number("three", 3.0),
            number("zero", 0.0),
            number("six", 6.0),
        ];
        let model = model(nodes, constants, &["y"]);
        let statistics: CalibrationStatistics = ["x", "made", "a", "more", "gate", "product", "y"]
            .map(|name| (name.to_string(), seen(1.0)))
            .into();
        let ranges = ActivationRanges::Observed(&statistics, Method::MinMax);
        let fused = scale_groups(&model, &Settings::default(), ranges)
            .unwrap()
            .fused;
        let relu = FusedNodes {
            last: None,
            others: vec![1],
            tensors: vec!["a".into()],
        };
        let gate = FusedNodes {
            last: Some(5),
            others: vec![2, 3, 4],
            tensors: vec!["a".into(), "y".into()],
        };
        assert_eq!(fused, [relu, gate]);
    }

    #[test]
    fn infinite_tensors_are_no_candidates_and_typed_ones_are_fixed() {
        let mut masked = seen(1.0);
        masked.observe(&[f32::NEG_INFINITY; 3]);
        let own = TensorSettings {
            element: Some(ElementType::U16),
            ..TensorSettings::default()
        };
        let settings = Settings {
            tensors: [("y".to_string(), own)].into(),
            ..Settings::default()
        };
        let all = found(&settings, masked);
        assert_eq!(all.infinite, ["a", "b"]);
        let fixed: Vec<_> = all
            .groups
            .iter()
            .map(|g| (g.name.as_str(), g.is_fixed))
            .collect();
        assert_eq!(fixed, [("x", false), ("y", true)]);
    }

    #[test]
    fn a_tensor_stays_float_by_its_settings() {
        let own = TensorSettings {
            float: Some(true),
            ..TensorSettings::default()
        };
        let settings = Settings {
            tensors: [("a".to_string(), own)].into(),
            ..Settings::default()
        };
        let statistics = statistics(seen(1.0));
        let ranges = ActivationRanges::Observed(&statistics, Method::MinMax);
        let quantized = crate::apply(&model(), &settings, Some(ranges)).unwrap();
        let names: Vec<_> = quantized.tensors.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["x", "y"]);
        assert!(
            !quantized
                .notes
                .iter()
                .any(|note| note.contains("had no effect"))
        );
    }
}
