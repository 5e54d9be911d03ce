//! Conspicuous findings of a comparison, each with its cause and the layers to keep in float.

use serde::{Deserialize, Serialize};

use super::LayerError;
use super::exact_total::ExactTotal;
use super::fake_quantization::FakeQuantization;
use super::simulate::Simulated;
use super::value_statistics::{end_bits, join_ends};
use crate::graph::{Model, Node};
use crate::quantize;
use crate::tensor::Tensor;

/// Kind of a conspicuous finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WarningKind {
    /// The quantized model is slower.
    Slower,
    /// A layer stays float between integers.
    Island,
    /// Tensors of very different ranges share a scale.
    SharedScale,
    /// Some channels have only zero weights.
    DeadChannels,
    /// The samples exceed the calibrated range of an input, or use little of it.
    InputRange,
    /// An input looks like an image that was not scaled.
    InputScale,
    /// The answers on an emulated processor.
    Processor,
}

/// A conspicuous finding.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// Kind, for programs.
    pub kind: WarningKind,
    /// One sentence: the finding, its place, its cause and its remedy.
    pub message: String,
    /// Layers to keep in float as a remedy; empty if that does not help.
    pub keep_float: Vec<String>,
}

/// Ratio of ranges from which a shared scale is reported: the smaller range has an eighth of the
/// integers, five bits of eight.
const APART: f32 = 8.0;

/// Statistics of each input over the samples.
pub(super) struct InputStatistics(Vec<InputRecord>);

struct InputRecord {
    name: String,
    rounding: Option<FakeQuantization>,
    /// The operator that reads it first.
    reader: String,
    sums: InputSums,
}

/// Statistics of an input over some samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct InputSums {
    #[serde(with = "end_bits")]
    ends: Option<(f32, f32)>,
    sum: ExactTotal,
    count: u64,
    outside: u64,
    picture: bool,
}

impl InputSums {
    /// Adds the statistics over other samples.
    pub(super) fn merge(&mut self, other: &InputSums) {
        self.ends = join_ends(self.ends, other.ends);
        self.sum.merge(&other.sum);
        self.count = self.count.saturating_add(other.count);
        self.outside = self.outside.saturating_add(other.outside);
        self.picture |= other.picture;
    }
}

impl InputStatistics {
    pub(super) fn new(float: &Model, simulated: &Simulated) -> InputStatistics {
        let inputs = float.graph.inputs.iter().map(|input| {
            let name = input.name.clone().unwrap_or_default();
            let rounded = simulated.first_rounded.get(&name);
            let reader = float.graph.consumers(&name).first();
            InputRecord {
                rounding: rounded.and_then(|form| Some(simulated.rounded.get(form)?.1.clone())),
                reader: reader.map_or(String::new(), |reader| {
                    float.graph.nodes()[reader.node].operator()
                }),
                name,
                sums: InputSums::default(),
            }
        });
        InputStatistics(inputs.collect())
    }

    /// The statistics so far.
    pub(super) fn sums(&self) -> Vec<InputSums> {
        self.0.iter().map(|input| input.sums.clone()).collect()
    }

    /// Replaces the statistics, whose number must be that of the inputs.
    pub(super) fn replace(&mut self, sums: Vec<InputSums>) {
        for (input, sums) in self.0.iter_mut().zip(sums) {
            input.sums = sums;
        }
    }

    pub(super) fn observe(&mut self, tensors: &[Tensor]) {
        for (input, tensor) in self.0.iter_mut().zip(tensors) {
            let Some(values) = tensor.as_f32() else {
                continue;
            };
            input.sums.picture |=
                matches!(tensor.shape(), [_, 1 | 3, h, w] | [_, h, w, 1 | 3] if *h > 7 && *w > 7);
            let ends = input.sums.ends;
            let (mut min, mut max) = ends.unwrap_or((f32::INFINITY, f32::NEG_INFINITY));
            let outside = input.rounding.as_ref().map(FakeQuantization::outside);
            let mut sum = 0.0;
            for &value in values {
                min = min.min(value);
                max = max.max(value);
                sum += f64::from(value);
                if let Some(outside) = &outside {
                    input.sums.outside += u64::from(outside(value));
                }
            }
            input.sums.sum.add(sum);
            input.sums.count += values.len() as u64;
            input.sums.ends = (min <= max).then_some((min, max));
        }
    }
}

