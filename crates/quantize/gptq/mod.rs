//! GPTQ: rounds the weights of a layer so that their errors cancel, from the Gram matrix of the
//! layer's input.

mod factor;

use std::collections::HashSet;
use std::ops::Range;

use rayon::prelude::*;

pub use factor::GramFactor;

use super::QuantizeError;
use super::plan::Plan;
use super::ranges::ActivationRanges;
use super::scale::{IntegerBounds, QuantizationParameters, encoded, quantize_value};
use super::settings::Rounding;
use octet_graph::{Model, Node, SlidingWindow, Use};
use octet_onnx::schema::TensorProto;
use octet_onnx::tensor::TensorError;
use octet_stats::{CalibrationStatistics, Im2colView, InputGram};

/// The values whose Gram matrices `gptq` needs, each with the view in which its readers' weights
/// multiply it.
pub fn gram_views(model: &Model) -> Vec<(String, Im2colView)> {
    let views = weight_views(model).into_iter();
    views
        .map(|(value, rows)| (value.to_string(), rows.view))
        .collect()
}

/// The bytes of all these Gram matrices.
pub fn gram_bytes(model: &Model) -> u64 {
    let views = weight_views(model).into_iter();
    views
        .map(|(_, rows)| InputGram::expected_bytes(rows.view.groups(), rows.inputs))
        .sum()
}

/// The inputs of layers with constant weights. Layers with equal views of one value share an entry.
fn weight_views(model: &Model) -> Vec<(&str, WeightRows)> {
    let mut layers: Vec<(&str, WeightRows)> = Vec::new();
    for node in model.graph.nodes() {
        let constant = node
            .input_at(1)
            .and_then(|name| model.graph.initializers.get(name));
        let rows = constant.and_then(|weight| WeightRows::from_node(node, &weight.shape().ok()?));
        let (Some(rows), Some(value)) = (rows, node.input_at(0)) else {
            continue;
        };
        let mut same_value = layers.iter().filter(|(other, _)| *other == value);
        if !same_value.any(|(_, other)| other.view == rows.view && other.inputs == rows.inputs) {
            layers.push((value, rows));
        }
    }
    layers
}

/// The layout of a layer's weights as a matrix with one row per output channel.
#[derive(Clone, Debug)]
pub struct WeightRows {
    pub(super) view: Im2colView,
    pub(super) inputs: usize,
    outputs: usize,
    /// True if the outer dimension in memory is the input, not the output channel.
    transposed: bool,
}

impl WeightRows {
    /// `None` for operators without such weights.
    pub fn from_node(node: &Node, shape: &[usize]) -> Option<WeightRows> {
        if node.is("Conv") {
            let (&[outputs, channels], kernel) = shape.split_first_chunk()?;
            let groups = usize::try_from(node.int("group").unwrap_or(1)).ok()?;
            let slides = SlidingWindow::from_node(node, kernel)?;
            let sound = groups > 0 && outputs.is_multiple_of(groups);
            return sound.then_some(WeightRows {
                view: Im2colView::Windows { groups, slides },
                inputs: channels * kernel.iter().product::<usize>(),
                outputs,
                transposed: false,
            });
        }
        let transposed = if node.is("Gemm") {
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
        let (inputs, outputs) = if transposed {
            (first, second)
        } else {
            (second, first)
        };
        Some(WeightRows {
            view: Im2colView::Rows,
            inputs,
            outputs,
            transposed,
        })
    }

    /// The layout in which the layer reads its input.
    pub fn view(&self) -> &Im2colView {
        &self.view
    }

    /// Number of inputs of an output.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The axis of the output channels.
    pub fn axis(&self) -> usize {
        usize::from(self.transposed)
    }

    /// The place of a weight in memory.
    pub fn place(&self, output: usize, input: usize) -> usize {
        match self.transposed {
            true => input * self.outputs + output,
            false => output * self.inputs + input,
        }
    }
}

/// The data of GPTQ for the weights of a model.
pub(super) struct Gptq<'a> {
    model: &'a Model,
    observations: &'a CalibrationStatistics,
    /// The nodes that become integers.
    quantized: &'a HashSet<usize>,
    /// Weights whose mean error a bias corrects.
    corrected: Vec<&'a str>,
}

