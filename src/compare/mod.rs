//! A quantized model held against the float model it was made from, on samples: how far every layer and output is
//! apart, where the error comes from, and what to do about it.
//!
//! Float values and what the quantized model makes of them are computed side by side in one run, so that memory is a
//! few live sets and not all values of two models. Where there is no such run, each model runs by itself and only the outputs
//! are compared.

mod boxes;
mod combine;
mod difference;
mod kinds;
mod names;
mod order;
mod outputs;
mod simulate;
mod split;
mod warnings;

use serde::Serialize;

pub use boxes::{FoundAgain, Parts};
pub use difference::{Apart, Difference};
pub use kinds::OutputKind;
pub use outputs::OutputError;
pub use warnings::{Warning, slower};

use crate::engine::{Engine, EngineError};
use crate::graph::Model;
use crate::prepare::equalize::{EqualizeError, Factors};
use crate::prepare::{PrepareError, raise_opset};
use crate::tensor::Tensor;
use combine::{Combined, combine};
use outputs::Outputs;
use simulate::simulate;
use split::Split;
use warnings::Inputs;

/// Why two models can't be compared.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum CompareError {
    #[error(
        "the two models have no value in common by name: give the float model that the quantized one was made from"
    )]
    NothingInCommon,
    #[error(
        "the models have {float} and {quantized} outputs: give the float model that the quantized one was made from"
    )]
    Outputs { float: usize, quantized: usize },
    #[error("{0}")]
    Prepare(#[from] PrepareError),
    #[error("{0}")]
    Equalize(#[from] EqualizeError),
    #[error("{0}")]
    Engine(#[from] EngineError),
}

/// What quantizing did to the value a layer makes; where a Relu or Clip alone reads that, to what it lets pass of it.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LayerError {
    /// The node that makes the value.
    pub layer: String,
    /// Its operator.
    pub operator: String,
    /// The value.
    pub value: String,
    /// Whether it is rounded.
    pub rounded: bool,
    /// The error that all layers up to here have brought.
    pub accumulated: Apart,
    /// The error that this layer brings when it is fed with the float model's values; `None` where it only moves what
    /// others made.
    pub added: Option<Apart>,
    /// The same with only the weights as integers, in decibels of SQNR.
    pub weights_only: Option<f64>,
    /// The same with only the activations as integers.
    pub activations_only: Option<f64>,
    /// The share of the float values beyond what the integers can hold.
    pub clipped: f64,
    /// The least float value seen.
    pub min: f32,
    /// The greatest.
    pub max: f32,
    /// The reals that the integers can hold.
    pub range: Option<(f32, f32)>,
    /// This layer's share of what all layers add: noise over signal.
    pub harm: f64,
}

/// Two models on some samples.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// How many samples were run.
    pub samples: usize,
    /// The outputs.
    pub outputs: Vec<OutputError>,
    /// The output that is worst off, among those that tell anything.
    pub headline: Option<String>,
    /// The layers in the order of the float model; none where they could not be compared.
    pub layers: Vec<LayerError>,
    /// Why the layers could not be compared, while the outputs were; `None` where they were.
    pub layers_failed: Option<String>,
    /// The names of the layers that add most, the worst first.
    pub worst: Vec<String>,
    /// Values of the float model that the quantized one has no counterpart of.
    pub unpaired: Vec<String>,
    /// What stands out, with its cause.
    pub warnings: Vec<Warning>,
}

/// Operators that only move what others made: what is apart after them was apart before.
const MOVING: [&str; 15] = [
    "Reshape",
    "Transpose",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Slice",
    "Split",
    "Gather",
    "Identity",
    "Expand",
    "Concat",
    "MaxPool",
    "GlobalMaxPool",
    "ReduceMax",
    "ReduceMin",
];

/// So many of the worst layers are named.
const WORST: usize = 10;

/// Sums for one value.
#[derive(Default)]
struct Sums {
    accumulated: Difference,
    added: Difference,
    weights: Difference,
    activations: Difference,
    count: u64,
    outside: u64,
    ends: Option<(f32, f32)>,
    /// Whether the quantized model made another number of elements in its place, as a selection of boxes may.
    unlike: bool,
}

/// Both models in one, and what was seen of it.
struct Layers {
    engine: Engine,
    combined: Combined,
    sums: Vec<Sums>,
}

