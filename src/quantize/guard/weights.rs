//! Weights whose own error is out of line with the others' get 16 bits, as far as the budget goes.
//!
//! What rounding adds to the weights of a channel, against these, is about what it adds to all that the channel makes. With a scale for
//! each channel that is 40 dB below in nearly every layer, and nothing is out of line. One scale for channels of unlike size, as
//! in depthwise convolutions, or four bits leave some layers much less, and all that follows.

use rayon::prelude::*;

use super::super::QuantizeError;
use super::super::operators::{Treatment, factor_channels, treatment};
use super::super::plan::{Form, Plan};
use super::super::settings::ElementType;
use super::super::weights::{parameters, relative_error};
use crate::graph::{Model, Uses};
use crate::onnx::schema::TensorProto;

/// So many times the error of the weight in the middle is out of line: 10 dB.
const OUT_OF_LINE: f64 = 10.0;
/// A smaller error than this part of the weight is none of the large ones of a network: 25 dB below it.
const HARMLESS: f64 = 1.0 / 300.0;
/// In fewer there is no line to be out of.
const FEWEST: usize = 3;

/// A weight: the square of its error against its own, the bytes it has, and those that 16 bits would add.
struct Weight {
    name: String,
    error: f64,
    bits: usize,
    added: f64,
    /// Whether its type may be changed.
    free: bool,
}

/// Gives 16 bits to such weights, the worst first, and says so: a sentence each in the first list, in the second of those that the budget is
/// too small for. `budget` is the part of all constants' bytes that this may add.
pub(super) fn refine_weights(
    model: &Model,
    uses: &Uses,
    plan: &mut Plan,
    budget: f64,
) -> Result<(Vec<String>, Vec<String>), QuantizeError> {
    let (mut said, mut declined) = (Vec::new(), Vec::new());
    let mut weights = measured(model, uses, plan)?;
    if weights.len() < FEWEST {
        return Ok((said, declined));
    }
    weights.sort_by(|one, other| other.error.total_cmp(&one.error));
    let middle = weights[weights.len() / 2].error;
    let mut left = budget * bytes_of_constants(model, plan);
    let bad = |weight: &&Weight| weight.free && weight.error > HARMLESS.max(OUT_OF_LINE * middle);
    for weight in weights.iter().filter(bad) {
        let (name, bits, added) = (&weight.name, weight.bits, weight.added);
        let why = format!(
            "it is only {:.0} dB above what rounding it to {bits} bits adds, the weight in the middle {:.0} dB",
            decibel(weight.error),
            decibel(middle)
        );
        if added > left {
            declined.push(format!(
                "`{name}` keeps {bits} bits, though {why}: 16 would add {added:.0} bytes, more than is left of the budget"
            ));
        } else if let Some(represented) = plan.representations.get_mut(name) {
            left -= added;
            represented.element = represented.element.with_16_bits();
            said.push(format!("`{name}` has 16 bits: {why}"));
        }
    }
    Ok((said, declined))
}

/// The weights of products, with their errors.
fn measured(model: &Model, uses: &Uses, plan: &Plan) -> Result<Vec<Weight>, QuantizeError> {
    let measure = |(name, form): &(String, Form)| {
        let (Form::Weight(axis), Some(channels)) = (form, channel_axis(model, uses, name)) else {
            return Ok(None);
        };
        let channels = axis.unwrap_or(channels);
        let constant = model.graph.initializers.get(name);
        let (Some(tensor), Some(represented)) = (constant, plan.representations.get(name)) else {
            return Ok(None);
        };
        let found = parameters(tensor, *axis, represented, true)?;
        let bytes = |element| bytes_as(element, tensor);
        Ok(Some(Weight {
            name: name.clone(),
            error: relative_error(tensor, &found, channels)?,
            bits: represented.element.bits(),
            added: bytes(represented.element.with_16_bits()) - bytes(represented.element),
            free: !represented.typed && !represented.is_chosen() && represented.element.bits() < 16,
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
        Some(bytes_as(plan.representations.get(name)?.element, tensor))
    };
    plan.forms.iter().filter_map(|(name, _)| bytes(name)).sum()
}

/// The bytes of a constant as integers of this type.
fn bytes_as(element: ElementType, tensor: &TensorProto) -> f64 {
    let count = tensor.shape().map_or(0, |shape| shape.iter().product());
    (count * element.bits()) as f64 / 8.0
}

/// The axis of the channels that a weight makes, by the first operator that reads it.
fn channel_axis(model: &Model, uses: &Uses, name: &str) -> Option<usize> {
    let &(node, slot) = uses.consumers(name).first()?;
    let node = &model.graph.nodes[node];
    let dims = model.graph.initializers.get(name)?.dims.len();
    let axis = match treatment(&node.operator())? {
        Treatment::Weighted(axis) => axis.of(node),
        Treatment::MatMul => factor_channels(slot, dims)?,
        _ => return None,
    };
    (dims > 1 && axis < dims).then_some(axis)
}

fn decibel(error: f64) -> f64 {
    -10.0 * error.log10()
}
