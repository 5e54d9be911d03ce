//! The noise that rounding adds to the outputs of the first layers.

use std::collections::HashMap;

use super::super::ranges::ActivationRanges;
use super::super::scale::QuantizationParameters;
use super::{PathConstant, input_paths};
use octet_graph::{LayerWeightLayout, Model, Node};
use octet_onnx::schema::TensorProto;
use octet_onnx::tensor::TensorError;
use octet_stats::ChannelMoments;

/// Noise of rounding on the input paths, relative to the variance of the first layers' outputs,
/// averaged over output channels.
#[derive(Debug, Default)]
pub(in super::super) struct InputNoise<'a> {
    /// Noise per squared step, by value and constant of the paths. The largest over the layers
    /// counts.
    by_step: HashMap<&'a str, f64>,
    /// The layer of each weight, with its input's moments per channel.
    weights: HashMap<&'a str, (&'a Node, Vec<ChannelMoments>)>,
}

impl<'a> InputNoise<'a> {
    pub(in super::super) fn new(
        model: &'a Model,
        ranges: ActivationRanges<'_>,
    ) -> Result<InputNoise<'a>, TensorError> {
        let mut input_noise = InputNoise::default();
        let ActivationRanges::Observed(observations, _) = ranges else {
            return Ok(input_noise);
        };
        for path in input_paths(model) {
            let moments = |value: &str| {
                let seen = observations
                    .get(value)
                    .and_then(|seen| seen.channel_variance());
                seen.map_or_else(Vec::new, |spread| spread.moments())
            };
            let Some(tensor) = model.graph.initializers.get(path.weight) else {
                continue;
            };
            let own = path
                .values
                .first()
                .map_or_else(Vec::new, |(value, _)| moments(value));
            // Rounding adds a variance of step²/12 to each number.
            let mut add = |name: &'a str, gain: &[f64], times: &[f64]| {
                let noise = |gain: &f64, times: &f64| gain * gain * times / 12.0;
                let noises = gain
                    .iter()
                    .zip(times)
                    .map(|(gain, times)| noise(gain, times));
                let channels: Vec<[f64; 2]> =
                    noises.zip(&own).map(|(n, m)| [n, m.variance]).collect();
                let ratio = noise_ratio(path.node, tensor, &channels, |_, square| square)?;
                let most = input_noise.by_step.entry(name).or_default();
                *most = most.max(ratio.unwrap_or(0.0));
                Ok::<(), TensorError>(())
            };
            let ones = vec![1.0; own.len()];
            for (value, gains) in &path.values {
                add(value, gains, &ones)?;
            }
            for PathConstant { name, gain, times } in &path.constants {
                let squares = |value: &&str| moments(value).iter().map(|m| m.square).collect();
                let times: Vec<f64> = times.as_ref().map_or_else(|| ones.clone(), squares);
                add(name, gain, &times)?;
            }
            input_noise.weights.insert(path.weight, (path.node, own));
        }
        Ok(input_noise)
    }

    /// Noise of rounding a value or constant with this step; 0 for names off the paths.
    pub(in super::super) fn of_step(&self, name: &str, step: f64) -> f64 {
        self.by_step.get(name).map_or(0.0, |by| by * step * step)
    }

    /// Noise of rounding a first weight; `None` for other weights.
    pub(in super::super) fn of_weight(
        &self,
        name: &str,
        tensor: &TensorProto,
        parameters: &QuantizationParameters,
    ) -> Result<Option<f64>, TensorError> {
        let Some((node, moments)) = self.weights.get(name) else {
            return Ok(None);
        };
        let channels: Vec<[f64; 2]> = moments
            .iter()
            .map(|m| [m.square / 12.0, m.variance])
            .collect();
        let step = |index: [usize; 2]| {
            let own = parameters.axis.and_then(|axis| index.get(axis));
            let scale = parameters.scales.get(own.copied().unwrap_or(0));
            scale.map_or(0.0, |&scale| f64::from(scale))
        };
        noise_ratio(node, tensor, &channels, |index, _| step(index).powi(2))
    }
}

