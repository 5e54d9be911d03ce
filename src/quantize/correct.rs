//! Bias correction: biases make up for what rounding the weights adds to a layer's output in the mean.
//!
//! A rounded weight w + e adds e·x to its channel's output. The mean of x over a calibration is known for each
//! channel of the input, so the mean of what is added is, too: Σ e·E[x] over all weights of an output channel,
//! which its bias gives back. What is left of the error varies about zero. Where a kernel lies half outside, fewer of
//! its weights meet a value: each is counted with the share of the positions at which it lies inside.

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;

use super::plan::{Plan, PlannedBias};
use super::qdq::ConstantIntegers;
use super::ranges::Ranges;
use super::scale::QuantizationParameters;
use crate::calibrate::{ChannelMeans, Observations};
use crate::graph::{Joins, Model, Slide};
use crate::onnx::schema::{NodeProto, TensorProto};
use crate::onnx::tensor::TensorError;

/// The values whose channels' means tell what the rounding of a layer's weights adds, and the axis of the channels.
pub fn channel_axes(model: &Model) -> BTreeMap<String, usize> {
    let constant = |name: Option<&str>| name.is_some_and(|n| model.graph.initializers.contains(n));
    let axis = |node: &NodeProto| {
        let known =
            form(node).is_some() && constant(node.input_at(1)) && constant(node.input_at(2));
        let name = node.input_at(0).filter(|_| known)?;
        // Rows of a Gemm, images of a Conv: channels come second in both.
        Some((name.to_string(), 1))
    };
    model.graph.nodes.iter().filter_map(axis).collect()
}

/// What each planned bias is changed by, channel by channel; nothing where it isn't.
pub(super) fn corrections(
    model: &Model,
    plan: &Plan,
    ranges: Ranges<'_>,
    constants: &HashMap<String, QuantizationParameters>,
    integers: &HashMap<&str, ConstantIntegers>,
) -> Result<Vec<Vec<f64>>, TensorError> {
    let Ranges::Seen(observations, _) = ranges else {
        return Ok(vec![Vec::new(); plan.biases.len()]);
    };
    let one = |planned: &PlannedBias| {
        let weight = constants.get(&planned.weight);
        match weight.zip(integers.get(planned.weight.as_str())) {
            Some((weight, made)) if plan.correct_biases => {
                correction(model, planned, observations, weight, &made.tensor)
            }
            _ => Ok(Vec::new()),
        }
    };
    plan.biases.par_iter().map(one).collect()
}

fn correction(
    model: &Model,
    planned: &PlannedBias,
    observations: &Observations,
    weight: &QuantizationParameters,
    integers: &TensorProto,
) -> Result<Vec<f64>, TensorError> {
    let node = &model.graph.nodes[planned.node];
    let constants = &model.graph.initializers;
    let seen = observations.get(&planned.input);
    let (Some(form), Some(tensor), Some(bias), Some(channels)) = (
        form(node),
        constants.get(&planned.weight),
        constants.get(&planned.name),
        seen.and_then(|seen| seen.channel_means()),
    ) else {
        return Ok(Vec::new());
    };
    let grids: Vec<_> = weight.grids().collect();
    let Some(layout) = Layout::of(node, form, &tensor.shape()?, channels) else {
        return Ok(Vec::new());
    };
    let Some(means) = channels.means().filter(|m| m.len() == layout.joins.inputs) else {
        return Ok(Vec::new());
    };
    if bias.shape()? != [layout.joins.outputs] {
        return Ok(Vec::new());
    }
    let mut added = vec![0.0; layout.joins.outputs];
    let (values, integers) = (tensor.to_f32()?, integers.to_i64()?);
    let (joins, taps) = (&layout.joins, layout.shares.len());
    let windows = values.len() / taps.max(1);
    let mut window = 0;
    while window < windows {
        let channel = weight.axis.map_or(0, |axis| joins.index(window, axis));
        let Some(grid) = grids.get(channel) else {
            return Ok(Vec::new());
        };
        // Windows of one scale that make one output of neighbouring inputs are taken together.
        let (input, output) = joins.of_window(window);
        let together = match weight.axis {
            Some(1) => 1,
            _ => joins.along_inputs(window).min(windows - window),
        };
        let these = window * taps..(window + together) * taps;
        added[output] += grid.added(
            &values[these.clone()],
            &integers[these],
            &layout.shares,
            &means[input..][..together],
        );
        window += together;
    }
    let correction: Vec<f64> = added.iter().map(|sum| -sum * layout.factor).collect();
    let sound = correction.iter().all(|c| c.is_finite());
    Ok(if sound { correction } else { Vec::new() })
}

/// The operators whose weights are known to add what they are multiplied with.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Conv,
    ConvTranspose,
    Gemm,
}

