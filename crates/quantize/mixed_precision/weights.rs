//! Weights with an unusually large rounding error get 16 bits, or stay float, within a budget.
//!
//! Relative to the weights of a channel, the rounding error is about the relative error of the
//! channel's output. With one scale per channel it is 40 dB below the weights in nearly every
//! layer. It grows with one scale for channels of unequal size, as in depthwise convolutions, and
//! with four bits. For the first weights the variance of their inputs is known, so the error of
//! their outputs counts (see `input_noise/`).

use rayon::prelude::*;

use super::super::QuantizeError;
use super::super::input_noise::InputNoise;
use super::super::operators::{Treatment, operand_channel_axis, treatment};
use super::super::plan::{Plan, TensorRole};
use super::super::settings::GuardSettings;
use super::super::weights::{parameters, relative_error};
use super::{TOLERATED_NOISE, sqnr_db};
use octet_graph::Model;
use octet_onnx::schema::TensorProto;

/// A weight is an outlier from this multiple of the median error on: 10 dB.
const OUTLIER_FACTOR: f64 = 10.0;
/// Fewer weights than this have no meaningful median.
const MIN_WEIGHTS: usize = 3;
/// First weights may always grow by this many bytes. They are a large part of a small model, and
/// every result depends on them.
const NEGLIGIBLE_BYTES: f64 = 32_768.0;

/// A weight with its relative squared error, its bits and the bytes that a wider type adds.
struct WeightError {
    name: String,
    error: f64,
    /// True if `error` is that of the outputs of a first layer.
    is_first: bool,
    bits: usize,
    added: f64,
    /// True if 16 bits are too few; `added` then counts the bytes of floats.
    float: bool,
    /// True if the settings allow another type.
    changeable: bool,
}

/// Applies the rule, largest error first. The budget limits the added bytes, as a fraction of all
/// constants' bytes. Returns the notes on changed weights, and those on weights beyond the budget.
pub(super) fn refine_weights(
    model: &Model,
    plan: &mut Plan,
    input_noise: &InputNoise,
    rules: GuardSettings,
) -> Result<(Vec<String>, Vec<String>), QuantizeError> {
    let (mut notes, mut declined) = (Vec::new(), Vec::new());
    let mut weights = measure_weights(model, plan, input_noise, rules)?;
    weights.sort_by(|one, other| other.error.total_cmp(&one.error));
    let median = weights.get(weights.len() / 2);
    let median = median
        .filter(|_| weights.len() >= MIN_WEIGHTS)
        .map(|w| w.error);
    let mut left = rules.budget * bytes_of_constants(model, plan);
    let bad = |weight: &&WeightError| {
        let line = match median {
            Some(median) => OUTLIER_FACTOR * median,
            None if weight.is_first && weight.bits >= 8 => 0.0,
            None => f64::INFINITY,
        };
        weight.changeable && weight.error > TOLERATED_NOISE.max(line)
    };
    for weight in weights.iter().filter(bad) {
        let (name, bits, added) = (&weight.name, weight.bits, weight.added);
        let decibels = sqnr_db(weight.error);
        let mut why = match weight.is_first {
            true => format!("with {bits} bits the output of its layer has {decibels:.0} dB SQNR"),
            false => {
                format!("rounding it to {bits} bits leaves only {decibels:.0} dB SQNR")
            }
        };
        if let Some(median) = median {
            why += &format!(", the median weight {:.0} dB", sqnr_db(median));
        }
        let affordable =
            added <= left || (weight.is_first && rules.budget > 0.0 && added <= NEGLIGIBLE_BYTES);
        if !affordable {
            declined.push(format!(
                "`{name}` keeps {bits} bits, although {why}: {} would add {added:.0} bytes, more than the budget has left",
                if weight.float { "float32" } else { "16 bits" }
            ));
        } else if weight.float {
            left = (left - added).max(0.0);
            notes.push(format!("`{name}` stays float: {why}"));
            plan.keep_float(name);
        } else if let Some(represented) = plan.representations.get_mut(name) {
            left = (left - added).max(0.0);
            represented.element = represented.element.with_16_bits();
            notes.push(format!("`{name}` has 16 bits: {why}"));
        }
    }
    Ok((notes, declined))
}

/// The weights of all layers, with their errors.
fn measure_weights(
    model: &Model,
    plan: &Plan,
    input_noise: &InputNoise,
    rules: GuardSettings,
) -> Result<Vec<WeightError>, QuantizeError> {
    let measure_one = |(name, role): &(String, TensorRole)| {
        let (TensorRole::Weight(axis), Some(channels)) = (role, channel_axis(model, name)) else {
            return Ok(None);
        };
        let channels = axis.unwrap_or(channels);
        let constant = model.graph.initializers.get(name);
        let (Some(tensor), Some(represented)) = (constant, plan.representations.get(name)) else {
            return Ok(None);
        };
        let params = parameters(tensor, *axis, represented, true)?;
        let (now, wide) = (represented.element, represented.element.with_16_bits());
        let output_error = input_noise.of_weight(name, tensor, &params)?;
        let float = rules.float && output_error.is_some_and(|error| error > TOLERATED_NOISE) && {
            let mut other = represented.clone();
            other.element = wide;
            let params = parameters(tensor, *axis, &other, true)?;
            let error = input_noise.of_weight(name, tensor, &params)?;
            error.is_some_and(|error| error > TOLERATED_NOISE)
        };
        let then = match float {
            true => bytes_as(32, tensor),
            false => bytes_as(wide.bits(), tensor),
        };
        Ok(Some(WeightError {
            name: name.clone(),
            error: match output_error {
                Some(error) => error,
                None => relative_error(tensor, &params, channels)?,
            },
            is_first: output_error.is_some(),
            bits: now.bits(),
            added: then - bytes_as(now.bits(), tensor),
            float,
            changeable: !represented.typed && !represented.is_chosen() && now.bits() < 16,
        }))
    };
    let weights: Vec<Option<WeightError>> = plan
        .forms
        .par_iter()
        .map(measure_one)
        .collect::<Result<_, QuantizeError>>()?;
    Ok(weights.into_iter().flatten().collect())
}