/// The noise-to-signal ratio of a layer, averaged over its outputs.
///
/// `channels` has a noise and a variance factor for each input channel. An output's noise is Σ
/// `noise`(weight) · noise factor, its signal Σ weight² · variance factor. `None` if the channel
/// counts differ or nothing varies.
///
/// `noise` takes the weight's indices along its first two axes, and its square.
fn noise_ratio(
    node: &Node,
    tensor: &TensorProto,
    channels: &[[f64; 2]],
    noise: impl Fn([usize; 2], f64) -> f64,
) -> Result<Option<f64>, TensorError> {
    const ALMOST_NOTHING: f64 = 1e-6;
    let weight_layout = LayerWeightLayout::from_node(node, &tensor.shape()?)
        .filter(|weight_layout| weight_layout.inputs == channels.len());
    let Some(weight_layout) = weight_layout else {
        return Ok(None);
    };
    let mut sums = vec![[0.0; 2]; weight_layout.outputs];
    for (window, weights) in tensor
        .to_f32()?
        .chunks_exact(weight_layout.taps)
        .enumerate()
    {
        let (input, output) = weight_layout.of_window(window);
        let index = [
            weight_layout.index(window, 0),
            weight_layout.index(window, 1),
        ];
        for &weight in weights {
            let square = f64::from(weight).powi(2);
            sums[output][0] += noise(index, square) * channels[input][0];
            sums[output][1] += square * channels[input][1];
        }
    }
    // Skips outputs with almost no variance, which carry no signal.
    let most = sums.iter().map(|sum| sum[1]).fold(0.0, f64::max);
    let varies = |sum: &&[f64; 2]| sum[1] > ALMOST_NOTHING * most;
    let (mut all, mut count) = (0.0, 0);
    for [noise, signal] in sums.iter().filter(varies) {
        all += noise / signal;
        count += 1;
    }
    Ok((count > 0 && f64::is_finite(all)).then(|| all / f64::from(count)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use octet_graph::{Dim, TensorType};
    use octet_onnx::schema::{DataType, GraphProto, ModelProto, NodeProto, ValueInfoProto};
    use octet_stats::{CalibrationStatistics, Method, TensorStatistics};

    const WEIGHTS: [f32; 4] = [1.0, 2.0, -3.0, 0.5];

    /// A model of nodes `[operator, input, input, output]` from `x`, of two columns, to a MatMul of
    /// `n` with two outputs.
    pub(in super::super) fn model(nodes: &[[&str; 4]], constants: &[(&str, [f32; 2])]) -> Model {
        let node = |[operator, one, other, output]: &[&str; 4]| {
            NodeProto::new(operator, output, &[one, other], &[output])
        };
        let rows = TensorType {
            element: DataType::Float,
            shape: Some(vec![Dim::Named("rows".into()), Dim::Known(2)]),
        };
        let weights = TensorProto::from_f32("w", &[2, 2], &WEIGHTS);
        let constant =
            |(name, values): &(&str, [f32; 2])| TensorProto::from_f32(name, &[2], values);
        let between = nodes
            .iter()
            .map(|[.., output]| ValueInfoProto::new(output, &rows));
        let last = NodeProto::new("MatMul", "y", &["n", "w"], &["y"]);
        let graph = GraphProto {
            node: nodes.iter().map(node).chain([last]).collect(),
            initializer: constants.iter().map(constant).chain([weights]).collect(),
            input: vec![ValueInfoProto::new("x", &rows)],
            output: vec![ValueInfoProto::new("y", &rows)],
            value_info: between.collect(),
            ..Default::default()
        };
        Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
    }

    fn seen(values: &[f32]) -> TensorStatistics {
        let mut seen = TensorStatistics::from_values(values);
        seen.observe_variance(values, &[values.len() / 2, 2], 1);
        seen
    }

    /// The model `y = ((x - m) / d) · w`, and the statistics of the values on its path for these
    /// rows.
    pub(in super::super) fn divided(
        rows: &[f32],
        m: [f32; 2],
        d: [f32; 2],
    ) -> (Model, CalibrationStatistics) {
        let model = model(
            &[["Sub", "x", "m", "c"], ["Div", "c", "d", "n"]],
            &[("m", m), ("d", d)],
        );
        let each = |make: &dyn Fn(f32, usize) -> f32| -> Vec<f32> {
            let rows = rows.iter().enumerate();
            rows.map(|(at, &x)| make(x, at % 2)).collect()
        };
        let values = [
            ("x", rows.to_vec()),
            ("c", each(&|x, at| x - m[at])),
            ("n", each(&|x, at| (x - m[at]) / d[at])),
        ];
        let observations = values.map(|(name, values)| (name.to_string(), seen(&values)));
        (model, observations.into_iter().collect())
    }

    /// Rows of two uncorrelated columns of these sizes.
    fn columns(sizes: [f32; 2]) -> Vec<f32> {
        let row = |i: u16| [0.37, 0.89].map(|turn| (f32::from(i) * turn).sin());
        let rows = (0..500).map(row);
        rows.flat_map(|[a, b]| [a * sizes[0], b * sizes[1]])
            .collect()
    }

    #[test]
    fn noise_of_a_step_is_that_of_a_changed_input() {
        let rows = columns([40.0, 0.3]);
        let (m, d) = ([5.0, -0.25], [30.0, 0.125]);
        let (model, observations) = divided(&rows, m, d);
        let ranges = ActivationRanges::Observed(&observations, Method::MinMax);
        let input_noise = InputNoise::new(&model, ranges).unwrap();
        // The expected value: the mean square change of an output relative to the output's
        // variance.
        let outputs = |change: &dyn Fn(f32, usize) -> f32| -> Vec<[f64; 2]> {
            let row = |row: &[f32]| {
                let n = [change(row[0], 0), change(row[1], 1)].map(f64::from);
                [0, 1].map(|o| n[0] * f64::from(WEIGHTS[o]) + n[1] * f64::from(WEIGHTS[2 + o]))
            };
            rows.chunks_exact(2).map(row).collect()
        };
        let whole = outputs(&|x, at| (x - m[at]) / d[at]);
        let step = 1e-3f32;
        let share = |change: &dyn Fn(f32, usize, usize) -> f32| -> f64 {
            // Each column changes separately, because their rounding errors are independent.
            let count = whole.len() as f64;
            let share = |o: usize| {
                let mean = whole.iter().map(|y| y[o]).sum::<f64>() / count;
                let variance = whole.iter().map(|y| (y[o] - mean).powi(2)).sum::<f64>() / count;
                let noise = [0, 1].map(|column| {
                    let changed = outputs(&|x, at| change(x, at, column));
                    let both = changed.iter().zip(&whole);
                    both.map(|(one, other)| (one[o] - other[o]).powi(2))
                        .sum::<f64>()
                        / count
                });
                (noise[0] + noise[1]) / 12.0 / variance
            };
            (share(0) + share(1)) / 2.0
        };
        let by = |at: usize, column: usize| if at == column { step } else { 0.0 };
        let n = |x: f32, at: usize| (x - m[at]) / d[at];
        let wanted = [
            ("x", share(&|x, at, column| n(x + by(at, column), at))),
            ("c", share(&|x, at, column| n(x + by(at, column), at))),
            ("m", share(&|x, at, column| n(x - by(at, column), at))),
            ("n", share(&|x, at, column| n(x, at) + by(at, column))),
            (
                "d",
                share(&|x, at, column| (x - m[at]) / (d[at] + by(at, column))),
            ),
        ];
        for (name, wanted) in wanted {
            let actual = input_noise.of_step(name, step.into());
            // The formula assumes uncorrelated columns; these are slightly correlated.
            assert!(
                (actual / wanted - 1.0).abs() < 0.1,
                "{name}: {actual}, {wanted}"
            );
        }
        assert_eq!(input_noise.of_step("y", 1.0), 0.0);
    }

    #[test]
    fn noise_of_a_weight_grows_with_its_input() {
        let added = |sizes: [f32; 2]| {
            let rows = columns(sizes);
            let (model, observations) = divided(&rows, [0.0; 2], [1.0; 2]);
            let ranges = ActivationRanges::Observed(&observations, Method::MinMax);
            let input_noise = InputNoise::new(&model, ranges).unwrap();
            let parameters = QuantizationParameters {
                element: DataType::Int8,
                axis: Some(1),
                scales: vec![0.01, 0.02],
                zero_points: vec![0, 0],
            };
            let tensor = model.graph.initializers.get("w").unwrap();
            input_noise
                .of_weight("w", tensor, &parameters)
                .unwrap()
                .unwrap()
        };
        // By the formula, for each column of the weights: step² / 12 · Σ sizes² / Σ w²·sizes².
        let wanted = |sizes: [f64; 2]| {
            let [a, b] = sizes.map(|size| size * size);
            let of = |step: f64, w: [f64; 2]| {
                step * step / 12.0 * (a + b) / (w[0] * w[0] * a + w[1] * w[1] * b)
            };
            (of(0.01, [1.0, -3.0]) + of(0.02, [2.0, 0.5])) / 2.0
        };
        for sizes in [[1.0, 1.0], [100.0, 0.5]] {
            let actual = added(sizes.map(|size| size as f32));
            assert!(
                (actual / wanted(sizes) - 1.0).abs() < 0.02,
                "{actual}, {}",
                wanted(sizes)
            );
        }
    }
}
