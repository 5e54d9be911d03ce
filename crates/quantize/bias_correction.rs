//! Bias correction: the bias absorbs the mean error that rounding the weights adds to a layer's
//! output.
//!
//! A rounded weight w + e adds e·x to its output channel. Calibration measures the mean of x per
//! input channel, so the mean error is Σ e·E[x] over the weights of an output channel. The bias
//! subtracts it, and the remaining error has zero mean.
//!
//! Near the border a kernel lies partly in the padding. Each of its weights counts with the
//! fraction of output positions at which it is inside the input.

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;

use super::plan::{Plan, PlannedBias};
use super::ranges::ActivationRanges;
use super::scale::QuantizationParameters;
use super::weights::ConstantIntegers;
use octet_graph::{LayerWeightLayout, Model, Node, SlidingWindow};
use octet_onnx::schema::TensorProto;
use octet_onnx::tensor::TensorError;
use octet_stats::{CalibrationStatistics, ChannelMeans};

/// The values whose channel means bias correction needs, with their channel axes.
pub fn channel_axes(model: &Model) -> BTreeMap<String, usize> {
    let constant = |name: Option<&str>| name.is_some_and(|n| model.graph.initializers.contains(n));
    let axis = |node: &Node| {
        let known = corrected_operator(node).is_some()
            && constant(node.input_at(1))
            && constant(node.input_at(2));
        let name = node.input_at(0).filter(|_| known)?;
        // The channel axis is 1 for the rows of a Gemm and the images of a Conv.
        Some((name.to_string(), 1))
    };
    model.graph.nodes().iter().filter_map(axis).collect()
}

/// The correction of each planned bias, per channel; empty for biases without one.
pub(super) fn corrections(
    model: &Model,
    plan: &Plan,
    ranges: ActivationRanges<'_>,
    constants: &HashMap<String, QuantizationParameters>,
    integers: &HashMap<&str, ConstantIntegers>,
) -> Result<Vec<Vec<f64>>, TensorError> {
    let ActivationRanges::Observed(observations, _) = ranges else {
        return Ok(vec![Vec::new(); plan.biases.len()]);
    };
    let correct_one = |planned: &PlannedBias| {
        let weight = constants.get(&planned.weight);
        match weight.zip(integers.get(planned.weight.as_str())) {
            Some((weight, rounded)) if plan.correct_biases => {
                correction(model, planned, observations, weight, &rounded.tensor)
            }
            _ => Ok(Vec::new()),
        }
    };
    plan.biases.par_iter().map(correct_one).collect()
}

fn correction(
    model: &Model,
    planned: &PlannedBias,
    observations: &CalibrationStatistics,
    weight: &QuantizationParameters,
    integers: &TensorProto,
) -> Result<Vec<f64>, TensorError> {
    let node = &model.graph.nodes()[planned.node];
    let constants = &model.graph.initializers;
    let seen = observations.get(&planned.input);
    let (Some(operator), Some(tensor), Some(bias), Some(channels)) = (
        corrected_operator(node),
        constants.get(&planned.weight),
        constants.get(&planned.name),
        seen.and_then(|seen| seen.channel_means()),
    ) else {
        return Ok(Vec::new());
    };
    let grids: Vec<_> = weight.grids().collect();
    let Some(layout) = CorrectionLayout::from_node(node, operator, &tensor.shape()?, channels)
    else {
        return Ok(Vec::new());
    };
    let Some(means) = channels
        .means()
        .filter(|m| m.len() == layout.weight_layout.inputs)
    else {
        return Ok(Vec::new());
    };
    if bias.shape()? != [layout.weight_layout.outputs] {
        return Ok(Vec::new());
    }
    let mut added = vec![0.0; layout.weight_layout.outputs];
    let (values, integers) = (tensor.to_f32()?, integers.to_i64()?);
    let (weight_layout, taps) = (&layout.weight_layout, layout.inside_fractions.len());
    let windows = values.len() / taps.max(1);
    let mut window = 0;
    while window < windows {
        let channel = weight
            .axis
            .map_or(0, |axis| weight_layout.index(window, axis));
        let Some(grid) = grids.get(channel) else {
            return Ok(Vec::new());
        };
        // Windows with one scale and one output are added together, over neighbouring inputs.
        let (input, output) = weight_layout.of_window(window);
        let together = match weight.axis {
            Some(1) => 1,
            _ => weight_layout.along_inputs(window).min(windows - window),
        };
        let these = window * taps..(window + together) * taps;
        added[output] += grid.added(
            &values[these.clone()],
            &integers[these],
            &layout.inside_fractions,
            &means[input..][..together],
        );
        window += together;
    }
    let correction: Vec<f64> = added.iter().map(|sum| -sum * layout.factor).collect();
    let sound = correction.iter().all(|c| c.is_finite());
    Ok(if sound { correction } else { Vec::new() })
}

/// The operators with bias correction.
#[derive(Clone, Copy, PartialEq)]
enum CorrectedOperator {
    Conv,
    ConvTranspose,
    Gemm,
}

fn corrected_operator(node: &Node) -> Option<CorrectedOperator> {
    if node.is("Conv") {
        Some(CorrectedOperator::Conv)
    } else if node.is("ConvTranspose") {
        // An explicit output shape determines the padding, in ways that differ between runtimes.
        let open = node.attribute("output_shape").is_none();
        open.then_some(CorrectedOperator::ConvTranspose)
    } else if node.is("Gemm") {
        let rows = node.int("transA").unwrap_or(0) == 0;
        rows.then_some(CorrectedOperator::Gemm)
    } else {
        None
    }
}

