//! Integers of weights whose errors make up for one another, from the second moments of what they are multiplied with.

mod solve;

use std::collections::BTreeMap;
use std::ops::Range;

use rayon::prelude::*;

pub(super) use solve::Factor;

use super::QuantizeError;
use super::plan::Plan;
use super::ranges::Ranges;
use super::scale::{IntegerBounds, QuantizationParameters, encoded, quantize_value};
use super::settings::Rounding;
use crate::calibrate::{Im2colView, InputGram, Observations};
use crate::graph::{Model, Slide};
use crate::onnx::schema::{NodeProto, TensorProto};
use crate::onnx::tensor::TensorError;

/// What a calibration must look at for the rounding `gptq`: values, and how the weights of their readers meet them.
pub fn meetings(model: &Model) -> Vec<(String, Im2colView)> {
    let met = met(model).into_iter();
    met.map(|(value, rows)| (value.to_string(), rows.meeting))
        .collect()
}

/// Bytes that all of it takes.
pub fn meeting_bytes(model: &Model) -> u64 {
    let met = met(model).into_iter();
    met.map(|(_, rows)| InputGram::expected_bytes(rows.meeting.groups(), rows.inputs))
        .sum()
}

/// Values, and how constants are multiplied with them; what several do alike once.
fn met(model: &Model) -> Vec<(&str, Rows)> {
    let mut found: Vec<(&str, Rows)> = Vec::new();
    for node in &model.graph.nodes {
        let constant = node
            .input_at(1)
            .and_then(|name| model.graph.initializers.get(name));
        let rows = constant.and_then(|weight| Rows::of(node, &weight.shape().ok()?));
        let (Some(rows), Some(value)) = (rows, node.input_at(0)) else {
            continue;
        };
        let mut before = found.iter().filter(|(other, _)| *other == value);
        if !before.any(|(_, other)| other.meeting == rows.meeting && other.inputs == rows.inputs) {
            found.push((value, rows));
        }
    }
    found
}

/// How the weights of a layer lie: a row has the weights of one output.
pub(super) struct Rows {
    pub(super) meeting: Im2colView,
    pub(super) inputs: usize,
    outputs: usize,
    /// Whether those of one input lie together in memory, not those of one output.
    turned: bool,
}

impl Rows {
    /// `None` where the operator has no such weights.
    pub(super) fn of(node: &NodeProto, shape: &[usize]) -> Option<Rows> {
        if node.is("Conv") {
            let (&[outputs, channels], kernel) = shape.split_first_chunk()?;
            let groups = usize::try_from(node.int("group").unwrap_or(1)).ok()?;
            let slides = Slide::of(node, kernel)?;
            let sound = groups > 0 && outputs.is_multiple_of(groups);
            return sound.then_some(Rows {
                meeting: Im2colView::Windows { groups, slides },
                inputs: channels * kernel.iter().product::<usize>(),
                outputs,
                turned: false,
            });
        }
        let turned = if node.is("Gemm") {
            if node.int("transA").unwrap_or(0) != 0 {
                return None;
            }
            node.int("transB").unwrap_or(0) == 0
        } else if node.is("MatMul") {
            true
        } else {
            return None;
        };
        let &[first, second] = shape else {
            return None;
        };
        let (inputs, outputs) = if turned {
            (first, second)
        } else {
            (second, first)
        };
        Some(Rows {
            meeting: Im2colView::Rows,
            inputs,
            outputs,
            turned,
        })
    }

    /// The axis of the outputs.
    fn axis(&self) -> usize {
        usize::from(self.turned)
    }

    fn place(&self, output: usize, input: usize) -> usize {
        match self.turned {
            true => input * self.outputs + output,
            false => output * self.inputs + input,
        }
    }
}

/// What is known of the inputs of weights.
pub(super) struct Compensation<'a> {
    model: &'a Model,
    observations: &'a Observations,
    /// The nodes that read a constant as their weight.
    readers: BTreeMap<&'a str, Vec<usize>>,
    /// Weights whose mean errors biases make up for.
    corrected: Vec<&'a str>,
}