/// The bytes of all constants with the types of the plan.
fn bytes_of_constants(model: &Model, plan: &Plan) -> f64 {
    let bytes = |name: &String| {
        let tensor = model.graph.initializers.get(name)?;
        Some(bytes_as(
            plan.representations.get(name)?.element.bits(),
            tensor,
        ))
    };
    plan.forms.iter().filter_map(|(name, _)| bytes(name)).sum()
}

/// The bytes of a constant with elements of `bits` bits.
fn bytes_as(bits: usize, tensor: &TensorProto) -> f64 {
    let count = tensor.shape().map_or(0, |shape| shape.iter().product());
    (count * bits) as f64 / 8.0
}

/// The axis of a weight's output channels, by the first operator that reads it.
fn channel_axis(model: &Model, name: &str) -> Option<usize> {
    let reader = model.graph.consumers(name).first()?;
    let node = &model.graph.nodes()[reader.node];
    let dims = model.graph.initializers.get(name)?.dims.len();
    let axis = match treatment(&node.operator())? {
        Treatment::Weighted(axis) => axis.at(node),
        Treatment::MatMul => operand_channel_axis(reader.input()?, dims)?,
        _ => return None,
    };
    (dims > 1 && axis < dims).then_some(axis)
}

#[cfg(test)]
mod tests {
    use super::super::tests::typed;
    use super::*;
    use crate::plan::TensorRole;
    use crate::settings::{ElementType, Settings};
    use octet_onnx::schema::*;

    /// x → Conv → … where one channel of the last weight is larger than the others by this factor.
    fn weighted(larger: f32) -> Model {
        let picture = octet_graph::TensorType {
            element: DataType::Float,
            shape: Some([1, 4, 4, 4].map(octet_graph::Dim::Known).to_vec()),
        };
        let weight = |name: &str, larger: f32| {
            let number = |i: usize| (i as f32 * 0.7).sin() * if i < 4 { larger } else { 1.0 };
            TensorProto::from_f32(name, &[4, 4, 1, 1], &Vec::from_iter((0..16).map(number)))
        };
        let graph = GraphProto {
            node: vec![
                NodeProto::new("Conv", "first", &["x", "w"], &["a"]),
                NodeProto::new("Conv", "second", &["a", "v"], &["b"]),
                NodeProto::new("Conv", "third", &["b", "u"], &["y"]),
            ],
            initializer: vec![weight("w", 1.0), weight("v", 1.0), weight("u", larger)],
            input: vec![ValueInfoProto::new("x", &picture)],
            output: vec![ValueInfoProto::new("y", &picture)],
            value_info: ["a", "b"]
                .map(|name| ValueInfoProto::new(name, &picture))
                .to_vec(),
            ..Default::default()
        };
        Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
    }

    #[test]
    fn a_weight_that_rounding_costs_far_more_than_the_others_gets_16_bits_within_the_budget() {
        let done =
            |larger: f32, per_channel: bool, guard: GuardSettings, chosen: Option<ElementType>| {
                let model = weighted(larger);
                let mut settings = Settings {
                    guard,
                    ..Default::default()
                };
                settings.weights.per_channel = Some(per_channel);
                if let Some(element) = chosen {
                    settings.tensors.insert("u".into(), typed(element));
                }
                let mut plan = Plan::new(&model, &settings).unwrap();
                let (protected, declined) =
                    refine_weights(&model, &mut plan, &InputNoise::default(), settings.guard)
                        .unwrap();
                let types = ["w", "v", "u"].map(|name| plan.representations[name].element);
                assert!(
                    plan.forms
                        .iter()
                        .any(|(name, role)| name == "u" && matches!(role, TensorRole::Weight(_)))
                );
                (types, protected.len(), declined.len())
            };
        use ElementType::{I8, I16};
        let enough = GuardSettings {
            budget: 0.4,
            ..GuardSettings::ALL
        };
        // One scale for channels of unequal size. The weight is a third of all bytes and doubles its
        // own.
        assert_eq!(done(400.0, false, enough, None), ([I8, I8, I16], 1, 0));
        assert_eq!(
            done(400.0, false, GuardSettings::ALL, None),
            ([I8; 3], 0, 1)
        );
        assert_eq!(done(400.0, false, enough, Some(I8)), ([I8; 3], 0, 0));
        // One scale per channel, or channels of equal size, have no outlier.
        assert_eq!(done(400.0, true, enough, None), ([I8; 3], 0, 0));
        assert_eq!(done(1.0, false, enough, None), ([I8; 3], 0, 0));
    }
}