/// Finds everything that values show; [`slower`] needs times.
pub(super) fn find(
    float: &Model,
    simulated: &Simulated,
    layers: &[LayerError],
    inputs: &InputStatistics,
) -> Vec<Warning> {
    let mut findings = Vec::new();
    findings.extend(islands(float, simulated));
    findings.extend(shared_scales(float, simulated, layers));
    findings.extend(dead_channels(float));
    findings.extend(inputs.0.iter().filter_map(input_range));
    findings.extend(inputs.0.iter().filter_map(input_scale));
    findings
}

/// Operators that stay float between integers.
fn islands(float: &Model, simulated: &Simulated) -> Vec<Warning> {
    let rounded = |value: &String| {
        simulated.first_rounded.contains_key(value) || simulated.rounded.contains_key(value)
    };
    let mut findings = Vec::new();
    for node in float.graph.nodes() {
        let Some(reason) = quantize::float_reason(&node.operator()) else {
            continue;
        };
        let fed = node.input.iter().any(&rounded);
        let read = node
            .output
            .iter()
            .any(|value| rounded(value) && !float.graph.consumers(value).is_empty());
        if fed && read {
            findings.push(Warning {
                kind: WarningKind::Island,
                message: format!(
                    "`{}` ({}) stays float between integer nodes ({reason}), which costs a \
                     conversion on each side; if that makes the model slower, keep the \
                     neighbouring layers float too",
                    node.title(),
                    node.operator()
                ),
                keep_float: neighbours(float, node),
            });
        }
    }
    findings
}

fn neighbours(float: &Model, node: &Node) -> Vec<String> {
    let makers = node
        .input
        .iter()
        .filter_map(|value| float.graph.producer(value));
    let readers = node
        .output
        .iter()
        .flat_map(|value| float.graph.consumers(value))
        .map(|reader| reader.node);
    let mut findings: Vec<String> = makers
        .chain(readers)
        .map(|place| float.graph.nodes()[place].title().to_string())
        .collect();
    findings.dedup();
    findings
}

/// Parts of a Concat under one scale whose ranges differ widely.
fn shared_scales(float: &Model, simulated: &Simulated, layers: &[LayerError]) -> Vec<Warning> {
    let largest = |value: &str| {
        let seen = layers.iter().find(|layer| layer.value == value)?;
        Some(seen.max.abs().max(seen.min.abs()))
    };
    let mut findings = Vec::new();
    for node in float.graph.nodes().iter().filter(|node| node.is("Concat")) {
        let Some(out) = node.output.first() else {
            continue;
        };
        if !simulated.first_rounded.contains_key(out) && !simulated.rounded.contains_key(out) {
            continue;
        }
        let parts: Vec<(&String, f32)> = node
            .input
            .iter()
            .filter_map(|part| Some((part, largest(part).filter(|&m| m > 0.0)?)))
            .collect();
        let most = parts.iter().map(|(_, m)| *m).fold(0.0, f32::max);
        let least = parts.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((part, least)) = least
            && most > APART * least
        {
            findings.push(Warning {
                kind: WarningKind::SharedScale,
                message: format!(
                    "`{}` joins tensors of very different ranges under one scale: the largest \
                     magnitude is {most:.4}, that of `{part}` only {least:.4}, so it gets {:.0} of \
                     256 integers; keep the layer float",
                    node.title(),
                    (256.0 * least / most).max(1.0)
                ),
                keep_float: vec![node.title().to_string()],
            });
        }
    }
    findings
}

