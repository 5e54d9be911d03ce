//! AdaRound and AdaQuant for one layer.
//!
//! Each output has its own loss, because the function behind the layer takes it alone. So parts of
//! the outputs learn independently, a part in one thread, and the result does not depend on the
//! number of threads.

mod batch;

use octet_training::{
    Adam, QuantizationGrid, SoftRounding, annealed_beta, fake_quantize, fake_quantize_gradient,
    mask_len, soft_fraction, variable_of,
};
use rayon::prelude::*;

use batch::{Batch, batch, scale_gradient};

use crate::TuneError;
use crate::activation::OutputStage;
use crate::options::{TuneAlgorithm, TuneOptions};
use crate::problem::{LayerProblem, OutputPart};
use crate::solution::Solution;

/// Points of a loss curve.
const CURVE: usize = 16;
/// The loss of the first integers, relative to the regulariser's part of one weight.
const LOSS_OF_A_WEIGHT: f32 = 0.1;
/// A real weight starts this near to its integer, in steps.
const NEAR: f32 = 0.45;
/// Relative steps of a scale and a bias, of the optimizer.
const SCALE_RATE: f32 = 1e-4;
const BIAS_RATE: f32 = 1e-3;

/// Constants that a part of the outputs learned.
struct Learned {
    integers: Vec<i32>,
    scales: Vec<f32>,
    bias: Option<Vec<f32>>,
    /// Sums over the outputs of the mean squared error of a step, along the iterations.
    curve: Vec<f64>,
}

/// Constants that a layer learned.
pub(crate) struct LearnedLayer {
    pub(crate) solution: Solution,
    /// The error along the iterations, averaged over the outputs.
    pub(crate) curve: Vec<f64>,
}

/// Learns from a solution.
pub(crate) fn learn(
    problem: &LayerProblem,
    from: &Solution,
    ends: [i32; 2],
    zero_points: &[i32],
    (options, seed, per_output): (&TuneOptions, u64, bool),
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<LearnedLayer, TuneError> {
    let start = problem.losses(&problem.taught, from)?;
    let learner = Learner {
        problem,
        from,
        start: &start,
        ends,
        zero_points,
        options,
        seed,
        per_output,
        stop,
    };
    let parts = problem.parts();
    let learned = parts.par_iter().map(|part| learner.part(part));
    let learned = learned.collect::<Result<Vec<Learned>, TuneError>>()?;
    let points = learned.iter().map(|one| one.curve.len()).min().unwrap_or(0);
    let point = |at: usize| {
        learned.iter().map(|one| one.curve[at]).sum::<f64>() / start.len().max(1) as f64
    };
    let biases: Option<Vec<Vec<f32>>> = learned.iter().map(|one| one.bias.clone()).collect();
    Ok(LearnedLayer {
        curve: (0..points).map(point).collect(),
        solution: Solution {
            integers: learned
                .iter()
                .flat_map(|one| one.integers.iter().copied())
                .collect(),
            scales: learned
                .iter()
                .flat_map(|one| one.scales.iter().copied())
                .collect(),
            bias: biases.map(|biases| biases.concat()),
        },
    })
}

struct Learner<'a> {
    problem: &'a LayerProblem,
    from: &'a Solution,
    /// The error of each output with the first solution.
    start: &'a [f64],
    ends: [i32; 2],
    zero_points: &'a [i32],
    options: &'a TuneOptions,
    seed: u64,
    per_output: bool,
    stop: &'a (dyn Fn() -> bool + Sync),
}

/// The parameters of a part, by algorithm.
enum Parameters {
    /// The lower integers, and the variables of the fractions.
    Round {
        lower: Vec<f32>,
        variables: Vec<f32>,
    },
    /// Real weights, logarithms of scales, and the mask of weights that are not clipped.
    Quant {
        weights: Vec<f32>,
        logarithms: Vec<f32>,
        passed: Vec<u32>,
    },
}

