//! AdaRound and AdaQuant for one layer.
//!
//! Each output has its own loss, because the function behind the layer takes it alone. So parts of
//! the outputs learn independently, a part in one thread, and the result does not depend on the
//! number of threads.

mod batch;
mod parameters;

use octet_training::Adam;
use rayon::prelude::*;

pub(crate) use batch::drawn;
pub(crate) use parameters::{Parameters, SCALE_RATE, Start};

use batch::Batch;

use crate::TuneError;
use crate::activation::OutputStage;
use crate::options::TuneOptions;
use crate::problem::{LayerProblem, OutputPart};
use crate::solution::Solution;

/// Points of a loss curve.
pub(crate) const CURVE: usize = 16;
/// The loss of the first integers, relative to the regulariser's part of one weight.
pub(crate) const LOSS_OF_A_WEIGHT: f32 = 0.1;
/// Relative step of a bias, of the optimizer.
const BIAS_RATE: f32 = 1e-3;

/// Constants that a part of the outputs learned.
struct Learned {
    solution: Solution,
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
    let curve = (0..points).map(point).collect();
    let parts = learned.into_iter().map(|one| one.solution).collect();
    Ok(LearnedLayer {
        solution: Solution::concat(parts),
        curve,
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

    fn parameters(&self, part: &OutputPart) -> Parameters {
        let inputs = self.problem.inputs;
        let places = part.outputs.start * inputs..part.outputs.end * inputs;
        let start = Start {
            inputs,
            integers: &self.from.integers[places.clone()],
            scales: &self.from.scales[part.outputs.clone()],
            ranges: part
                .outputs
                .clone()
                .map(|output| self.range(output))
                .collect(),
            floats: &self.problem.weights[places],
        };
        Parameters::new(start, Some(self.options.algorithm))
    }

    fn part(&self, part: &OutputPart) -> Result<Learned, TuneError> {
        let (problem, options) = (self.problem, self.options);
        let (inputs, outputs) = (problem.inputs, part.outputs.len());
        let rows = &problem.taught;
        let together = options.positions.min(rows.count);
        let batches = rows.count / together;
        let own = problem.inputs_of(part.group);
        let mut parameters = self.parameters(part);
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
        let mut floats = Vec::new();
        let mut curve = Vec::with_capacity(CURVE);
        for iteration in 0..options.iterations {
            if (self.stop)() {
                return Err(TuneError::Stopped);
            }
            let first = drawn(self.seed, iteration, batches) * together;
            let pull = options.pull(iteration, options.iterations);
            parameters.reals(pull, &mut reals);
            let measured = iteration * CURVE / options.iterations >= curve.len();
            let columns = first..first + together;
            let batch = Batch {
                problem,
                part,
                first,
                inputs: rows.inputs.floats(own.clone(), columns, &mut floats)?,
            };
            let error = batch.gradient(
                (&reals, &bias, &weight_of),
                &mut stage,
                &mut values,
                &mut gradient,
                measured,
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
            parameters.step(&mut gradient, pull, options.learning_rate, self.per_output)?;
            if measured {
                curve.push(error / together as f64);
            }
        }
        let (integers, scales) = parameters.finished();
        Ok(Learned {
            solution: Solution {
                integers,
                scales,
                bias: self.problem.bias.as_ref().map(|_| bias),
            },
            curve,
        })
    }
}
