//! Measurement of sensitivities: the noise at the outputs of each tensor that is rounded by itself.

use std::collections::BTreeMap;
use std::ops::Range;

use rayon::prelude::*;

use super::Bits;
use super::judge::powers;
use super::segments::{SegmentedModel, ValuesByName};
use super::tensors::{Rounded, SearchTensor, TensorChange};
use crate::graph::Model;
use crate::onnx::schema::ValueInfoProto;
use crate::runtime::{Engine, EngineError};
use crate::tensor::Tensor;

/// A judged output, where noise is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredOutput {
    /// The scores before the output's Softmax, which hides noise that other samples would show.
    scores: Option<String>,
    /// The output. It shows the noise of tensors that the scores don't depend on.
    output: String,
}

impl MeasuredOutput {
    /// The judged outputs that a node computes.
    pub fn of(model: &Model, judged: impl Fn(usize) -> bool) -> Vec<MeasuredOutput> {
        let graph = &model.graph;
        let mut outputs: Vec<MeasuredOutput> = Vec::new();
        for (place, output) in graph.outputs().iter().enumerate() {
            let Some(output) = output.name.clone().filter(|_| judged(place)) else {
                continue;
            };
            let Some(maker) = graph.producer(&output).map(|maker| &graph.nodes()[maker]) else {
                continue;
            };
            let scores = maker.input_at(0).filter(|_| maker.is("Softmax"));
            let scores = scores.filter(|scores| graph.producer(scores).is_some());
            outputs.push(MeasuredOutput {
                scores: scores.map(String::from),
                output,
            });
        }
        outputs
    }

    /// The names of all these values.
    pub fn names(outputs: &[MeasuredOutput]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for measured in outputs {
            for name in measured.scores.iter().chain([&measured.output]) {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        names
    }
}

/// A model whose outputs are the measured values.
pub fn with_outputs(model: &Model, values: &[String]) -> Model {
    let port = |name: &String| match model.graph.tensor_type(name) {
        Some(known) => ValueInfoProto::new(name, &known),
        None => ValueInfoProto {
            name: Some(name.clone()),
            ..ValueInfoProto::default()
        },
    };
    let mut measured = model.clone();
    measured
        .graph
        .set_outputs(values.iter().map(port).collect());
    measured.graph.remove_unused();
    measured
}

/// The mean squared rounding error of each activation by itself, for each number of bits.
pub fn local_errors(
    model: &Model,
    tensors: &[SearchTensor],
    samples: &[&[Tensor]],
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Vec<(Bits, f64)>>, EngineError> {
    let inputs: Vec<Option<&str>> = model
        .graph
        .inputs
        .iter()
        .map(|i| i.name.as_deref())
        .collect();
    let watched: Vec<(usize, String)> = tensors
        .iter()
        .enumerate()
        .filter(|(_, tensor)| !tensor.group.is_constant)
        .map(|(place, tensor)| (place, tensor.group.name.clone()))
        .collect();
    let (fed, made): (Vec<_>, Vec<_>) = watched
        .into_iter()
        .partition(|(_, name)| inputs.contains(&Some(name)));
    let grids = |place: usize| {
        tensors[place]
            .rounded
            .iter()
            .filter_map(|(&bits, rounded)| match rounded {
                Rounded::Grid(grid) => Some((bits, grid.clone())),
                Rounded::Constants { .. } => None,
            })
    };
    let mut errors: Vec<Vec<(Bits, f64)>> = tensors.iter().map(|_| Vec::new()).collect();
    let mut add = |place: usize, values: &[f32]| {
        let found: Vec<(Bits, f64)> = grids(place)
            .map(|(bits, grid)| (bits, grid.error(values)))
            .collect();
        if errors[place].is_empty() {
            errors[place] = found;
        } else {
            errors[place]
                .iter_mut()
                .zip(found)
                .for_each(|(all, one)| all.1 += one.1);
        }
    };
    let names = made.iter().map(|(_, name)| name.clone()).collect();
    let engine = Engine::new(model.clone(), names);
    for sample in samples {
        for (place, name) in &fed {
            let at = inputs.iter().position(|input| *input == Some(name));
            let values = at.and_then(|at| sample.get(at)).and_then(Tensor::as_f32);
            if let Some(values) = values {
                add(*place, values);
            }
        }
        engine.run(*sample, |slot, values| add(made[slot].0, values), stop)?;
    }
    Ok(errors)
}

/// The float values of the measured samples.
pub struct FloatRuns {
    /// For each sample its values at the cuts and the measured ones.
    pub values: Vec<ValuesByName>,
    outputs: Vec<MeasuredOutput>,
    /// The power of each measured value in all samples, if it has any.
    signals: BTreeMap<String, f64>,
}

impl FloatRuns {
    /// Sums up the powers.
    pub fn new(outputs: &[MeasuredOutput], values: Vec<ValuesByName>) -> FloatRuns {
        let power = |name: String| {
            let all = values
                .iter()
                .filter_map(|sample| sample.get(&name)?.as_f32());
            let power: f64 = all.map(|floats| powers(floats, floats).1).sum();
            (power > 0.0).then_some((name, power))
        };
        let names = MeasuredOutput::names(outputs).into_iter();
        FloatRuns {
            signals: names.filter_map(power).collect(),
            outputs: outputs.to_vec(),
            values,
        }
    }

    /// The noise of a change on some of the samples, as a share of the signal of all: the mean over
    /// the outputs that have a signal.
    pub fn noise(
        &self,
        model: &SegmentedModel,
        change: TensorChange<'_>,
        samples: Range<usize>,
        stop: &dyn Fn() -> bool,
    ) -> Result<f64, EngineError> {
        let parts = model.change(change);
        let mut noise = 0.0;
        for float in self.values.get(samples).unwrap_or_default() {
            let other = model.run_changed(&parts, float, stop)?;
            let share = |name: &String| {
                let pair = float.get(name).and_then(Tensor::as_f32);
                let pair = pair.zip(other.get(name).and_then(Tensor::as_f32));
                let pair = pair.zip(self.signals.get(name));
                pair.map_or(0.0, |((a, b), signal)| powers(a, b).0 / signal)
            };
            for measured in &self.outputs {
                let scores = measured.scores.as_ref().map_or(0.0, share);
                noise += match scores > 0.0 {
                    true => scores,
                    false => share(&measured.output),
                };
            }
        }
        let judged = self.outputs.iter();
        let judged = judged.filter(|measured| self.signals.contains_key(&measured.output));
        Ok(noise / judged.count().max(1) as f64)
    }
}

/// Runs `work` on each item, in parallel, and returns the results in order.
pub fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, EngineError> + Send + Sync,
) -> Result<Vec<R>, EngineError> {
    // The order is kept, so the first error is the same with any number of threads.
    let results: Vec<Result<R, EngineError>> = items.par_iter().map(work).collect();
    results.into_iter().collect()
}
