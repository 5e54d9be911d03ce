//! The steps in which a block learns, and its judgement on samples that did not teach.

use octet_training::Adam;
use octet_training::reverse::Mixture;
use rayon::prelude::*;

use super::program::{BlockProgram, BlockReals, reals};
use crate::TuneError;
use crate::layers::TunedLayer;
use crate::learn::{CURVE, LOSS_OF_A_WEIGHT, Parameters, SCALE_RATE, Start, drawn};
use crate::options::{TuneAlgorithm, TuneOptions};
use crate::solution::Solution;
use crate::store::LoadedValue;

/// Of this many samples, one judges and does not teach.
const JUDGED: usize = 4;
/// The step of a bias, relative to the rounding noise that is expected there.
const BIAS_RATE: f32 = 0.01;
/// The expected size of a layer's inputs, in steps of their scale.
const STEPS_OF_INPUT: f32 = 32.0;
/// Places of the mixtures of a block's inputs; those of its steps are smaller.
const INPUT_PLACES: usize = usize::MAX / 2;

/// True for a sample that judges.
pub(crate) fn is_judge(sample: usize) -> bool {
    sample % JUDGED == JUDGED - 1
}

/// The values of a sample where a block begins and ends.
struct SampleValues {
    /// The inputs in the quantized and in the float model.
    quantized: Vec<Vec<f32>>,
    float: Vec<Vec<f32>>,
    /// The outputs of the float model.
    targets: Vec<Vec<f32>>,
}

/// Reads a sample of a program.
pub(crate) type LoadSample<'a> =
    &'a dyn Fn(usize, &BlockProgram) -> Result<LoadedSample<'a>, TuneError>;

/// The values of a sample as they rest, where a block begins and ends.
pub(crate) struct LoadedSample<'a> {
    pub(crate) quantized: Vec<LoadedValue<'a>>,
    pub(crate) float: Vec<LoadedValue<'a>>,
    pub(crate) targets: Vec<LoadedValue<'a>>,
}

impl LoadedSample<'_> {
    fn values(self, program: &BlockProgram) -> Result<SampleValues, TuneError> {
        let quantized = self.quantized.into_iter().zip(&program.inputs);
        let quantized = quantized.map(|(value, input)| input.reals(value.tensor()?));
        let floats = |values: Vec<LoadedValue>| {
            let floats = values.into_iter().map(|value| reals(value.tensor()?, None));
            floats.collect::<Result<_, _>>()
        };
        Ok(SampleValues {
            quantized: quantized.collect::<Result<_, _>>()?,
            float: floats(self.float)?,
            targets: floats(self.targets)?,
        })
    }
}

/// Constants of a block.
#[derive(Clone)]
pub(crate) struct BlockSolution {
    /// By the layers of the block's program.
    pub(crate) layers: Vec<Solution>,
    /// Scales of activations, by those of the program.
    pub(crate) scales: Vec<f32>,
}

impl BlockSolution {
    fn reals(&self) -> BlockReals {
        let layer = |layer: &Solution| {
            let outputs = layer.scales.len();
            let inputs = layer.integers.len() / outputs.max(1);
            let bias = layer.bias.clone().unwrap_or_default();
            [layer.reals(0..outputs, inputs), bias]
        };
        BlockReals {
            layers: self.layers.iter().map(layer).collect(),
            scales: self.scales.iter().map(|&scale| vec![scale]).collect(),
        }
    }
}

/// A block, its samples, and how it learns.
pub(crate) struct BlockLearner<'a> {
    /// A program for each set of shapes, and that of each sample.
    pub(crate) programs: Vec<BlockProgram>,
    pub(crate) of_sample: Vec<usize>,
    /// The layers that learn, in the order of the programs, with their float weights.
    pub(crate) layers: Vec<(&'a TunedLayer, Vec<f32>)>,
    /// Scales of activations that may learn.
    pub(crate) free_scales: Vec<bool>,
    /// Without an algorithm, scales and biases learn.
    pub(crate) algorithm: Option<TuneAlgorithm>,
    pub(crate) options: &'a TuneOptions,
    pub(crate) iterations: usize,
    /// The share of the values that are rounded in a step.
    pub(crate) rounded: f32,
    pub(crate) seed: u64,
    pub(crate) stop: &'a (dyn Fn() -> bool + Sync),
}

/// The parameters that the steps change.
struct Variables {
    layers: Vec<Parameters>,
    /// Biases, their optimizers and their steps.
    biases: Vec<(Vec<f32>, Adam, Vec<f32>)>,
    /// Logarithms of the scales of activations.
    scales: Vec<f32>,
    scale_optimizer: Adam,
}

