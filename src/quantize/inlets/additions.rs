//! What rounding adds to what the first weights make.

use std::collections::HashMap;

use super::super::ranges::Ranges;
use super::super::scale::QuantizationParameters;
use super::{Met, inlets};
use crate::calibrate::ChannelMoments;
use crate::graph::{Joins, Model};
use crate::onnx::schema::{NodeProto, TensorProto};
use crate::onnx::tensor::TensorError;

/// What rounding adds at the inlets, as parts of the variance of what their layers make, in the mean of these layers' outputs.
#[derive(Debug, Default)]
pub(in super::super) struct Additions<'a> {
    /// By each value and constant on the way: for a squared step of it. The most of its layers.
    by_step: HashMap<&'a str, f64>,
    /// Of each weight, how its layer's input varies.
    weights: HashMap<&'a str, (&'a NodeProto, Vec<ChannelMoments>)>,
}

impl<'a> Additions<'a> {
    pub(in super::super) fn of(
        model: &'a Model,
        ranges: Ranges<'_>,
    ) -> Result<Additions<'a>, TensorError> {
        let mut additions = Additions::default();
        let Ranges::Seen(observations, _) = ranges else {
            return Ok(additions);
        };
        for inlet in inlets(model) {
            let moments = |value: &str| {
                let seen = observations
                    .get(value)
                    .and_then(|seen| seen.channel_variance());
                seen.map_or_else(Vec::new, |spread| spread.moments())
            };
            let Some(tensor) = model.graph.initializers.get(inlet.weight) else {
                continue;
            };
            let own = inlet
                .way
                .first()
                .map_or_else(Vec::new, |(value, _)| moments(value));
            // A twelfth of a squared step for each number, against what varies.
            let mut add = |name: &'a str, growth: &[f64], times: &[f64]| {
                let noise = |growth: &f64, times: &f64| growth * growth * times / 12.0;
                let noises = growth
                    .iter()
                    .zip(times)
                    .map(|(growth, times)| noise(growth, times));
                let both: Vec<[f64; 2]> = noises.zip(&own).map(|(n, m)| [n, m.variance]).collect();
                let share = share(inlet.node, tensor, &both, |_, square| square)?;
                let most = additions.by_step.entry(name).or_default();
                *most = most.max(share.unwrap_or(0.0));
                Ok::<(), TensorError>(())
            };
            let ones = vec![1.0; own.len()];
            for (value, gains) in &inlet.way {
                add(value, gains, &ones)?;
            }
            for Met {
                name,
                growth,
                times,
            } in &inlet.constants
            {
                let squares = |value: &&str| moments(value).iter().map(|m| m.square).collect();
                let times: Vec<f64> = times.as_ref().map_or_else(|| ones.clone(), squares);
                add(name, growth, &times)?;
            }
            additions.weights.insert(inlet.weight, (inlet.node, own));
        }
        Ok(additions)
    }

    /// What rounding a value or constant before the first weights to this step adds; nothing that is known of any other.
    pub(in super::super) fn of_step(&self, name: &str, step: f64) -> f64 {
        self.by_step.get(name).map_or(0.0, |by| by * step * step)
    }

    /// What rounding a weight adds; `None` where that is not known.
    pub(in super::super) fn of_weight(
        &self,
        name: &str,
        tensor: &TensorProto,
        parameters: &QuantizationParameters,
    ) -> Result<Option<f64>, TensorError> {
        let Some((node, moments)) = self.weights.get(name) else {
            return Ok(None);
        };
        let both: Vec<[f64; 2]> = moments
            .iter()
            .map(|m| [m.square / 12.0, m.variance])
            .collect();
        let step = |place: [usize; 2]| {
            let own = parameters.axis.and_then(|axis| place.get(axis));
            let scale = parameters.scales.get(own.copied().unwrap_or(0));
            scale.map_or(0.0, |&scale| f64::from(scale))
        };
        share(node, tensor, &both, |place, _| step(place).powi(2))
    }
}

