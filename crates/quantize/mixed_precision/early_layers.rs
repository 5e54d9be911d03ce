//! Early layers: the first activations behind the first Conv get 16 bits where 8 bits cost much.
//!
//! The outputs of the first convolutions still resemble the picture. Their large even areas all
//! round with the same error, so the sums of later layers do not average it out. Most networks have
//! such an error in a few tensors, some (EfficientNet) in none of these.

use super::super::plan::{Plan, RangeOrigin};
use super::super::settings::Settings;
use octet_graph::Model;
use octet_stats::CalibrationStatistics;

/// The fraction of all tensors that may get 16 bits, and the maximum count. Each one slows down the
/// layers that read it. Both, and the next constant, were chosen on the corpus' tasks
/// (docs/accuracy.md).
const MAX_FRACTION: f64 = 0.25;
const MAX_TENSORS: usize = 12;

/// Minimum ratio of a tensor's variance to its expected squared error: 45 dB. With 256 equally used
/// integers the ratio is 65,000 (48 dB).
const MIN_SQNR: f64 = 30_000.0;

/// The maximum count where the settings give none.
fn default_count(tensors: usize) -> usize {
    ((tensors as f64 * MAX_FRACTION).ceil() as usize).min(MAX_TENSORS)
}

/// Gives 16 bits to the first activations that need them, and returns a note for each. `with_ranges`
/// lists the tensors with computed ranges, in execution order.
pub(super) fn refine_early_layers(
    model: &Model,
    settings: &Settings,
    plan: &mut Plan,
    with_ranges: &[String],
    observations: &CalibrationStatistics,
) -> Vec<String> {
    let nodes = model.graph.nodes().iter().enumerate();
    let mut convolutions = nodes.filter(|(index, node)| {
        let makes = node.output.first();
        plan.quantized.contains(index) && makes.is_some() && node.is("Conv")
    });
    let Some((first, _)) = convolutions.next() else {
        return Vec::new();
    };
    let behind = |name: &&String| model.graph.producer(name).is_some_and(|node| node >= first);
    let at_most = settings
        .fine_first
        .unwrap_or_else(|| default_count(with_ranges.len()));
    let mut notes = Vec::new();
    for name in with_ranges.iter().filter(behind).take(at_most) {
        let (Some(represented), Some(RangeOrigin::Observed(source))) =
            (plan.representations.get_mut(name), plan.ranges.get(name))
        else {
            continue;
        };
        // A float tensor has no integers to refine.
        let stays = !plan.forms.iter().any(|(tensor, _)| tensor == name);
        if represented.typed || stays {
            continue;
        }
        let wide = represented.element.with_16_bits();
        let (Some(seen), Some(range)) = (observations.get(source), represented.range) else {
            continue;
        };
        let error = seen.squared_error(range, &represented.target());
        let (Some(error), Some(variance)) = (error, seen.variance()) else {
            continue;
        };
        if represented.element == wide || error * MIN_SQNR <= variance {
            continue;
        }
        // A new range is computed for 16 bits, because finer steps need less clipping.
        (represented.element, represented.range) = (wide, None);
        notes.push(format!(
            "`{name}` has 16 bits: it is one of the first activations, whose errors reach every later layer, \
             and 8 bits would add noise of 1/{:.0} of its variance",
            variance / error
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ActivationRanges;
    use crate::TensorSettings;
    use crate::settings::ElementType;
    use octet_graph::{Dim, TensorType};
    use octet_onnx::schema::*;
    use octet_stats::{Method, TensorStatistics};

    /// x → Sigmoid → a → Conv → b → Conv → c → Conv → y
    fn model() -> Model {
        let picture = TensorType {
            element: DataType::Float,
            shape: Some([1, 1, 4, 4].map(Dim::Known).to_vec()),
        };
        let weight = |name: &str| TensorProto::from_f32(name, &[1, 1, 1, 1], &[1.0]);
        let graph = GraphProto {
            node: vec![
                NodeProto::new("Sigmoid", "zeroth", &["x"], &["a"]),
                NodeProto::new("Conv", "first", &["a", "w"], &["b"]),
                NodeProto::new("Conv", "second", &["b", "v"], &["c"]),
                NodeProto::new("Conv", "third", &["c", "u"], &["y"]),
            ],
            initializer: ["w", "v", "u"].map(weight).to_vec(),
            input: vec![ValueInfoProto::new("x", &picture)],
            output: vec![ValueInfoProto::new("y", &picture)],
            value_info: ["a", "b", "c"]
                .map(|name| ValueInfoProto::new(name, &picture))
                .to_vec(),
            ..Default::default()
        };
        Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
    }

    /// The types of `a`, `b`, `c` and `y`, and the number of notes. Each tensor has values up to 1
    /// and one at `far`.
    fn refined(settings: &Settings, far: f32) -> ([ElementType; 4], usize) {
        refined_but(settings, far, "none")
    }

    /// [`refined`] with one tensor that stays float.
    fn refined_but(settings: &Settings, far: f32, float: &str) -> ([ElementType; 4], usize) {
        let model = model();
        let values = (0..10_000).map(|i| i as f32 / 10_000.0).chain([far]);
        let seen = TensorStatistics::from_values(&Vec::from_iter(values));
        let observations: BTreeMap<_, _> = ["x", "a", "b", "c", "y"]
            .map(|name| (name.to_string(), seen.clone()))
            .into();
        let mut plan = Plan::new(&model, settings).unwrap();
        let ranges = ActivationRanges::Observed(&observations, Method::MinMax);
        let with_ranges = plan.find_ranges(ranges).unwrap();
        plan.keep_float(float);
        let notes = refine_early_layers(&model, settings, &mut plan, &with_ranges, &observations);
        let types = ["a", "b", "c", "y"].map(|name| plan.representations[name].element);
        (types, notes.len())
    }

    #[test]
    fn early_activations_get_16_bits_where_8_cost_much() {
        use ElementType::{U8, U16};
        let mut settings = Settings::default();
        // A quarter of five tensors, rounded up, is two.
        assert_eq!(refined(&settings, 3.0), ([U8, U16, U16, U8], 2));
        // A uniform distribution gets the full precision of 8 bits.
        assert_eq!(refined(&settings, 1.0), ([U8; 4], 0));
        settings.fine_first = Some(1);
        assert_eq!(refined(&settings, 3.0), ([U8, U16, U8, U8], 1));
        settings.fine_first = Some(0);
        assert_eq!(refined(&settings, 3.0), ([U8; 4], 0));
    }

    #[test]
    fn a_type_that_was_chosen_stays() {
        use ElementType::{U8, U16};
        let chosen = TensorSettings {
            element: Some(U8),
            ..Default::default()
        };
        let settings = Settings {
            fine_first: Some(2),
            tensors: [("b".to_string(), chosen)].into(),
            ..Default::default()
        };
        assert_eq!(refined(&settings, 3.0), ([U8, U8, U16, U8], 1));
    }

    #[test]
    fn float_tensors_get_no_note() {
        use ElementType::{U8, U16};
        let settings = Settings::default();
        assert_eq!(refined_but(&settings, 3.0, "b"), ([U8, U8, U16, U8], 1));
    }

    #[test]
    fn the_default_count_is_limited() {
        assert_eq!([1, 20, 45, 60, 535].map(default_count), [1, 5, 12, 12, 12]);
    }
}