impl<'a> Gptq<'a> {
    /// The data for a plan with this rounding; `None` with another rounding, or if no layer is
    /// suitable.
    pub(super) fn new(
        model: &'a Model,
        plan: &'a Plan,
        ranges: ActivationRanges<'a>,
    ) -> Result<Option<Gptq<'a>>, QuantizeError> {
        if plan.rounding != Rounding::Gptq {
            return Ok(None);
        }
        let Some(observations) = gram_statistics(model, Some(ranges))? else {
            return Ok(None);
        };
        let biases = plan.biases.iter().filter(|_| plan.correct_biases);
        Ok(Some(Gptq {
            model,
            observations,
            quantized: &plan.quantized,
            corrected: biases.map(|bias| bias.weight.as_str()).collect(),
        }))
    }

    /// The integers of a weight, and the factor by which they lower the mean square error of the
    /// layer's output, compared with rounding to nearest. `None` if GPTQ does not apply to the
    /// weight.
    pub(super) fn integers(
        &self,
        tensor: &TensorProto,
        name: &str,
        parameters: &QuantizationParameters,
        used: IntegerBounds,
    ) -> Result<Option<(TensorProto, f64)>, TensorError> {
        let shape = tensor.shape()?;
        // Any other use reads the rounded numbers too, so it rules out GPTQ.
        let reader = self.model.graph.only_consumer(name);
        let weighs = |reader: &Use| reader.is_input(1) && self.quantized.contains(&reader.node);
        let Some(reader) = reader.filter(weighs) else {
            return Ok(None);
        };
        let node = &self.model.graph.nodes()[reader.node];
        let input = WeightRows::from_node(node, &shape)
            .filter(|rows| parameters.axis.is_none_or(|axis| axis == rows.axis()))
            .and_then(|rows| Some((input_gram(self.observations, node, &rows)?, rows)));
        let Some((gram, rows)) = input else {
            return Ok(None);
        };
        let values = tensor.to_f32()?;
        let grid = |output: usize| {
            let channel = if parameters.axis.is_some() { output } else { 0 };
            (parameters.scales[channel], parameters.zero_points[channel])
        };
        let mut integers: Vec<i32> = vec![0; values.len()];
        for output in 0..rows.outputs {
            let (scale, zero_point) = grid(output);
            for input in 0..rows.inputs {
                let place = rows.place(output, input);
                integers[place] = quantize_value(values[place], scale, zero_point, used);
            }
        }
        let mut errors = Vec::new();
        let per_group = rows.outputs / rows.view.groups();
        for (group, block, factor) in gram_factors(gram, self.corrected.contains(&name)) {
            let Some(factor) = factor else { continue };
            let round_output = |output: usize| {
                let (scale, zero_point) = grid(output);
                let round = |_: usize, wanted: f64| {
                    let steps =
                        (wanted / f64::from(scale)).round_ties_even() + f64::from(zero_point);
                    // NaN becomes 0, and every integer stays within the allowed range.
                    let integer = (steps as i32).clamp(used.low, used.high);
                    (integer, f64::from(integer - zero_point) * f64::from(scale))
                };
                let places = block.clone().map(|input| rows.place(output, input));
                let own: Vec<f32> = places.clone().map(|place| values[place]).collect();
                let mut row: Vec<i32> = places.map(|place| integers[place]).collect();
                let errors = factor.improve(&own, &mut row, round);
                (row, errors)
            };
            let outputs = group * per_group..(group + 1) * per_group;
            let rounded: Vec<_> = outputs.clone().into_par_iter().map(round_output).collect();
            for (output, (row, error)) in outputs.zip(rounded) {
                errors.push(error);
                for (input, integer) in block.clone().zip(row) {
                    integers[rows.place(output, input)] = integer;
                }
            }
        }
        let raw = encoded(parameters.element, integers).into();
        let rounded = TensorProto::from_raw(name, parameters.element, &shape, raw);
        Ok(error_reduction(errors.into_iter()).map(|error_reduction| (rounded, error_reduction)))
    }
}

/// The ratio of total mean squares, from pairs of before and after. `None` if either is zero.
pub(super) fn error_reduction(errors: impl Iterator<Item = [f64; 2]>) -> Option<f64> {
    let [before, after] = errors.fold([0.0; 2], |all, one| [all[0] + one[0], all[1] + one[1]]);
    (before > 0.0 && after > 0.0).then_some(before / after)
}

/// A ratio of mean squares in decibels.
pub(super) fn decibels(factor: f64) -> f32 {
    (10.0 * factor.log10()) as f32
}

/// The statistics, if the extra pass collected Gram matrices. `None` if the model has no weights
/// that need them; an error if the extra pass is missing.
pub(super) fn gram_statistics<'a>(
    model: &Model,
    ranges: Option<ActivationRanges<'a>>,
) -> Result<Option<&'a CalibrationStatistics>, QuantizeError> {
    let views = weight_views(model);
    match ranges {
        _ if views.is_empty() => Ok(None),
        Some(ActivationRanges::Observed(seen, _))
            if seen.values().any(|seen| seen.has_input_grams()) =>
        {
            Ok(Some(seen))
        }
        // Values of other types than float have no statistics.
        Some(ActivationRanges::Observed(seen, _))
            if !views.iter().any(|(value, _)| seen.contains_key(*value)) =>
        {
            Ok(None)
        }
        _ => Err(QuantizeError::GramMatricesMissing),
    }
}

/// The Gram matrices of a layer's input, if their sizes fit the layer.
pub(super) fn input_gram<'a>(
    observations: &'a CalibrationStatistics,
    node: &Node,
    rows: &WeightRows,
) -> Option<&'a InputGram> {
    let seen = observations.get(node.input_at(0)?)?;
    let gram = seen.input_gram(&rows.view)?;
    (gram.extents()? == (rows.view.groups(), rows.inputs)).then_some(gram)
}

/// The factorization for each group and block of inputs. With `centred`, the means are subtracted,
/// because a bias corrects the mean error.
pub(super) fn gram_factors(
    gram: &InputGram,
    centred: bool,
) -> impl Iterator<Item = (usize, Range<usize>, Option<GramFactor>)> {
    let groups = gram.extents().map_or(0, |(groups, _)| groups);
    (0..groups).flat_map(move |group| {
        let means = gram.means(group);
        let blocks = gram.blocks().into_iter().enumerate();
        blocks.map(move |(index, block)| {
            let means = centred.then(|| &means[block.clone()]);
            let factor = GramFactor::new(&gram.products(group, index), means, gram.positions());
            (group, block, factor)
        })
    })
}