fn form(node: &NodeProto) -> Option<Form> {
    if node.is("Conv") {
        Some(Form::Conv)
    } else if node.is("ConvTranspose") {
        // Where the output's shape is given, the padding follows from it in ways that differ.
        let open = node.attribute("output_shape").is_none();
        open.then_some(Form::ConvTranspose)
    } else if node.is("Gemm") {
        let rows = node.int("transA").unwrap_or(0) == 0;
        rows.then_some(Form::Gemm)
    } else {
        None
    }
}

/// How the weights of a layer lie, and how often each meets a value.
struct Layout {
    joins: Joins,
    /// Of each weight of a window the share of the output's positions at which it meets a value.
    shares: Vec<f64>,
    /// What all products are multiplied with.
    factor: f64,
}

impl Layout {
    fn of(node: &NodeProto, form: Form, shape: &[usize], seen: &ChannelMeans) -> Option<Layout> {
        let joins = Joins::of(node, shape)?;
        let factor = match form {
            Form::Gemm => f64::from(node.float("alpha").unwrap_or(1.0)),
            _ => 1.0,
        };
        let shares = match form {
            Form::Gemm => vec![1.0],
            _ => shares(node, form, &shape[2..], seen.extents().get(2..)?)?,
        };
        Some(Layout {
            joins,
            shares,
            factor,
        })
    }
}

/// Of each weight of a kernel the share of the output's positions at which it meets a value of the input, whose
/// extents are `input`.
fn shares(node: &NodeProto, form: Form, kernel: &[usize], input: &[usize]) -> Option<Vec<f64>> {
    if kernel.len() != input.len() {
        return None;
    }
    let mut all = vec![1.0];
    for (axis, (slide, &extent)) in Slide::of(node, kernel)?.iter().zip(input).enumerate() {
        let extent = i64::try_from(extent).ok().filter(|&extent| extent > 0)?;
        // A weight at `tap` joins place i of what is stepped through with the place that it meets of the other: of the input with the
        // output where a Conv steps through its output, the other way round where a ConvTranspose does through its input.
        let (before, steps, bound, places) = match form {
            Form::ConvTranspose => {
                let more = node.ints("output_padding").and_then(|more| more.get(axis));
                let more = more.copied().unwrap_or(0);
                let (before, made) = slide.output(extent, more);
                (before, extent, made, made)
            }
            _ => {
                let (before, made) = slide.places(extent);
                (before, made, extent, made)
            }
        };
        if places < 1 {
            return None;
        }
        let share = |tap: i64| {
            let met = (0..steps)
                .filter(|&place| (0..bound).contains(&slide.value_index(place, tap, before)));
            met.count() as f64 / places as f64
        };
        let along: Vec<f64> = (0..slide.taps).map(share).collect();
        let before = all.iter();
        all = before
            .flat_map(|share| along.iter().map(move |along| share * along))
            .collect();
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::schema::AttributeProto;

    fn node(operator: &str, attributes: &[(&str, &[i64])]) -> NodeProto {
        let node = NodeProto::new(operator, "n", &["x", "w", "b"], &["y"]);
        attributes.iter().fold(node, |node, (name, values)| {
            node.with(AttributeProto::ints(name, values))
        })
    }

    fn conv(kernel: &[usize], input: &[usize], attributes: &[(&str, &[i64])]) -> Vec<f64> {
        shares(&node("Conv", attributes), Form::Conv, kernel, input).unwrap()
    }

    #[test]
    fn a_weight_counts_as_often_as_it_lies_inside() {
        assert_eq!(conv(&[1], &[5], &[]), [1.0]);
        // Three positions; the outer weights are outside at one of them.
        let same: &[(&str, &[i64])] = &[("pads", &[1, 1])];
        assert_eq!(conv(&[3], &[3], same), [2.0 / 3.0, 1.0, 2.0 / 3.0]);
        // At one place and a pad of one, only the middle meets anything.
        assert_eq!(conv(&[3], &[1], same), [0.0, 1.0, 0.0]);
        let strided: &[(&str, &[i64])] = &[("pads", &[1, 1]), ("strides", &[2])];
        assert_eq!(conv(&[3], &[4], strided), [0.5, 1.0, 1.0]);
        let dilated: &[(&str, &[i64])] = &[("pads", &[2, 2]), ("dilations", &[2])];
        assert_eq!(conv(&[3], &[4], dilated), [0.5, 1.0, 0.5]);
        // Each axis for itself: rows outside, columns inside.
        let rows: &[(&str, &[i64])] = &[("pads", &[1, 0, 1, 0])];
        assert_eq!(conv(&[3, 2], &[1, 2], rows), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn a_transposed_kernel_meets_each_value_once() {
        let strided = node("ConvTranspose", &[("strides", &[2])]);
        let found = shares(&strided, Form::ConvTranspose, &[2], &[3]).unwrap();
        assert_eq!(found, [0.5, 0.5]);
        // Six positions less one cut off at each end, which the outer weights of the outer values lie on.
        let cut = node("ConvTranspose", &[("strides", &[2]), ("pads", &[1, 1])]);
        let found = shares(&cut, Form::ConvTranspose, &[2], &[3]).unwrap();
        assert_eq!(found, [0.5, 0.5]);
    }
}