impl BlockLearner<'_> {
    fn samples(&self, judges: bool) -> Vec<usize> {
        let all = 0..self.of_sample.len();
        all.filter(|&sample| is_judge(sample) == judges).collect()
    }

    fn stopped(&self) -> Result<(), TuneError> {
        match (self.stop)() {
            true => Err(TuneError::Stopped),
            false => Ok(()),
        }
    }

    fn loaded<'a>(
        &self,
        sample: usize,
        load: LoadSample<'a>,
    ) -> Result<(&BlockProgram, LoadedSample<'a>), TuneError> {
        let program = &self.programs[self.of_sample[sample]];
        Ok((program, load(sample, program)?))
    }

    /// The mean squared error of each output on the samples that judge, or on those that teach.
    pub(crate) fn errors(
        &self,
        solution: &BlockSolution,
        judges: bool,
        load: LoadSample,
    ) -> Result<Vec<f64>, TuneError> {
        let reals = solution.reals();
        let of_sample = |(program, sample): (&BlockProgram, LoadedSample)| {
            self.stopped()?;
            let values = sample.values(program)?;
            program.errors(&values.quantized, &values.targets, &reals)
        };
        let mut all = Vec::new();
        // A sample of each thread at a time, so that few values are held twice.
        let threads = rayon::current_num_threads().max(1);
        for together in self.samples(judges).chunks(threads) {
            let loaded = together.iter().map(|&sample| self.loaded(sample, load));
            let loaded = loaded.collect::<Result<Vec<_>, _>>()?;
            let errors = loaded.into_par_iter().map(of_sample);
            all.extend(errors.collect::<Result<Vec<Vec<f64>>, _>>()?);
        }
        let outputs = all.first().map_or(0, Vec::len);
        let mean = |output: usize| {
            let errors = all.iter().map(|errors| errors[output]);
            errors.sum::<f64>() / all.len().max(1) as f64
        };
        Ok((0..outputs).map(mean).collect())
    }

    fn variables(&self, from: &BlockSolution) -> Variables {
        let layers = self.layers.iter().zip(&from.layers);
        let parameters = layers.clone().map(|((layer, floats), solution)| {
            let start = Start {
                inputs: layer.rows.inputs(),
                integers: &solution.integers,
                scales: &solution.scales,
                ranges: layer.ranges(),
                floats,
            };
            Parameters::new(start, self.algorithm)
        });
        let biases = layers.map(|((layer, _), solution)| {
            let bias = solution.bias.clone().unwrap_or_default();
            let spread = (layer.rows.inputs() as f32 / 12.0).sqrt() * layer.input_scale;
            let rate = |scale: &f32| BIAS_RATE * spread * STEPS_OF_INPUT * scale;
            let rates = solution.scales.iter().map(rate).collect();
            (bias.clone(), Adam::new(bias.len()), rates)
        });
        Variables {
            layers: parameters.collect(),
            biases: biases.collect(),
            scales: from.scales.iter().map(|scale| scale.ln()).collect(),
            scale_optimizer: Adam::new(from.scales.len()),
        }
    }

    /// Learns from a solution. Returns the new one, and the error along the steps.
    pub(crate) fn learn(
        &self,
        from: &BlockSolution,
        load: LoadSample,
    ) -> Result<(BlockSolution, Vec<f64>), TuneError> {
        let options = self.options;
        let (mut variables, mut reals) = (self.variables(from), from.reals());
        let taught = self.samples(false);
        let together = options.samples.min(taught.len()).max(1);
        let weights = from
            .layers
            .iter()
            .map(|layer| layer.integers.len())
            .sum::<usize>();
        let start = self.errors(from, false, load)?;
        let shares = start.len().max(1) as f64;
        // Each output counts alike, whatever the size of its values.
        let weight_of: Vec<f32> = start
            .iter()
            .map(|&error| {
                let whole =
                    f64::from(LOSS_OF_A_WEIGHT) * weights as f64 / (shares * together as f64);
                if error > 0.0 {
                    (whole / error) as f32
                } else {
                    0.0
                }
            })
            .collect();
        let unit = f64::from(LOSS_OF_A_WEIGHT) * weights as f64 / start.iter().sum::<f64>();
        let mut curve = Vec::with_capacity(CURVE);
        for iteration in 0..self.iterations {
            let pull = options.pull(iteration, self.iterations);
            let layers = variables.layers.par_iter_mut().zip(&mut reals.layers);
            layers.for_each(|(layer, [weights, _])| layer.reals(pull, weights));
            let numbers = iteration * together..(iteration + 1) * together;
            let draw = |number: usize| {
                let sample = taught[drawn(self.seed, number, taught.len())];
                Ok::<_, TuneError>((number, self.loaded(sample, load)?))
            };
            let loaded = numbers.map(draw).collect::<Result<Vec<_>, _>>()?;
            let all = loaded
                .into_par_iter()
                .map(|(number, sample)| self.of_step(sample, number, &reals, &weight_of));
            let all = all.collect::<Result<Vec<(f64, BlockReals)>, _>>()?;
            let mut error = 0.0;
            let mut sum: Option<BlockReals> = None;
            for (own, gradients) in all {
                error += own;
                match &mut sum {
                    Some(sum) => sum.add(&gradients),
                    none => *none = Some(gradients),
                }
            }
            let gradients = sum.ok_or(TuneError::Broken("the samples of a block"))?;
            self.step(&mut variables, &mut reals, gradients, pull)?;
            if iteration * CURVE / self.iterations >= curve.len() {
                curve.push(error / unit);
            }
        }
        let Variables {
            layers,
            biases,
            scales,
            ..
        } = variables;
        let finished = layers.into_iter().zip(biases).zip(&from.layers);
        let layers = finished.map(|((layer, (bias, ..)), from)| {
            let (integers, scales) = layer.finished();
            Solution {
                integers,
                scales,
                bias: from.bias.as_ref().map(|_| bias),
            }
        });
        let chosen = scales.iter().zip(&from.scales).zip(&self.free_scales);
        let solution = BlockSolution {
            layers: layers.collect(),
            scales: chosen
                .map(|((logarithm, from), free)| if *free { logarithm.exp() } else { *from })
                .collect(),
        };
        Ok((solution, curve))
    }

    /// The error and the gradients of a sample in a step.
    fn of_step(
        &self,
        (program, sample): (&BlockProgram, LoadedSample),
        number: usize,
        reals: &BlockReals,
        weight_of: &[f32],
    ) -> Result<(f64, BlockReals), TuneError> {
        self.stopped()?;
        let mut values = sample.values(program)?;
        let mixture = Mixture {
            seed: self.seed.wrapping_add(number as u64),
            rounded: (self.rounded * 256.0) as u32,
        };
        let inputs = values.quantized.iter_mut().zip(&values.float).enumerate();
        for (place, (quantized, float)) in inputs {
            if quantized.len() == float.len() {
                let mixture = mixture.at(INPUT_PLACES + place);
                mixture.mix(quantized, |place| float[place]);
            }
        }
        program.gradient(
            (&values.quantized, &values.targets),
            reals,
            weight_of,
            mixture,
        )
    }

    /// Moves all that learns against its gradient.
    fn step(
        &self,
        variables: &mut Variables,
        reals: &mut BlockReals,
        mut gradients: BlockReals,
        pull: [f32; 2],
    ) -> Result<(), TuneError> {
        let options = self.options;
        let layers = variables.layers.par_iter_mut().zip(&mut variables.biases);
        let own = gradients.layers.par_iter_mut().zip(&mut reals.layers);
        let own = own.zip(&self.layers);
        layers.zip(own).try_for_each(
            |((layer, (bias, optimizer, rates)), (([by_weights, by_bias], [_, real]), (of, _)))| {
                layer.step(by_weights, pull, options.learning_rate, of.per_output)?;
                if (options.update_bias || self.algorithm.is_none()) && !bias.is_empty() {
                    let least = f32::MIN_POSITIVE;
                    let pairs = bias.iter().zip(rates.iter());
                    let before: Vec<f32> =
                        pairs.map(|(bias, rate)| bias / rate.max(least)).collect();
                    let mut relative = before.clone();
                    optimizer.step(&mut relative, by_bias, 1.0);
                    for (output, bias) in bias.iter_mut().enumerate() {
                        *bias += (relative[output] - before[output]) * rates[output];
                    }
                    real.copy_from_slice(bias);
                }
                Ok::<(), TuneError>(())
            },
        )?;
        if self.free_scales.contains(&true) {
            let slopes = gradients
                .scales
                .iter()
                .zip(&reals.scales)
                .zip(&self.free_scales);
            let slopes: Vec<f32> = slopes
                .map(|((slope, scale), free)| if *free { slope[0] * scale[0] } else { 0.0 })
                .collect();
            let optimizer = &mut variables.scale_optimizer;
            optimizer.step(&mut variables.scales, &slopes, SCALE_RATE);
            for ((real, logarithm), free) in reals
                .scales
                .iter_mut()
                .zip(&variables.scales)
                .zip(&self.free_scales)
            {
                if *free {
                    real[0] = logarithm.exp();
                }
            }
        }
        Ok(())
    }
}
