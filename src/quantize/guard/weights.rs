//! Weights whose own error is out of line with the others' get 16 bits, or stay float, as far as the budget goes.
//!
//! What rounding adds to the weights of a channel, against these, is about what it adds to all that the channel makes. With a scale for
//! each channel that is 40 dB below in nearly every layer, and nothing is out of line. One scale for channels of unlike size, as
//! in depthwise convolutions, or four bits leave some layers much less, and all that follows. Of the first weights it is known how
//! unlike their inputs are, and what counts is what they make of them (`inlets/`).

use rayon::prelude::*;

use super::super::QuantizeError;
use super::super::inlets::Additions;
use super::super::operators::{Treatment, operand_channel_axis, treatment};
use super::super::plan::{Plan, TensorRole};
use super::super::settings::GuardSettings;
use super::super::weights::{parameters, relative_error};
use super::{HARMLESS, decibel};
use crate::graph::{Model, Uses};
use crate::onnx::schema::TensorProto;

/// So many times the error of the weight in the middle is out of line: 10 dB.
const OUT_OF_LINE: f64 = 10.0;
/// In fewer there is no line to be out of.
const FEWEST: usize = 3;
/// So many bytes more are nothing: the first weights of a small model are much of it, and all depends on them.
const NOTHING: f64 = 32_768.0;

/// A weight: the square of its error against its own, the bytes it has, and those that 16 bits would add.
struct Weight {
    name: String,
    error: f64,
    /// Whether the error is that of what it makes of the model's inputs.
    first: bool,
    bits: usize,
    added: f64,
    /// Whether 16 bits are too few, and the bytes are those of floats.
    float: bool,
    /// Whether its type may be changed.
    free: bool,
}

/// Gives 16 bits to such weights, the worst first, and says so: a sentence each in the first list, in the second of those that the budget is
/// too small for. The budget is the part of all constants' bytes that this may add.
pub(super) fn refine_weights(
    model: &Model,
    uses: &Uses,
    plan: &mut Plan,
    additions: &Additions,
    may: GuardSettings,
) -> Result<(Vec<String>, Vec<String>), QuantizeError> {
    let (mut said, mut declined) = (Vec::new(), Vec::new());
    let mut weights = measured(model, uses, plan, additions, may)?;
    weights.sort_by(|one, other| other.error.total_cmp(&one.error));
    let middle = weights.get(weights.len() / 2);
    let middle = middle.filter(|_| weights.len() >= FEWEST).map(|w| w.error);
    let mut left = may.budget * bytes_of_constants(model, plan);
    let bad = |weight: &&Weight| {
        let line = match middle {
            Some(middle) => OUT_OF_LINE * middle,
            None if weight.first && weight.bits >= 8 => 0.0,
            None => f64::INFINITY,
        };
        weight.free && weight.error > HARMLESS.max(line)
    };
    for weight in weights.iter().filter(bad) {
        let (name, bits, added) = (&weight.name, weight.bits, weight.added);
        let decibels = decibel(weight.error);
        let mut why = match weight.first {
            true => format!(
                "with {bits} bits what it makes of the model's inputs has {decibels:.0} dB of signal over noise"
            ),
            false => {
                format!("it is only {decibels:.0} dB above what rounding it to {bits} bits adds")
            }
        };
        if let Some(middle) = middle {
            why += &format!(", the weight in the middle {:.0} dB", decibel(middle));
        }
        let affordable = added <= left || (weight.first && may.budget > 0.0 && added <= NOTHING);
        if !affordable {
            declined.push(format!(
                "`{name}` keeps {bits} bits, though {why}: {} would add {added:.0} bytes, more than is left of the budget",
                if weight.float { "floats" } else { "16" }
            ));
        } else if weight.float {
            left = (left - added).max(0.0);
            said.push(format!("`{name}` stays float: {why}"));
            plan.keep_float(name);
        } else if let Some(represented) = plan.representations.get_mut(name) {
            left = (left - added).max(0.0);
            represented.element = represented.element.with_16_bits();
            said.push(format!("`{name}` has 16 bits: {why}"));
        }
    }
    Ok((said, declined))
}

/// The weights of products, with their errors.
fn measured(
    model: &Model,
    uses: &Uses,
    plan: &Plan,
    additions: &Additions,
    may: GuardSettings,
) -> Result<Vec<Weight>, QuantizeError> {
    let measure = |(name, form): &(String, TensorRole)| {
        let (TensorRole::Weight(axis), Some(channels)) = (form, channel_axis(model, uses, name))
        else {
            return Ok(None);
        };
        let channels = axis.unwrap_or(channels);
        let constant = model.graph.initializers.get(name);
        let (Some(tensor), Some(represented)) = (constant, plan.representations.get(name)) else {
            return Ok(None);
        };
        let found = parameters(tensor, *axis, represented, true)?;
        let (now, wide) = (represented.element, represented.element.with_16_bits());
        let made = additions.of_weight(name, tensor, &found)?;
        let float = may.float && made.is_some_and(|error| error > HARMLESS) && {
            let mut other = represented.clone();
            other.element = wide;
            let found = parameters(tensor, *axis, &other, true)?;
            let error = additions.of_weight(name, tensor, &found)?;
            error.is_some_and(|error| error > HARMLESS)
        };
        let then = match float {
            true => bytes_as(32, tensor),
            false => bytes_as(wide.bits(), tensor),
        };
        Ok(Some(Weight {
            name: name.clone(),
            error: match made {
                Some(error) => error,
                None => relative_error(tensor, &found, channels)?,
            },
            first: made.is_some(),
            bits: now.bits(),
            added: then - bytes_as(now.bits(), tensor),
            float,
            free: !represented.typed && !represented.is_chosen() && now.bits() < 16,
        }))
    };
    let found: Vec<Option<Weight>> = plan
        .forms
        .par_iter()
        .map(measure)
        .collect::<Result<_, QuantizeError>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// The bytes of all constants as the plan has them.
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

/// The bytes of a constant as numbers of so many bits.
fn bytes_as(bits: usize, tensor: &TensorProto) -> f64 {
    let count = tensor.shape().map_or(0, |shape| shape.iter().product());
    (count * bits) as f64 / 8.0
}

/// The axis of the channels that a weight makes, by the first operator that reads it.
fn channel_axis(model: &Model, uses: &Uses, name: &str) -> Option<usize> {
    let &(node, slot) = uses.consumers(name).first()?;
    let node = &model.graph.nodes[node];
    let dims = model.graph.initializers.get(name)?.dims.len();
    let axis = match treatment(&node.operator())? {
        Treatment::Weighted(axis) => axis.at(node),
        Treatment::MatMul => operand_channel_axis(slot, dims)?,
        _ => return None,
    };
    (dims > 1 && axis < dims).then_some(axis)
}
