//! Weights whose own error is out of line with the others' get 16 bits, as far as the budget goes.
//!
//! What rounding adds to the weights of a channel, against these, is about what it adds to all that the channel makes. With a scale for
//! each channel that is 40 dB below in nearly every layer, and nothing is out of line. One scale for channels of unlike size, as
//! in depthwise convolutions, or four bits leave some layers much less, and all that follows.

use rayon::prelude::*;

use super::super::QuantizeError;
use super::super::operators::{Treatment, treatment};
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

/// A weight, the square of its error against its own, and its numbers.
struct Weight {
    name: String,
    error: f64,
    count: usize,
    element: ElementType,
}

/// Gives 16 bits to such weights, the worst first, and says so: a sentence each in the first list, in the second of those that the budget is
/// too small for. `budget` is the part of all constants' bytes that this may add.
pub(super) fn refine_weights(
    model: &Model,
    plan: &mut Plan,
    budget: f64,
) -> Result<(Vec<String>, Vec<String>), QuantizeError> {
    let constants = plan.forms.iter().filter_map(|(name, form)| {
        let tensor = model.graph.initializers.get(name)?;
        Some((name, form, tensor, plan.representations.get(name)?))
    });
    let constants: Vec<_> = constants.collect();
    let bytes = |element: ElementType, count: usize| element.bits() as f64 / 8.0 * count as f64;
    let all: f64 = constants
        .iter()
        .map(|(_, _, tensor, represented)| bytes(represented.element, count_of(tensor)))
        .sum();
    let uses = model.graph.uses();
    let weights = constants
        .into_par_iter()
        .map(|(name, form, tensor, represented)| {
            let (Form::Weight(axis), Some(channels)) = (form, channel_axis(model, &uses, name))
            else {
                return Ok(None);
            };
            let found = parameters(tensor, *axis, represented, true)?;
            let error = relative_error(tensor, &found, channels)?;
            let free =
                !represented.typed && !represented.is_chosen() && represented.element.bits() < 16;
            let weight = Weight {
                name: name.clone(),
                error,
                count: count_of(tensor),
                element: represented.element,
            };
            Ok(Some((weight, free)))
        });
    let weights: Vec<Option<(Weight, bool)>> = weights.collect::<Result<_, QuantizeError>>()?;
    let weights: Vec<(Weight, bool)> = weights.into_iter().flatten().collect();
    let mut errors: Vec<f64> = weights.iter().map(|(weight, _)| weight.error).collect();
    errors.sort_unstable_by(f64::total_cmp);
    let middle = match errors.get(errors.len() / 2) {
        Some(&middle) if errors.len() >= FEWEST => middle,
        _ => return Ok((Vec::new(), Vec::new())),
    };
    let mut bad: Vec<Weight> = weights
        .into_iter()
        .filter(|(weight, free)| *free && weight.error > HARMLESS.max(OUT_OF_LINE * middle))
        .map(|(weight, _)| weight)
        .collect();
    bad.sort_by(|one, other| other.error.total_cmp(&one.error));
    let mut left = budget * all;
    let (mut said, mut declined) = (Vec::new(), Vec::new());
    for Weight {
        name,
        error,
        count,
        element,
    } in bad
    {
        let wide = element.with_16_bits();
        let cost = bytes(wide, count) - bytes(element, count);
        let why = format!(
            "rounded, it is {:.0} dB above its error, the weight in the middle {:.0} dB",
            decibel(error),
            decibel(middle)
        );
        if cost > left {
            declined.push(format!(
                "`{name}` keeps {} bits, though {why}: 16 would take {cost:.0} bytes, more than is left of the budget",
                element.bits()
            ));
            continue;
        }
        left -= cost;
        if let Some(represented) = plan.representations.get_mut(&name) {
            represented.element = wide;
            said.push(format!("`{name}` has 16 bits: {why}"));
        }
    }
    Ok((said, declined))
}

/// The axis of the channels that a weight makes, by the first operator that reads it.
fn channel_axis(model: &Model, uses: &Uses, name: &str) -> Option<usize> {
    let &(node, _) = uses.consumers(name).first()?;
    let node = &model.graph.nodes[node];
    let axis = match treatment(&node.operator())? {
        Treatment::Weighted(axis) => axis.of(node),
        Treatment::MatMul => 1,
        _ => return None,
    };
    let dims = model.graph.initializers.get(name)?.dims.len();
    (dims > 1 && axis < dims).then_some(axis)
}

fn count_of(tensor: &TensorProto) -> usize {
    tensor.shape().map_or(0, |shape| shape.iter().product())
}

fn decibel(error: f64) -> f64 {
    -10.0 * error.log10()
}