/// A comparison under way.
pub struct Comparing {
    /// `Err` says why only the outputs are compared.
    layers: Result<Layers, String>,
    /// Each model by itself, once they have to run so.
    apart: Option<[Engine; 2]>,
    outputs: Outputs,
    inputs: Inputs,
    float: Model,
    split: Option<Split>,
    quantized: Model,
    samples: usize,
}

impl Comparing {
    /// Begins with two prepared models.
    pub fn new(mut float: Model, mut quantized: Model) -> Result<Comparing, CompareError> {
        // Layer by layer the quantized model is one whose channels have the same factors.
        if Factors::remembered(&float)?.is_empty() {
            float = Factors::remembered(&quantized)?.applied(&float)?;
        }
        let opset = float.opset().max(quantized.opset());
        raise_opset(&mut float, opset)?;
        raise_opset(&mut quantized, opset)?;
        let (first, second) = (float.graph.outputs.len(), quantized.graph.outputs.len());
        if first != second {
            return Err(CompareError::Outputs {
                float: first,
                quantized: second,
            });
        }
        names::give_back(&float, &mut quantized);
        let combined = combine(&float, &quantized)?;
        let inputs = Inputs::of(&float, &combined.simulated);
        let layers = Layers {
            engine: Engine::watching(combined.model.clone(), combined.watched.clone()),
            sums: combined.pairs.iter().map(|_| Sums::default()).collect(),
            combined,
        };
        Ok(Comparing {
            layers: Ok(layers),
            apart: None,
            outputs: Outputs::of(&float),
            inputs,
            float,
            split: None,
            quantized,
            samples: 0,
        })
    }

    /// Splits the error of the outputs in two from the next sample on: weights alone, and activations alone. That takes two
    /// more runs a sample. Whether it can: the quantized model has to have its weights behind DequantizeLinear.
    pub fn split(&mut self) -> bool {
        self.split = Split::of(&self.float, &self.quantized);
        self.split.is_some()
    }

    /// Runs a sample; `label` is the class it belongs to, where that is known.
    pub fn feed(
        &mut self,
        inputs: &[Tensor],
        label: Option<usize>,
        stop: impl Fn() -> bool,
    ) -> Result<(), CompareError> {
        let together = match &mut self.layers {
            Ok(layers) => match layers.feed(inputs, &stop) {
                Err(EngineError::Stopped) => return Err(EngineError::Stopped.into()),
                made => made.map_err(|error| error.to_string()),
            },
            Err(reason) => Err(reason.clone()),
        };
        let made = match together {
            Ok(made) => made,
            Err(reason) => {
                let made = self.run_apart(inputs, &stop)?;
                self.layers = Err(reason);
                made
            }
        };
        self.inputs.look(inputs);
        let (float, quantized) = made.split_at(made.len() / 2);
        self.outputs.add(float, quantized, label);
        if let Some(split) = &mut self.split {
            split.add(inputs, float, &stop)?;
        }
        self.samples += 1;
        Ok(())
    }