impl<'a> Compensation<'a> {
    /// What a plan that wants it can know; `None` where it doesn't, or where there is nothing to round together.
    pub(super) fn new(
        model: &'a Model,
        plan: &'a Plan,
        ranges: Ranges<'a>,
    ) -> Result<Option<Compensation<'a>>, QuantizeError> {
        if plan.rounding == Rounding::Nearest {
            return Ok(None);
        }
        let Some(observations) = known(model, Some(ranges))? else {
            return Ok(None);
        };
        let mut readers: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, node) in model.graph.nodes.iter().enumerate() {
            for (slot, name) in node.input.iter().enumerate() {
                // Who takes it for anything else reads its rounded numbers, too.
                let node = if slot == 1 && plan.quantized.contains(&index) {
                    index
                } else {
                    usize::MAX
                };
                readers.entry(name).or_default().push(node);
            }
        }
        let biases = plan.biases.iter().filter(|_| plan.correct_biases);
        Ok(Some(Compensation {
            model,
            observations,
            readers,
            corrected: biases.map(|bias| bias.weight.as_str()).collect(),
        }))
    }

    /// The integers of a weight, and by what factor the mean square of what their errors add is less than with each rounded to the
    /// nearest; `None` where that is all that can be done.
    pub(super) fn integers(
        &self,
        tensor: &TensorProto,
        name: &str,
        parameters: &QuantizationParameters,
        used: IntegerBounds,
    ) -> Result<Option<(TensorProto, f64)>, TensorError> {
        let shape = tensor.shape()?;
        let Some(&[reader]) = self.readers.get(name).map(Vec::as_slice) else {
            return Ok(None);
        };
        let Some(node) = self.model.graph.nodes.get(reader) else {
            return Ok(None);
        };
        let known = Rows::of(node, &shape)
            .filter(|rows| parameters.axis.is_none_or(|axis| axis == rows.axis()))
            .and_then(|rows| Some((moments(self.observations, node, &rows)?, rows)));
        let Some((moments, rows)) = known else {
            return Ok(None);
        };
        let values = tensor.to_f32()?;
        let of = |output: usize| {
            let channel = if parameters.axis.is_some() { output } else { 0 };
            (parameters.scales[channel], parameters.zero_points[channel])
        };
        let mut integers: Vec<i32> = vec![0; values.len()];
        for output in 0..rows.outputs {
            let (scale, zero_point) = of(output);
            for input in 0..rows.inputs {
                let place = rows.place(output, input);
                integers[place] = quantize_value(values[place], scale, zero_point, used);
            }
        }
        let mut errors = Vec::new();
        let each = rows.outputs / rows.meeting.groups();
        for (group, block, factor) in factors(moments, self.corrected.contains(&name)) {
            let Some(factor) = factor else { continue };
            let one = |output: usize| {
                let (scale, zero_point) = of(output);
                let round = |_: usize, wanted: f64| {
                    let steps =
                        (wanted / f64::from(scale)).round_ties_even() + f64::from(zero_point);
                    // What is no number is 0, and no integer leaves those that are used.
                    let integer = (steps as i32).clamp(used.low, used.high);
                    (integer, f64::from(integer - zero_point) * f64::from(scale))
                };
                let places = block.clone().map(|input| rows.place(output, input));
                let own: Vec<f32> = places.clone().map(|place| values[place]).collect();
                let mut made: Vec<i32> = places.map(|place| integers[place]).collect();
                let errors = factor.better(&own, &mut made, round);
                (made, errors)
            };
            let outputs = group * each..(group + 1) * each;
            let made: Vec<_> = outputs.clone().into_par_iter().map(one).collect();
            for (output, (made, error)) in outputs.zip(made) {
                errors.push(error);
                for (input, integer) in block.clone().zip(made) {
                    integers[rows.place(output, input)] = integer;
                }
            }
        }
        let raw = encoded(parameters.element, integers).into();
        let made = TensorProto::from_raw(name, parameters.element, &shape, raw);
        Ok(gained(errors.into_iter()).map(|gained| (made, gained)))
    }
}

/// By what factor the sum of mean squares is less, of pairs of before and after; `None` where there was nothing to gain.
pub(super) fn gained(errors: impl Iterator<Item = [f64; 2]>) -> Option<f64> {
    let [before, after] = errors.fold([0.0; 2], |all, one| [all[0] + one[0], all[1] + one[1]]);
    (before > 0.0 && after > 0.0).then_some(before / after)
}

/// A factor between squares, as it is told.
pub(super) fn decibels(factor: f64) -> f32 {
    (10.0 * factor.log10()) as f32
}

/// What a calibration saw, if its further pass did; `None` where there was nothing for it to see, as the model has no such
/// weights.
pub(super) fn known<'a>(
    model: &Model,
    ranges: Option<Ranges<'a>>,
) -> Result<Option<&'a Observations>, QuantizeError> {
    let met = met(model);
    match ranges {
        _ if met.is_empty() => Ok(None),
        Some(Ranges::Seen(seen, _)) if seen.values().any(|seen| seen.has_input_grams()) => {
            Ok(Some(seen))
        }
        // Of values that are no floats nothing is seen.
        Some(Ranges::Seen(seen, _)) if !met.iter().any(|(value, _)| seen.contains_key(*value)) => {
            Ok(None)
        }
        _ => Err(QuantizeError::MomentsMissing),
    }
}

/// What was seen of a layer's inputs.
pub(super) fn moments<'a>(
    observations: &'a Observations,
    node: &NodeProto,
    rows: &Rows,
) -> Option<&'a InputGram> {
    let seen = observations.get(node.input_at(0)?)?;
    let moments = seen.input_gram(&rows.meeting)?;
    (moments.extents()? == (rows.meeting.groups(), rows.inputs)).then_some(moments)
}

/// Of each group and block of inputs what their weights are rounded with.
pub(super) fn factors(
    moments: &InputGram,
    centred: bool,
) -> impl Iterator<Item = (usize, Range<usize>, Option<Factor>)> {
    let groups = moments.extents().map_or(0, |(groups, _)| groups);
    (0..groups).flat_map(move |group| {
        let means = moments.means(group);
        let blocks = moments.blocks().into_iter().enumerate();
        blocks.map(move |(index, block)| {
            let means = centred.then(|| &means[block.clone()]);
            let factor = Factor::new(&moments.products(group, index), means, moments.positions());
            (group, block, factor)
        })
    })
}