/// For each output of a layer the sum over its weights of the first number of the channel they meet by `noise` of the weight, against that
/// of the second by the weight's square; in the mean of the outputs. `None` where channels don't fit, or nothing varies.
///
/// `noise` takes the weight's places along its first two axes, and its square.
fn share(
    node: &NodeProto,
    tensor: &TensorProto,
    channels: &[[f64; 2]],
    noise: impl Fn([usize; 2], f64) -> f64,
) -> Result<Option<f64>, TensorError> {
    const ALMOST_NOTHING: f64 = 1e-6;
    let joins = Joins::of(node, &tensor.shape()?).filter(|joins| joins.inputs == channels.len());
    let Some(joins) = joins else {
        return Ok(None);
    };
    let mut sums = vec![[0.0; 2]; joins.outputs];
    for (window, weights) in tensor.to_f32()?.chunks_exact(joins.taps).enumerate() {
        let (input, output) = joins.of_window(window);
        let place = [joins.index(window, 0), joins.index(window, 1)];
        for &weight in weights {
            let square = f64::from(weight).powi(2);
            sums[output][0] += noise(place, square) * channels[input][0];
            sums[output][1] += square * channels[input][1];
        }
    }
    // An output that (almost) never varies has nothing to lose.
    let most = sums.iter().map(|sum| sum[1]).fold(0.0, f64::max);
    let lively = |sum: &&[f64; 2]| sum[1] > ALMOST_NOTHING * most;
    let (mut all, mut count) = (0.0, 0);
    for [noise, signal] in sums.iter().filter(lively) {
        all += noise / signal;
        count += 1;
    }
    Ok((count > 0 && f64::is_finite(all)).then(|| all / f64::from(count)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::calibrate::{Method, Observation, Observations};
    use crate::graph::{Dim, TensorType};
    use crate::onnx::schema::{DataType, GraphProto, ModelProto, ValueInfoProto};

    const WEIGHTS: [f32; 4] = [1.0, 2.0, -3.0, 0.5];

    /// Nodes of `[operator, input, input, result]` that begin with `x`, of two columns, and end in a MatMul of `n` by two outputs.
    pub(in super::super) fn model(nodes: &[[&str; 4]], constants: &[(&str, [f32; 2])]) -> Model {
        let node = |[operator, one, other, made]: &[&str; 4]| {
            NodeProto::new(operator, made, &[one, other], &[made])
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
            .map(|[.., made]| ValueInfoProto::of(made, &rows));
        let last = NodeProto::new("MatMul", "y", &["n", "w"], &["y"]);
        let graph = GraphProto {
            node: nodes.iter().map(node).chain([last]).collect(),
            initializer: constants.iter().map(constant).chain([weights]).collect(),
            input: vec![ValueInfoProto::of("x", &rows)],
            output: vec![ValueInfoProto::of("y", &rows)],
            value_info: between.collect(),
            ..Default::default()
        };
        Model::from_proto(ModelProto::of_graph(graph, 17)).unwrap()
    }

    fn seen(values: &[f32]) -> Observation {
        let mut seen = Observation::from_values(values);
        seen.observe_variance(values, &[values.len() / 2, 2], 1);
        seen
    }

    /// The values on the way to the MatMul of `y = ((x - m) / d) · w` for these rows.
    pub(in super::super) fn divided(
        rows: &[f32],
        m: [f32; 2],
        d: [f32; 2],
    ) -> (Model, Observations) {
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

    /// Rows of two columns of these sizes, which have nothing to do with each other.
    fn columns(sizes: [f32; 2]) -> Vec<f32> {
        let row = |i: u16| [0.37, 0.89].map(|turn| (f32::from(i) * turn).sin());
        let rows = (0..500).map(row);
        rows.flat_map(|[a, b]| [a * sizes[0], b * sizes[1]])
            .collect()
    }

    #[test]
    fn what_rounding_adds_is_what_a_changed_input_would() {
        let rows = columns([40.0, 0.3]);
        let (m, d) = ([5.0, -0.25], [30.0, 0.125]);
        let (model, observations) = divided(&rows, m, d);
        let ranges = Ranges::Seen(&observations, Method::MinMax);
        let additions = Additions::of(&model, ranges).unwrap();
        // The mean square of what a change of each adds to an output against the output's own variance, slowly.
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
            // Columns are changed one at a time: what rounding adds to them has nothing to do with each other.
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
            let found = additions.of_step(name, step.into());
            // The variance is that of columns that have nothing to do with each other, and these have a little.
            assert!(
                (found / wanted - 1.0).abs() < 0.1,
                "{name}: {found}, {wanted}"
            );
        }
        assert_eq!(additions.of_step("y", 1.0), 0.0);
    }

    #[test]
    fn what_rounding_a_weight_adds_grows_with_what_it_meets() {
        let added = |sizes: [f32; 2]| {
            let rows = columns(sizes);
            let (model, observations) = divided(&rows, [0.0; 2], [1.0; 2]);
            let ranges = Ranges::Seen(&observations, Method::MinMax);
            let additions = Additions::of(&model, ranges).unwrap();
            let parameters = QuantizationParameters {
                element: DataType::Int8,
                axis: Some(1),
                scales: vec![0.01, 0.02],
                zero_points: vec![0, 0],
            };
            let tensor = model.graph.initializers.get("w").unwrap();
            additions
                .of_weight("w", tensor, &parameters)
                .unwrap()
                .unwrap()
        };
        // By the formula, column by column of the weights: step² / 12 · Σ of sizes² / Σ of w²·sizes².
        let wanted = |sizes: [f64; 2]| {
            let [a, b] = sizes.map(|size| size * size);
            let of = |step: f64, w: [f64; 2]| {
                step * step / 12.0 * (a + b) / (w[0] * w[0] * a + w[1] * w[1] * b)
            };
            (of(0.01, [1.0, -3.0]) + of(0.02, [2.0, 0.5])) / 2.0
        };
        for sizes in [[1.0, 1.0], [100.0, 0.5]] {
            let found = added(sizes.map(|size| size as f32));
            assert!(
                (found / wanted(sizes) - 1.0).abs() < 0.02,
                "{found}, {}",
                wanted(sizes)
            );
        }
    }
}
