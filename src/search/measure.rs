//! Measurement of sensitivities: the noise at the outputs of each tensor that is rounded by itself.

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

/// The values at which the noise is measured: each judged output, or the scores before its last
/// Softmax. A Softmax hides noise that other samples would show.
pub fn measured_values(model: &Model, judged: impl Fn(usize) -> bool) -> Vec<String> {
    let graph = &model.graph;
    let mut values: Vec<String> = Vec::new();
    for (place, output) in graph.outputs().iter().enumerate() {
        let Some(name) = output.name.clone().filter(|_| judged(place)) else {
            continue;
        };
        let maker = graph.producer(&name).map(|maker| &graph.nodes()[maker]);
        let scores = maker.filter(|maker| maker.is("Softmax"));
        let scores = scores.and_then(|maker| maker.input_at(0)).map(String::from);
        let value = scores
            .filter(|value| graph.producer(value).is_some())
            .unwrap_or(name);
        if graph.producer(&value).is_some() && !values.contains(&value) {
            values.push(value);
        }
    }
    values
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
    /// The weight of each measured value: one over its power in all samples and over the number of
    /// such values, so that noises add up to a share of the signal.
    weights: Vec<f64>,
    names: Vec<String>,
}

impl FloatRuns {
    /// Sums up the powers.
    pub fn new(names: &[String], values: Vec<ValuesByName>) -> FloatRuns {
        let power = |name: &String| -> f64 {
            let all = values
                .iter()
                .filter_map(|sample| sample.get(name)?.as_f32());
            all.map(|floats| powers(floats, floats).1).sum()
        };
        let powers: Vec<f64> = names.iter().map(power).collect();
        let count = powers.iter().filter(|power| **power > 0.0).count().max(1) as f64;
        let weight = |&power: &f64| match power > 0.0 {
            true => 1.0 / (power * count),
            false => 0.0,
        };
        FloatRuns {
            weights: powers.iter().map(weight).collect(),
            names: names.to_vec(),
            values,
        }
    }

    /// The noise of a change on some of the samples, as a share of the signal of all.
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
            for (name, weight) in self.names.iter().zip(&self.weights) {
                let pair = float.get(name).and_then(Tensor::as_f32);
                let pair = pair.zip(other.get(name).and_then(Tensor::as_f32));
                noise += pair.map_or(0.0, |(a, b)| weight * powers(a, b).0);
            }
        }
        Ok(noise)
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
