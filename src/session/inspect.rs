//! Read-only views: the graph of a model, the distribution of a value with the range of each
//! method, and the channel ranges of a weight.

use std::collections::BTreeMap;

use serde::Serialize;

use super::model_summary::shape_text;
use super::{Error, Session};
use crate::graph::Model;
use crate::onnx;
use crate::quantize::{self, ElementType, Plan, Settings, target_of};
use crate::stats::{Histogram, Method, Range, TensorStatistics};

/// Maximum number of bars in a histogram that is shown.
const BARS: usize = 192;

/// Nodes of a model in order, and the values between them.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct GraphView {
    /// Nodes in topological order.
    pub nodes: Vec<NodeView>,
    /// Every value whose type is known.
    pub values: BTreeMap<String, ValueView>,
    /// Inputs of the graph, without initializers.
    pub inputs: Vec<String>,
    /// Outputs of the graph.
    pub outputs: Vec<String>,
}

/// A node of a [`GraphView`].
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct NodeView {
    /// Name that is shown to people, as in a [`super::QuantizationSummary`].
    pub name: String,
    /// Operator.
    pub operator: String,
    /// Input values, followed by the values that its subgraphs capture.
    pub inputs: Vec<String>,
    /// Output values.
    pub outputs: Vec<String>,
}

/// A value of a [`GraphView`].
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ValueView {
    /// Element type.
    pub element: &'static str,
    /// Shape, such as `1×3×224×224`.
    pub shape: String,
    /// True for constants.
    pub constant: bool,
}

impl GraphView {
    fn new(model: &Model) -> GraphView {
        let graph = &model.graph;
        let mut values = BTreeMap::new();
        let known = graph
            .inputs
            .iter()
            .chain(graph.outputs())
            .chain(&graph.value_info);
        let names = known.filter_map(|value| value.name.as_deref());
        let constants = graph.initializers.iter().filter_map(|t| t.name.as_deref());
        for name in names.chain(constants) {
            if let Some(tensor_type) = graph.tensor_type(name) {
                let value = ValueView {
                    element: tensor_type.element.name(),
                    shape: shape_text(&tensor_type),
                    constant: graph.initializers.contains(name),
                };
                values.insert(name.to_string(), value);
            }
        }
        let nodes = graph.nodes().iter().map(|node| NodeView {
            name: node.title().to_string(),
            operator: node.operator(),
            inputs: node
                .input
                .iter()
                .cloned()
                .chain(node.captured())
                .filter(|n| !n.is_empty())
                .collect(),
            outputs: node
                .output
                .iter()
                .filter(|n| !n.is_empty())
                .cloned()
                .collect(),
        });
        let fed = graph.inputs.iter().filter_map(|value| value.name.clone());
        GraphView {
            nodes: nodes.collect(),
            values,
            inputs: fed
                .filter(|name| !graph.initializers.contains(name))
                .collect(),
            outputs: graph
                .outputs()
                .iter()
                .filter_map(|value| value.name.clone())
                .collect(),
        }
    }

    /// View of a model file, float or quantized.
    pub fn from_file(file: bytes::Bytes) -> Result<GraphView, Error> {
        Ok(GraphView::new(&Model::from_proto(onnx::read(file)?)?))
    }
}

/// Distribution of a value's elements in calibration.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ValueDistribution {
    /// Minimum and maximum of the finite elements.
    pub ends: Range,
    /// Number of elements, zeros and non-finite ones included.
    pub count: u64,
    /// Number of zeros.
    pub zeros: u64,
    /// Number of elements that are NaN or infinite.
    pub odd: u64,
    /// Lower edge of the first bar.
    pub low: f64,
    /// Width of a bar.
    pub width: f64,
    /// Count of each bar.
    pub counts: Vec<u64>,
    /// Range that each method chooses.
    pub ranges: Vec<(&'static str, Range)>,
}

impl ValueDistribution {
    fn new(
        seen: &TensorStatistics,
        element: ElementType,
        symmetric: Option<bool>,
    ) -> Option<ValueDistribution> {
        let (min, max) = (seen.min()?, seen.max()?);
        let target = target_of(element, symmetric);
        let range = |name: &'static str| {
            Some((
                name,
                name.parse::<Method>().ok()?.range(seen, &target).ok()?,
            ))
        };
        let (low, width, counts) = bars(seen.histogram());
        Some(ValueDistribution {
            ends: Range::new(min, max),
            count: seen.count(),
            zeros: seen.zeros(),
            odd: seen.nan_count() + seen.infinite_count(),
            low,
            width,
            counts,
            ranges: Method::choices().filter_map(range).collect(),
        })
    }
}