/// The weight layout of a layer, with the fraction of positions at which each weight counts.
struct CorrectionLayout {
    weight_layout: LayerWeightLayout,
    /// For each weight of a window, the fraction of output positions at which it is inside the
    /// input.
    inside_fractions: Vec<f64>,
    /// The factor of all products: Gemm's alpha.
    factor: f64,
}

impl CorrectionLayout {
    fn from_node(
        node: &Node,
        operator: CorrectedOperator,
        shape: &[usize],
        seen: &ChannelMeans,
    ) -> Option<CorrectionLayout> {
        let weight_layout = LayerWeightLayout::from_node(node, shape)?;
        let factor = match operator {
            CorrectedOperator::Gemm => f64::from(node.float("alpha").unwrap_or(1.0)),
            _ => 1.0,
        };
        let inside_fractions = match operator {
            CorrectedOperator::Gemm => vec![1.0],
            _ => inside_fractions(node, operator, &shape[2..], seen.extents().get(2..)?)?,
        };
        Some(CorrectionLayout {
            weight_layout,
            inside_fractions,
            factor,
        })
    }
}

/// For each weight of a kernel, the fraction of output positions at which it is inside the input.
/// `input` has the spatial sizes.
fn inside_fractions(
    node: &Node,
    operator: CorrectedOperator,
    kernel: &[usize],
    input: &[usize],
) -> Option<Vec<f64>> {
    if kernel.len() != input.len() {
        return None;
    }
    let mut all = vec![1.0];
    for (axis, (slide, &extent)) in SlidingWindow::from_node(node, kernel)?
        .iter()
        .zip(input)
        .enumerate()
    {
        let extent = i64::try_from(extent).ok().filter(|&extent| extent > 0)?;
        // A weight at `tap` connects position i of the stepped axis with a position of the other
        // axis. A Conv steps over its output, a ConvTranspose over its input.
        let (before, steps, bound, places) = match operator {
            CorrectedOperator::ConvTranspose => {
                let more = node.ints("output_padding").and_then(|more| more.get(axis));
                let more = more.copied().unwrap_or(0);
                let (before, count) = slide.output(extent, more);
                (before, extent, count, count)
            }
            _ => {
                let (before, count) = slide.places(extent);
                (before, count, extent, count)
            }
        };
        if places < 1 {
            return None;
        }
        let inside = |tap: i64| {
            let inside = (0..steps)
                .filter(|&place| (0..bound).contains(&slide.value_index(place, tap, before)));
            inside.count() as f64 / places as f64
        };
        let along: Vec<f64> = (0..slide.taps).map(inside).collect();
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
    use octet_graph::Attribute;

    fn node(operator: &str, attributes: &[(&str, &[i64])]) -> Node {
        let node = Node::new(operator, "n", &["x", "w", "b"], &["y"]);
        attributes.iter().fold(node, |node, (name, values)| {
            node.with(Attribute::ints(name, values))
        })
    }

    fn conv(kernel: &[usize], input: &[usize], attributes: &[(&str, &[i64])]) -> Vec<f64> {
        inside_fractions(
            &node("Conv", attributes),
            CorrectedOperator::Conv,
            kernel,
            input,
        )
        .unwrap()
    }

    #[test]
    fn a_weight_counts_with_its_fraction_inside() {
        assert_eq!(conv(&[1], &[5], &[]), [1.0]);
        // Three positions; each outer weight is outside at one of them.
        let same: &[(&str, &[i64])] = &[("pads", &[1, 1])];
        assert_eq!(conv(&[3], &[3], same), [2.0 / 3.0, 1.0, 2.0 / 3.0]);
        // With one position and a padding of one, only the middle weight is inside.
        assert_eq!(conv(&[3], &[1], same), [0.0, 1.0, 0.0]);
        let strided: &[(&str, &[i64])] = &[("pads", &[1, 1]), ("strides", &[2])];
        assert_eq!(conv(&[3], &[4], strided), [0.5, 1.0, 1.0]);
        let dilated: &[(&str, &[i64])] = &[("pads", &[2, 2]), ("dilations", &[2])];
        assert_eq!(conv(&[3], &[4], dilated), [0.5, 1.0, 0.5]);
        // The axes are independent: rows are outside, columns inside.
        let rows: &[(&str, &[i64])] = &[("pads", &[1, 0, 1, 0])];
        assert_eq!(conv(&[3, 2], &[1, 2], rows), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn a_transposed_kernel_covers_each_value_once() {
        let strided = node("ConvTranspose", &[("strides", &[2])]);
        let fractions =
            inside_fractions(&strided, CorrectedOperator::ConvTranspose, &[2], &[3]).unwrap();
        assert_eq!(fractions, [0.5, 0.5]);
        // Of six positions, one is cropped at each end; an outer weight of an outer value falls
        // there.
        let cut = node("ConvTranspose", &[("strides", &[2]), ("pads", &[1, 1])]);
        let fractions =
            inside_fractions(&cut, CorrectedOperator::ConvTranspose, &[2], &[3]).unwrap();
        assert_eq!(fractions, [0.5, 0.5]);
    }
}
