//! Finer integers where a network begins.
//!
//! What its first convolutions make still looks like the picture: large even areas, whose values all fall beside an integer
//! by the same. That error is no noise which the sums of further layers average out: all that follows carries it on. So
//! the first values behind the first Conv get 16 bits where rounding them to eight costs much. Most networks have such an
//! error in few tensors, some (EfficientNet) in none of these.

use super::super::plan::{Plan, RangeSource};
use super::super::settings::Settings;
use crate::calibrate::Observations;
use crate::graph::{Model, Uses};

/// The share of all tensors that may get 16 bits for this, and the most there may be: each makes the layers that read it
/// slower. Chosen by the tasks of the corpus, as the next (docs/accuracy.md).
const SHARE: f64 = 0.25;
const MOST: usize = 12;

/// So many times the expected squared error must fit into the variance of a value, or else it costs much. 256 integers that
/// all are used alike have 65,000 (48 dB); this is 45 dB.
const ENOUGH: f64 = 30_000.0;

/// How many of the first values get 16 bits at most where the settings don't say.
fn usual(tensors: usize) -> usize {
    ((tensors as f64 * SHARE).ceil() as usize).min(MOST)
}

/// Gives 16 bits to the first values that need them, and says so: a sentence each. `found` are the tensors whose ranges were
/// found, in the order they are made.
pub(super) fn refine_beginning(
    model: &Model,
    uses: &Uses,
    settings: &Settings,
    plan: &mut Plan,
    found: &[String],
    observations: &Observations,
) -> Vec<String> {
    let nodes = model.graph.nodes.iter().enumerate();
    let mut convolutions = nodes.filter(|(index, node)| {
        let makes = node.output.first();
        plan.quantized.contains(index) && makes.is_some() && node.is("Conv")
    });
    let Some((first, _)) = convolutions.next() else {
        return Vec::new();
    };
    let behind = |name: &&String| uses.producer(name).is_some_and(|node| node >= first);
    let at_most = settings.fine_first.unwrap_or_else(|| usual(found.len()));
    let mut said = Vec::new();
    for name in found.iter().filter(behind).take(at_most) {
        let (Some(represented), Some(RangeSource::Observed(source))) =
            (plan.representations.get_mut(name), plan.ranges.get(name))
        else {
            continue;
        };
        // What stays float has no integers to be finer.
        let stays = !plan.forms.iter().any(|(form, _)| form == name);
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
        if represented.element == wide || error * ENOUGH <= variance {
            continue;
        }
        // The range of 16 bits is another: less need be cut off.
        (represented.element, represented.range) = (wide, None);
        said.push(format!(
            "`{name}` has 16 bits: it is among the first values the model makes, whose errors all that follows carries on, and \
             eight bits would add a {:.0}th of its variance",
            variance / error
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::calibrate::{Method, Observation};
    use crate::graph::{Dim, TensorType};
    use crate::onnx::schema::*;
    use crate::quantize::Ranges;
    use crate::quantize::TensorSettings;
    use crate::quantize::settings::ElementType;

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
            input: vec![ValueInfoProto::of("x", &picture)],
            output: vec![ValueInfoProto::of("y", &picture)],
            value_info: ["a", "b", "c"]
                .map(|name| ValueInfoProto::of(name, &picture))
                .to_vec(),
            ..Default::default()
        };
        Model::from_proto(ModelProto::of_graph(graph, 17)).unwrap()
    }

    /// The types of `a`, `b`, `c` and `y`, and how many sentences are said. Beside values up to 1 each tensor has one at `far`.
    fn refined(settings: &Settings, far: f32) -> ([ElementType; 4], usize) {
        refined_but(settings, far, "none")
    }

    /// The same where this tensor stays float.
    fn refined_but(settings: &Settings, far: f32, float: &str) -> ([ElementType; 4], usize) {
        let model = model();
        let values = (0..10_000).map(|i| i as f32 / 10_000.0).chain([far]);
        let seen = Observation::from_values(&Vec::from_iter(values));
        let observations: BTreeMap<_, _> = ["x", "a", "b", "c", "y"]
            .map(|name| (name.to_string(), seen.clone()))
            .into();
        let mut plan = Plan::new(&model, settings).unwrap();
        let ranges = Ranges::Seen(&observations, Method::MinMax);
        let found = plan.find_ranges(ranges).unwrap();
        plan.keep_float(float);
        let said = refine_beginning(
            &model,
            &model.graph.uses(),
            settings,
            &mut plan,
            &found,
            &observations,
        );
        let types = ["a", "b", "c", "y"].map(|name| plan.representations[name].element);
        (types, said.len())
    }

    #[test]
    fn the_first_values_behind_a_convolution_are_finer_where_eight_bits_cost_much() {
        use ElementType::{U8, U16};
        let mut settings = Settings::default();
        // A quarter of five tensors are two.
        assert_eq!(refined(&settings, 3.0), ([U8, U16, U16, U8], 2));
        // Values that fill their range have all that eight bits give.
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
    fn what_stays_float_is_not_said_to_be_finer() {
        use ElementType::{U8, U16};
        let settings = Settings::default();
        assert_eq!(refined_but(&settings, 3.0, "b"), ([U8, U8, U16, U8], 1));
    }

    #[test]
    fn few_of_many_are_finer() {
        assert_eq!([1, 20, 45, 60, 535].map(usual), [1, 5, 12, 12, 12]);
    }
}