/// Merges 2^k neighbouring bins into each bar, with the smallest k that leaves at most [`BARS`]
/// bars. Returns the lower edge of the first bar, the width of a bar and the counts.
fn bars(histogram: &Histogram) -> (f64, f64, Vec<u64>) {
    let ends = || histogram.bins().map(|(lower, upper, _)| (lower, upper));
    let (Some((low, upper)), Some((_, high))) = (ends().next(), ends().last()) else {
        return (0.0, 0.0, Vec::new());
    };
    let mut width = upper - low;
    // Bars are aligned to zero, as the bins are. No bin is therefore cut in two.
    while (high / width).ceil() - (low / width).floor() > BARS as f64 {
        width *= 2.0;
    }
    let first = (low / width).floor();
    let mut counts = vec![0; ((high / width).ceil() - first) as usize];
    for (lower, _, count) in histogram.bins() {
        counts[((lower / width).floor() - first) as usize] += count;
    }
    (first * width, width, counts)
}

/// Minimum and maximum of each channel of a weight.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ChannelRanges {
    /// The channel axis.
    pub axis: usize,
    /// Minimum of each channel.
    pub min: Vec<f32>,
    /// Maximum of each channel.
    pub max: Vec<f32>,
}

impl Session {
    /// The prepared graph, which calibration and quantization use.
    pub fn graph(&mut self) -> Result<GraphView, Error> {
        self.journal.profiler.resume();
        let (ready, _) = self
            .stage
            .prepare(&mut self.opened, &mut self.journal.profiler)?;
        Ok(GraphView::new(&ready.model))
    }

    /// Distribution of a value, with ranges for this integer type. `None` for a value without
    /// statistics.
    pub fn distribution(
        &self,
        value: &str,
        element: ElementType,
        symmetric: Option<bool>,
    ) -> Option<ValueDistribution> {
        let statistics = self.stage.ranges()?.statistics()?;
        ValueDistribution::new(statistics.get(value)?, element, symmetric)
    }

    /// Channel ranges of a weight. `None` for constants without per-channel scales.
    pub fn channels(&self, weight: &str) -> Result<Option<ChannelRanges>, Error> {
        let Some(ready) = self.stage.prepared() else {
            return Ok(None);
        };
        let model = ready.calibrated(self.stage.ranges());
        let plan = Plan::new(model, &Settings::default())?;
        let (Some(axis), Some(tensor)) = (
            plan.channel_axis(weight),
            model.graph.initializers.get(weight),
        ) else {
            return Ok(None);
        };
        let read =
            || -> Result<_, onnx::tensor::TensorError> { Ok((tensor.shape()?, tensor.to_f32()?)) };
        let (shape, values) = read().map_err(quantize::QuantizeError::from)?;
        let count = shape.get(axis).copied().unwrap_or(0);
        let run: usize = shape.iter().skip(axis + 1).product::<usize>().max(1);
        let mut channels = ChannelRanges {
            axis,
            min: vec![f32::INFINITY; count],
            max: vec![f32::NEG_INFINITY; count],
        };
        if count > 0 {
            // In memory, runs of `run` elements cycle through the channels.
            for (index, values) in values.chunks(run).enumerate() {
                let (min, max) = (
                    &mut channels.min[index % count],
                    &mut channels.max[index % count],
                );
                for &value in values {
                    *min = min.min(value);
                    *max = max.max(value);
                }
            }
        }
        Ok(Some(channels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(values: &[f32]) -> TensorStatistics {
        let mut seen = TensorStatistics::new();
        seen.observe(values);
        seen.end_sample();
        seen
    }

    #[test]
    fn bars_count_every_value_once_in_its_place() {
        let values: Vec<f32> = (0..5000)
            .map(|i| (i as f32 * 0.37).sin() * 3.0 + 1.0)
            .collect();
        let shown = ValueDistribution::new(&seen(&values), ElementType::U8, None).unwrap();
        assert!(
            shown.counts.len() <= BARS && shown.counts.len() > BARS / 3,
            "{}",
            shown.counts.len()
        );
        assert_eq!(shown.counts.iter().sum::<u64>(), 5000);
        for (bar, &count) in shown.counts.iter().enumerate() {
            let low = shown.low + bar as f64 * shown.width;
            let inside = values
                .iter()
                .filter(|&&v| (low..low + shown.width).contains(&f64::from(v)))
                .count();
            assert_eq!(count, inside as u64, "bar {bar}");
        }
    }

    #[test]
    fn every_method_that_needs_one_pass_has_its_range() {
        let shown =
            ValueDistribution::new(&seen(&[-1.0, 0.5, 4.0]), ElementType::I8, Some(true)).unwrap();
        let names: Vec<_> = shown.ranges.iter().map(|(name, _)| *name).collect();
        assert!(names.into_iter().eq(Method::choices()));
        assert_eq!(shown.ranges[0].1, Range::new(-1.0, 4.0));
    }

    #[test]
    fn a_constant_value_is_one_bar_and_no_statistics_give_none() {
        assert_eq!(
            ValueDistribution::new(&seen(&[2.5; 7]), ElementType::U8, None)
                .unwrap()
                .counts,
            [7]
        );
        assert!(ValueDistribution::new(&seen(&[f32::NAN]), ElementType::U8, None).is_none());
    }
}
