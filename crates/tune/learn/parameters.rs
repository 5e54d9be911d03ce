//! The parameters that learn in the weights of some outputs: AdaRound's fractions, AdaQuant's weights, or scales.

use octet_training::{
    Adam, QuantizationGrid, SoftRounding, fake_quantize, fake_quantize_gradient, mask_len,
    soft_fraction, variable_of,
};

use super::batch::scale_gradient;
use crate::TuneError;
use crate::options::TuneAlgorithm;

/// A real weight starts this near to its integer, in steps.
const NEAR: f32 = 0.45;
/// Relative step of a scale, of the optimizer.
pub(crate) const SCALE_RATE: f32 = 1e-4;

/// The parameters that learn, by algorithm.
enum Learning {
    /// The lower integers, and the variables of the fractions.
    Fractions {
        lower: Vec<f32>,
        variables: Vec<f32>,
    },
    /// Real weights, and the mask of weights that are not clipped.
    Weights { weights: Vec<f32>, passed: Vec<u32> },
    /// The scales alone, of these integers.
    Scales { integers: Vec<i32> },
}

/// The weights of some outputs while they learn.
pub(crate) struct Parameters {
    /// Inputs of an output.
    inputs: usize,
    /// Scales, which AdaRound keeps, and the logarithms of those that learn.
    scales: Vec<f32>,
    logarithms: Vec<f32>,
    /// The lowest and highest integer of each output, less its zero point.
    ranges: Vec<[i32; 2]>,
    learning: Learning,
    optimizer: Adam,
    scale_optimizer: Adam,
}

/// The start of the weights: integers, scales and ranges by output, and the float weights.
pub(crate) struct Start<'a> {
    pub(crate) inputs: usize,
    pub(crate) integers: &'a [i32],
    pub(crate) scales: &'a [f32],
    pub(crate) ranges: Vec<[i32; 2]>,
    pub(crate) floats: &'a [f32],
}

impl Parameters {
    /// Parameters of an algorithm; of the scales alone without one.
    pub(crate) fn new(start: Start, algorithm: Option<TuneAlgorithm>) -> Parameters {
        let (inputs, scales) = (start.inputs, start.scales.to_vec());
        // The float weights, near to the first integers: between an integer and its float.
        let near = |(place, &integer): (usize, &i32)| {
            let away = start.floats[place] / scales[place / inputs] - integer as f32;
            (integer as f32 + away.clamp(-NEAR, NEAR)) * scales[place / inputs]
        };
        let weights = || -> Vec<f32> { start.integers.iter().enumerate().map(near).collect() };
        let learning = match algorithm {
            None => Learning::Scales {
                integers: start.integers.to_vec(),
            },
            Some(TuneAlgorithm::AdaQuant) => Learning::Weights {
                passed: vec![0; scales.len() * mask_len(inputs)],
                weights: weights(),
            },
            Some(TuneAlgorithm::AdaRound) => {
                let weights = weights();
                let steps = weights.iter().enumerate();
                let steps: Vec<f32> = steps
                    .map(|(place, weight)| weight / scales[place / inputs])
                    .collect();
                let fraction = |step: &f32| variable_of(step - step.floor());
                Learning::Fractions {
                    variables: steps.iter().map(fraction).collect(),
                    lower: steps.iter().map(|step| step.floor()).collect(),
                }
            }
        };
        let variables = match learning {
            Learning::Scales { .. } => 0,
            _ => start.integers.len(),
        };
        Parameters {
            inputs,
            logarithms: scales.iter().map(|scale| scale.ln()).collect(),
            ranges: start.ranges,
            learning,
            optimizer: Adam::new(variables),
            scale_optimizer: Adam::new(scales.len()),
            scales,
        }
    }

    /// The soft rounding of an output. `pull` is the regulariser's weight and exponent.
    fn rounding(&self, output: usize, pull: [f32; 2]) -> SoftRounding {
        let [low, high] = self.ranges[output];
        SoftRounding {
            low: low as f32,
            high: high as f32,
            regulariser: pull[0],
            beta: pull[1],
        }
    }