impl Learner<'_> {
    /// The lowest and highest integer of an output, less its zero point.
    fn range(&self, output: usize) -> [i32; 2] {
        let zero_point = self.zero_points[if self.zero_points.len() > 1 {
            output
        } else {
            0
        }];
        self.ends.map(|end| end - zero_point)
    }

    /// The float weights, near to the first integers: between an integer and the side of its float.
    fn near(&self, part: &OutputPart) -> Vec<f32> {
        let inputs = self.problem.inputs;
        let places = part.outputs.start * inputs..part.outputs.end * inputs;
        let near = |place: usize| {
            let scale = self.from.scales[place / inputs];
            let integer = self.from.integers[place] as f32;
            let away = self.problem.weights[place] / scale - integer;
            (integer + away.clamp(-NEAR, NEAR)) * scale
        };
        places.map(near).collect()
    }

    fn parameters(&self, part: &OutputPart) -> Parameters {
        let inputs = self.problem.inputs;
        let weights = self.near(part);
        let scale = |place: usize| self.from.scales[part.outputs.start + place / inputs];
        match self.options.algorithm {
            TuneAlgorithm::AdaQuant => Parameters::Quant {
                passed: vec![0; part.outputs.len() * mask_len(inputs)],
                logarithms: self.from.scales[part.outputs.clone()]
                    .iter()
                    .map(|scale| scale.ln())
                    .collect(),
                weights,
            },
            TuneAlgorithm::AdaRound => {
                let steps: Vec<f32> = weights
                    .iter()
                    .enumerate()
                    .map(|(place, weight)| weight / scale(place))
                    .collect();
                Parameters::Round {
                    variables: steps
                        .iter()
                        .map(|step| variable_of(step - step.floor()))
                        .collect(),
                    lower: steps.iter().map(|step| step.floor()).collect(),
                }
            }
        }
    }

    fn part(&self, part: &OutputPart) -> Result<Learned, TuneError> {
        let (problem, options) = (self.problem, self.options);
        let (inputs, outputs) = (problem.inputs, part.outputs.len());
        let rows = &problem.taught;
        let together = options.positions.min(rows.count);
        let batches = rows.count / together;
        let mut parameters = self.parameters(part);
        let mut optimizer = Adam::new(outputs * inputs);
        let mut scale_optimizer = Adam::new(outputs);
        let mut bias_optimizer = Adam::new(outputs);
        let mut bias: Vec<f32> = part
            .outputs
            .clone()
            .map(|output| self.from.bias_of(output))
            .collect();
        // Each output counts alike, whatever the size of its values.
        let weight_of: Vec<f32> = part
            .outputs
            .clone()
            .map(|output| {
                let start = self.start[output] as f32;
                if start > 0.0 {
                    LOSS_OF_A_WEIGHT * inputs as f32 / start
                } else {
                    0.0
                }
            })
            .collect();
        let bias_rates: Vec<f32> = part
            .outputs
            .clone()
            .map(|output| BIAS_RATE * (self.start[output] as f32).sqrt())
            .collect();
        let mut stage = OutputStage::new(problem.activation, problem.output);
        let mut reals = vec![0.0; outputs * inputs];
        let mut values = vec![0.0; outputs * together];
        let mut gradient = vec![0.0; outputs * inputs];
        let mut curve = Vec::with_capacity(CURVE);
        let broken = || TuneError::Broken("a step's product");
        for iteration in 0..options.iterations {
            if (self.stop)() {
                return Err(TuneError::Stopped);
            }
            let first = batch(self.seed, iteration, batches) * together;
            let beta = annealed_beta(
                iteration,
                options.iterations,
                options.warm_start,
                options.beta_range,
            );
            let rounding = |output: usize| {
                let [low, high] = self.range(part.outputs.start + output);
                SoftRounding {
                    low: low as f32,
                    high: high as f32,
                    regulariser: beta.map_or(0.0, |_| options.reg_param),
                    beta: beta.unwrap_or(2.0),
                }
            };
            self.reals(part, &mut parameters, &rounding, &mut reals);
            let batch = Batch {
                problem,
                part,
                first,
                together,
            };
            let error = batch.gradient(
                (&reals, &bias, &weight_of),
                &mut stage,
                &mut values,
                &mut gradient,
            )?;
            if options.update_bias && problem.bias.is_some() {
                let sums: Vec<f32> = values
                    .chunks(together)
                    .map(|row| row.iter().sum())
                    .collect();
                let mut relative: Vec<f32> = bias
                    .iter()
                    .zip(&bias_rates)
                    .map(|(bias, rate)| bias / rate.max(f32::MIN_POSITIVE))
                    .collect();
                let before = relative.clone();
                bias_optimizer.step(&mut relative, &sums, 1.0);
                for (output, bias) in bias.iter_mut().enumerate() {
                    *bias += (relative[output] - before[output]) * bias_rates[output];
                }
            }
            match &mut parameters {
                Parameters::Round { lower, variables } => {
                    for output in 0..outputs {
                        let own = output * inputs..(output + 1) * inputs;
                        let scale = self.from.scales[part.outputs.start + output];
                        rounding(output).gradient(
                            &lower[own.clone()],
                            &variables[own.clone()],
                            scale,
                            &mut gradient[own],
                        );
                    }
                    optimizer.step(variables, &gradient, options.learning_rate);
                }
                Parameters::Quant {
                    weights,
                    logarithms,
                    passed,
                } => {
                    let mut by_scale = vec![0.0; outputs];
                    for output in 0..outputs {
                        let own = output * inputs..(output + 1) * inputs;
                        let scale = logarithms[output].exp();
                        by_scale[output] = scale_gradient(
                            &gradient[own.clone()],
                            &weights[own.clone()],
                            scale,
                            self.range(part.outputs.start + output),
                        );
                        let whole = gradient[own.clone()].to_vec();
                        let mask = &passed[output * mask_len(inputs)..][..mask_len(inputs)];
                        if !fake_quantize_gradient(&whole, mask, &mut gradient[own]) {
                            return Err(broken());
                        }
                    }
                    optimizer.step(weights, &gradient, options.learning_rate);
                    if self.per_output {
                        scale_optimizer.step(logarithms, &by_scale, SCALE_RATE);
                    }
                }
            }
            if iteration * CURVE / options.iterations >= curve.len() {
                curve.push(error / together as f64);
            }
        }
        Ok(self.finished(part, parameters, bias, curve))
    }

    /// Writes the reals of the weights.
    fn reals(
        &self,
        part: &OutputPart,
        parameters: &mut Parameters,
        rounding: &dyn Fn(usize) -> SoftRounding,
        reals: &mut [f32],
    ) {
        let inputs = self.problem.inputs;
        for (output, reals) in reals.chunks_mut(inputs).enumerate() {
            let own = output * inputs..(output + 1) * inputs;
            match parameters {
                Parameters::Round { lower, variables } => {
                    let scale = self.from.scales[part.outputs.start + output];
                    rounding(output).round(&lower[own.clone()], &variables[own], scale, reals);
                }
                Parameters::Quant {
                    weights,
                    logarithms,
                    passed,
                } => {
                    let [low, high] = self.range(part.outputs.start + output);
                    let mask = &mut passed[output * mask_len(inputs)..][..mask_len(inputs)];
                    let grid = QuantizationGrid::new(logarithms[output].exp(), low, high);
                    // A scale that left the floats has no grid; its weights stay as they were.
                    let _rounded =
                        grid.is_some_and(|grid| fake_quantize(&weights[own], grid, reals, mask));
                }
            }
        }
    }

    fn finished(
        &self,
        part: &OutputPart,
        parameters: Parameters,
        bias: Vec<f32>,
        curve: Vec<f64>,
    ) -> Learned {
        let inputs = self.problem.inputs;
        let end = |place: usize, integer: f32| {
            let [low, high] = self.range(part.outputs.start + place / inputs);
            (integer as i32).clamp(low, high)
        };
        let (integers, scales) = match parameters {
            Parameters::Round { lower, variables } => {
                let pairs = lower.iter().zip(&variables).enumerate();
                let integer = |(place, (lower, &v)): (usize, (&f32, &f32))| {
                    end(place, lower + f32::from(u8::from(soft_fraction(v) >= 0.5)))
                };
                (
                    pairs.map(integer).collect(),
                    self.from.scales[part.outputs.clone()].to_vec(),
                )
            }
            Parameters::Quant {
                weights,
                logarithms,
                ..
            } => {
                let scales: Vec<f32> = logarithms.iter().map(|logarithm| logarithm.exp()).collect();
                let integer = |(place, weight): (usize, &f32)| {
                    end(place, (weight / scales[place / inputs]).round_ties_even())
                };
                (weights.iter().enumerate().map(integer).collect(), scales)
            }
        };
        Learned {
            integers,
            scales,
            bias: self.problem.bias.as_ref().map(|_| bias),
            curve,
        }
    }
}