    /// What each model by itself makes, the float one first.
    fn run_apart(
        &mut self,
        inputs: &[Tensor],
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Tensor>, EngineError> {
        let engines = self
            .apart
            .get_or_insert_with(|| [&self.float, &self.quantized].map(alone));
        let mut made = Vec::new();
        for engine in engines {
            made.extend(engine.run(inputs, |_, _| {}, stop)?);
        }
        Ok(made)
    }

    /// The result.
    pub fn finish(self) -> Comparison {
        let mut outputs = self.outputs.finish();
        let errors = self.split.iter().flat_map(Split::finish);
        for (output, (weights, activations)) in outputs.iter_mut().zip(errors) {
            output.weights_only = Some(weights);
            output.activations_only = Some(activations);
        }
        let (layers, simulated, unpaired, failed) = match self.layers {
            Ok(layers) => {
                let (errors, unlike) = layers.errors();
                let unpaired = [layers.combined.alone, unlike].concat();
                (errors, layers.combined.simulated, unpaired, None)
            }
            Err(reason) => (
                Vec::new(),
                simulate(&self.quantized),
                Vec::new(),
                Some(reason),
            ),
        };
        let mut order: Vec<&LayerError> = layers.iter().filter(|l| l.harm > 0.0).collect();
        order.sort_by(|a, b| b.harm.total_cmp(&a.harm));
        let worst = order.iter().take(WORST).map(|l| l.layer.clone()).collect();
        let warnings = warnings::find(&self.float, &simulated, &layers, &self.inputs);
        Comparison {
            samples: self.samples,
            headline: outputs::headline(&outputs),
            outputs,
            layers,
            layers_failed: failed,
            worst,
            unpaired,
            warnings,
        }
    }
}

fn alone(model: &Model) -> Engine {
    Engine::new(model.clone(), Vec::new())
}

impl Layers {
    /// Runs a sample; the outputs of both models.
    fn feed(
        &mut self,
        inputs: &[Tensor],
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Tensor>, EngineError> {
        let (pairs, sums) = (&self.combined.pairs, &mut self.sums);
        let see = |slot: usize, values: &[&[f32]]| {
            let (pair, sums) = (&pairs[slot], &mut sums[slot]);
            if values.iter().any(|other| other.len() != values[0].len()) {
                sums.unlike = true;
                return;
            }
            let passed = pair.passes.map(|ends| cut(values, ends));
            let passed: Option<Vec<&[f32]>> = passed
                .as_ref()
                .map(|all| all.iter().map(Vec::as_slice).collect());
            let values = passed.as_deref().unwrap_or(values);
            sums.look(values[0], pair.range);
            sums.accumulated.add(values[0], values[pair.accumulated]);
            for (place, sum) in [
                (pair.added, &mut sums.added),
                (pair.weights, &mut sums.weights),
                (pair.activations, &mut sums.activations),
            ] {
                if let Some(place) = place {
                    sum.add(values[0], values[place]);
                }
            }
        };
        self.engine.run_beside(inputs, see, stop)
    }

    /// The error of each layer, and the values that have none: of which the quantized model made another number.
    fn errors(&self) -> (Vec<LayerError>, Vec<String>) {
        let seen = self.combined.pairs.iter().zip(&self.sums);
        let (unlike, seen): (Vec<_>, Vec<_>) = seen.partition(|(_, sums)| sums.unlike);
        let mut layers: Vec<LayerError> = seen
            .into_iter()
            .map(|(pair, sums)| {
                let moves = MOVING.contains(&pair.operator.as_str());
                LayerError {
                    layer: pair.layer.clone(),
                    operator: pair.operator.clone(),
                    value: pair.value.clone(),
                    rounded: pair.range.is_some(),
                    accumulated: sums.accumulated.apart(),
                    added: pair.added.filter(|_| !moves).map(|_| sums.added.apart()),
                    weights_only: pair.weights.map(|_| sums.weights.apart().sqnr),
                    activations_only: pair.activations.map(|_| sums.activations.apart().sqnr),
                    clipped: sums.outside as f64 / sums.count.max(1) as f64,
                    min: sums.ends.map_or(0.0, |(min, _)| min),
                    max: sums.ends.map_or(0.0, |(_, max)| max),
                    range: pair.range,
                    harm: match moves {
                        true => 0.0,
                        // A value that is always zero has no signal: one of a hundred times its noise counts as much.
                        false => sums.added.noise_share().min(100.0),
                    },
                }
            })
            .collect();
        let total: f64 = layers.iter().map(|layer| layer.harm).sum();
        for layer in layers.iter_mut().filter(|_| total > 0.0) {
            layer.harm /= total;
        }
        let unlike = unlike.into_iter().map(|(pair, _)| pair.value.clone());
        (layers, unlike.collect())
    }
}

impl Sums {
    /// What the float values are like.
    fn look(&mut self, values: &[f32], range: Option<(f32, f32)>) {
        let (mut min, mut max) = self.ends.unwrap_or((f32::INFINITY, f32::NEG_INFINITY));
        for &value in values {
            min = min.min(value);
            max = max.max(value);
        }
        self.ends = (min <= max).then_some((min, max));
        self.count += values.len() as u64;
        if let Some(range) = range {
            let outside = outside(range);
            self.outside += values.iter().filter(|&&value| outside(value)).count() as u64;
        }
    }
}

/// These values cut off at both ends; what is no number stays.
fn cut(values: &[&[f32]], (low, high): (f32, f32)) -> Vec<Vec<f32>> {
    let cut = |&value: &f32| match value {
        value if value < low => low,
        value if value > high => high,
        value => value,
    };
    let each = values.iter().map(|values| values.iter().map(cut).collect());
    each.collect()
}

/// What a value outside of a range is.
fn outside((low, high): (f32, f32)) -> impl Fn(f32) -> bool {
    // Half a step beyond the ends still rounds to them: a step is at least a 65,535th of the range.
    let slack = (high - low) / 131_070.0;
    move |value| value < low - slack || value > high + slack
}

#[cfg(test)]
mod tests;