    /// Writes the reals of the weights.
    pub(crate) fn reals(&mut self, pull: [f32; 2], reals: &mut [f32]) {
        let inputs = self.inputs;
        for (output, reals) in reals.chunks_mut(inputs).enumerate() {
            let own = output * inputs..(output + 1) * inputs;
            let rounding = self.rounding(output, pull);
            let [low, high] = self.ranges[output];
            match &mut self.learning {
                Learning::Fractions { lower, variables } => {
                    let scale = self.scales[output];
                    rounding.round(&lower[own.clone()], &variables[own], scale, reals);
                }
                Learning::Weights { weights, passed } => {
                    let scale = self.logarithms[output].exp();
                    let mask = &mut passed[output * mask_len(inputs)..][..mask_len(inputs)];
                    let grid = QuantizationGrid::new(scale, low, high);
                    // A scale that left the floats has no grid; its weights stay as they were.
                    let _rounded =
                        grid.is_some_and(|grid| fake_quantize(&weights[own], grid, reals, mask));
                }
                Learning::Scales { integers } => {
                    let scale = self.logarithms[output].exp();
                    let pairs = reals.iter_mut().zip(&integers[own]);
                    pairs.for_each(|(real, &integer)| *real = integer as f32 * scale);
                }
            }
        }
    }

    /// Moves against the gradient of the reals, which is overwritten. `scales` says whether scales
    /// learn, where the algorithm allows it.
    pub(crate) fn step(
        &mut self,
        gradient: &mut [f32],
        pull: [f32; 2],
        rate: f32,
        scales: bool,
    ) -> Result<(), TuneError> {
        let (inputs, outputs) = (self.inputs, self.scales.len());
        let roundings: Vec<SoftRounding> = (0..outputs)
            .map(|output| self.rounding(output, pull))
            .collect();
        let mut by_scale = vec![0.0; outputs];
        for output in 0..outputs {
            let own = output * inputs..(output + 1) * inputs;
            let scale = self.logarithms[output].exp();
            match &self.learning {
                Learning::Fractions { lower, variables } => roundings[output].gradient(
                    &lower[own.clone()],
                    &variables[own.clone()],
                    self.scales[output],
                    &mut gradient[own],
                ),
                Learning::Weights { weights, passed } => {
                    by_scale[output] = scale_gradient(
                        &gradient[own.clone()],
                        &weights[own.clone()],
                        scale,
                        self.ranges[output],
                    );
                    let whole = gradient[own.clone()].to_vec();
                    let mask = &passed[output * mask_len(inputs)..][..mask_len(inputs)];
                    if !fake_quantize_gradient(&whole, mask, &mut gradient[own]) {
                        return Err(TuneError::Broken("a step's product"));
                    }
                }
                Learning::Scales { integers } => {
                    let pairs = gradient[own.clone()].iter().zip(&integers[own]);
                    let sum: f32 = pairs.map(|(slope, &integer)| slope * integer as f32).sum();
                    by_scale[output] = sum * scale;
                }
            }
        }
        match &mut self.learning {
            Learning::Fractions { variables, .. } => {
                self.optimizer.step(variables, gradient, rate);
                return Ok(());
            }
            Learning::Weights { weights, .. } => self.optimizer.step(weights, gradient, rate),
            Learning::Scales { .. } => {}
        }
        if scales {
            let (logarithms, slopes) = (&mut self.logarithms, &by_scale);
            self.scale_optimizer.step(logarithms, slopes, SCALE_RATE);
        }
        Ok(())
    }

    /// The integers and scales.
    pub(crate) fn finished(self) -> (Vec<i32>, Vec<f32>) {
        let end = |place: usize, integer: f32| {
            let [low, high] = self.ranges[place / self.inputs];
            (integer as i32).clamp(low, high)
        };
        let scales: Vec<f32> = self.logarithms.iter().map(|one| one.exp()).collect();
        match self.learning {
            Learning::Fractions { lower, variables } => {
                let pairs = lower.iter().zip(&variables).enumerate();
                let integer = |(place, (lower, &v)): (usize, (&f32, &f32))| {
                    end(place, lower + f32::from(u8::from(soft_fraction(v) >= 0.5)))
                };
                (pairs.map(integer).collect(), self.scales)
            }
            Learning::Weights { weights, .. } => {
                let integer = |(place, weight): (usize, &f32)| {
                    end(
                        place,
                        (weight / scales[place / self.inputs]).round_ties_even(),
                    )
                };
                (weights.iter().enumerate().map(integer).collect(), scales)
            }
            Learning::Scales { integers } => (integers, scales),
        }
    }
}