/// Channels whose weights are all zero: their scale has no meaning, and they cost time.
fn dead_channels(float: &Model) -> Option<Warning> {
    let convolutions = float.graph.nodes().iter().filter(|n| n.is("Conv"));
    let findings: Vec<String> = convolutions
        .filter_map(|node| {
            let (dead, channels) = dead_of(float, node)?;
            Some(format!("`{}` ({dead} of {channels})", node.title()))
        })
        .collect();
    let more = match findings.len().saturating_sub(5) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!findings.is_empty()).then(|| Warning {
        kind: WarningKind::DeadChannels,
        message: format!(
            "some channels have only zero weights, in {}{more}: they cost time and yield only \
             their bias; prune the model before quantizing it",
            findings[..findings.len().min(5)].join(", ")
        ),
        keep_float: Vec::new(),
    })
}

/// Number of dead channels of a convolution and number of all channels; `None` if none is dead.
fn dead_of(float: &Model, node: &Node) -> Option<(usize, usize)> {
    let weight = float.graph.initializers.get(node.input_at(1)?)?;
    let (values, channels) = (weight.to_f32().ok()?, *weight.shape().ok()?.first()?);
    if channels < 2 || values.len() < channels {
        return None;
    }
    let largest = |part: &[f32]| part.iter().fold(0.0f32, |a, v| a.max(v.abs()));
    let whole = largest(&values);
    let parts = values.chunks(values.len() / channels);
    let dead = parts.filter(|part| largest(part) <= whole * 1e-6).count();
    (dead > 0).then_some((dead, channels))
}

/// Samples outside the range of the calibration samples.
fn input_range(input: &InputRecord) -> Option<Warning> {
    let (low, high) = input.rounding.as_ref()?.range();
    let (min, max) = input.sums.ends?;
    let outside = input.sums.outside as f64 / input.sums.count.max(1) as f64;
    let used = (max - min) / (high - low);
    if outside < 0.05 && used > 0.1 {
        return None;
    }
    let what = match outside >= 0.05 {
        true => format!("{:.0} % of the values lie outside", outside * 100.0),
        false => format!("the samples use {:.1} % of that", used * 100.0),
    };
    Some(Warning {
        kind: WarningKind::InputRange,
        message: format!(
            "the input `{}` ranges from {min:.4} to {max:.4}, but the model was calibrated for \
             {low:.4} to {high:.4}, and {what}: \
             the samples were preprocessed differently; set the same mean, deviation and scale for \
             both",
            input.name
        ),
        keep_float: Vec::new(),
    })
}

/// Images that seem not to be scaled.
fn input_scale(input: &InputRecord) -> Option<Warning> {
    let (min, max) = input.sums.ends?;
    let bytes = min >= 0.0 && max > 16.0 && max <= 255.0;
    if !(input.sums.picture && bytes && input.reader == "Conv") {
        return None;
    }
    Some(Warning {
        kind: WarningKind::InputScale,
        message: format!(
            "the input `{}` is an image with values up to {max:.0} and mean {:.1} that a \
             convolution reads directly; most models expect values scaled to 1, minus the mean: \
             check the preprocessing",
            input.name,
            input.sums.sum.value() / input.sums.count.max(1) as f64
        ),
        keep_float: Vec::new(),
    })
}

/// Layers that are slower as integers; `times` holds title, float and integer milliseconds.
pub fn slower(times: &[(String, f64, f64)], whole: (f64, f64)) -> Option<Warning> {
    let (float, integers) = whole;
    if integers <= float || float <= 0.0 {
        return None;
    }
    let mut slow: Vec<&(String, f64, f64)> = times.iter().filter(|(_, a, b)| b > a).collect();
    slow.sort_by(|a, b| (b.2 - b.1).total_cmp(&(a.2 - a.1)));
    slow.truncate(5);
    let named: Vec<String> = slow
        .iter()
        .map(|(name, a, b)| format!("`{name}` {a:.2} → {b:.2} ms"))
        .collect();
    Some(Warning {
        kind: WarningKind::Slower,
        message: format!(
            "the quantized model is slower on this machine: {integers:.2} ms a run, the float \
             model {float:.2} ms; the layers that lose most are {}",
            named.join(", ")
        ),
        keep_float: slow.iter().map(|(name, _, _)| name.clone()).collect(),
    })
}
