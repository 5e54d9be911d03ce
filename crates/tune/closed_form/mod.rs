//! Rounding in closed form, for inputs that are quantized themselves.
//!
//! With the quantized inputs x̂ and the float outputs y, the mean squared error of an output is
//! const + (ŵ − w*)ᵀ·M·(ŵ − w*), where M = E[x̂·x̂ᵀ] and w* solves the least squares problem of y by
//! x̂. So GPTQ rounds w* in place of w. The inputs are taken in blocks; the residual of all outputs
//! is kept at the positions, so that a block corrects the errors of those before it.

mod grams;
#[cfg(test)]
mod tests;

use std::ops::Range;

use octet_kernels::{FloatRows, multiply, take_off};
use rayon::prelude::*;

pub(crate) use grams::InputBlock;
use grams::{mean, mean_products, solve};

use crate::TuneError;
use crate::problem::{LayerProblem, OutputPart};
use crate::solution::Solution;

/// Factors of a scale that are tried.
const FACTORS: [f32; 10] = [1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55];

/// The freedom of the closed form besides the integers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freedom {
    /// The share of the way from the float weights to the least squares solution.
    pub(crate) shift: f64,
    /// The scales are searched.
    pub(crate) scales: bool,
    /// Each output's gain and bias are fitted afterwards.
    pub(crate) refit: bool,
}

/// The closed form of a layer.
pub(crate) struct ClosedForm<'a> {
    problem: &'a LayerProblem,
    /// The blocks of each group's inputs.
    blocks: Vec<Vec<InputBlock>>,
    ends: [i32; 2],
    zero_points: &'a [i32],
    per_output: bool,
}

impl<'a> ClosedForm<'a> {
    pub(crate) fn new(
        problem: &'a LayerProblem,
        ends: [i32; 2],
        zero_points: &'a [i32],
        per_output: bool,
    ) -> Result<ClosedForm<'a>, TuneError> {
        let (inputs, centred) = (&problem.taught.inputs, problem.bias.is_some());
        let of_group = |group| InputBlock::all_of(inputs, problem.inputs_of(group), centred);
        let groups = (0..problem.groups).into_par_iter().map(of_group);
        Ok(ClosedForm {
            problem,
            blocks: groups.collect::<Result<_, _>>()?,
            ends,
            zero_points,
            per_output,
        })
    }

    /// Solves a layer, from another solution's scales.
    pub(crate) fn solve(&self, from: &Solution, freedom: Freedom) -> Result<Solution, TuneError> {
        let parts = self.problem.parts();
        let parts = parts.par_iter().map(|part| self.part(part, from, freedom));
        Ok(Solution::concat(parts.collect::<Result<_, _>>()?))
    }

    /// Rounds a real to an integer less the zero point, and back.
    fn round(&self, output: usize, scale: f32, wanted: f64) -> (i32, f64) {
        let zero_point = self.zero_points[if self.zero_points.len() > 1 {
            output
        } else {
            0
        }];
        let [low, high] = self.ends.map(|end| end - zero_point);
        let integer = ((wanted / f64::from(scale)).round_ties_even() as i32).clamp(low, high);
        (integer, f64::from(integer) * f64::from(scale))
    }

    fn part(
        &self,
        part: &OutputPart,
        from: &Solution,
        freedom: Freedom,
    ) -> Result<Solution, TuneError> {
        let (problem, inputs) = (self.problem, self.problem.inputs);
        let rows = &problem.taught;
        let (outputs, blocks) = (part.outputs.clone(), &self.blocks[part.group]);
        let floats = &problem.weights[outputs.start * inputs..outputs.end * inputs];
        let mut scales = from.scales[outputs.clone()].to_vec();
        if freedom.scales && self.per_output {
            let weights = outputs.clone().zip(floats.chunks(inputs));
            for ((output, weights), scale) in weights.zip(&mut scales) {
                *scale = self.best_scale(blocks, output, weights, *scale);
            }
        }
        // What the float weights leave at quantized inputs.
        let wanted = &rows.wanted[outputs.start * rows.count..outputs.end * rows.count];
        let mut residual = wanted.to_vec();
        self.subtract_products(&mut residual, floats, problem.inputs_of(part.group))?;
        let bias = problem.bias.as_ref().map(|bias| &bias[outputs.clone()]);
        for (output, row) in residual.chunks_mut(rows.count).enumerate() {
            let bias = bias.map_or(0.0, |bias| bias[output]);
            row.iter_mut().for_each(|value| *value -= bias);
        }
        let mut integers = vec![0; outputs.len() * inputs];
        for block in blocks {
            let towards = match &block.cholesky {
                Some(_) if freedom.shift > 0.0 => Some(self.towards(block, &residual)?),
                _ => None,
            };
            let own = &block.inputs;
            let mut errors = Vec::with_capacity(outputs.len() * own.len());
            for (at, output) in outputs.clone().enumerate() {
                let floats = &floats[at * inputs..][own.clone()];
                let mut weights = floats.to_vec();
                if let Some(towards) = &towards {
                    let towards = &towards[at * own.len()..][..own.len()];
                    for (weight, more) in weights.iter_mut().zip(towards) {
                        *weight += (freedom.shift * more) as f32;
                    }
                }
                let integers = &mut integers[at * inputs..][own.clone()];
                self.round_weights(block, output, scales[at], &weights, integers);
                let pairs = integers.iter().zip(floats);
                errors.extend(pairs.map(|(&integer, float)| integer as f32 * scales[at] - float));
            }
            self.subtract_products(&mut residual, &errors, block.rows.clone())?;
        }
        let fitted = bias.map(|bias| {
            let shifts = residual.chunks(rows.count).map(|row| mean(row) as f32);
            bias.iter()
                .zip(shifts)
                .map(|(bias, shift)| bias + shift)
                .collect()
        });
        let mut solution = Solution {
            integers,
            scales,
            bias: fitted,
        };
        if freedom.refit && self.per_output {
            refit(&mut solution, &residual, wanted, bias);
        }
        Ok(solution)
    }

    /// Rounds the weights of a block of inputs: to nearest, and then by GPTQ. Returns GPTQ's error.
    fn round_weights(
        &self,
        block: &InputBlock,
        output: usize,
        scale: f32,
        weights: &[f32],
        integers: &mut [i32],
    ) -> Option<f64> {
        let round = |_: usize, wanted| self.round(output, scale, wanted);
        for (integer, &weight) in integers.iter_mut().zip(weights) {
            *integer = round(0, weight.into()).0;
        }
        Some(block.factor.as_ref()?.improve(weights, integers, round)[1])
    }

    /// The scale with the least error of an output, among some near the given one.
    fn best_scale(&self, blocks: &[InputBlock], output: usize, weights: &[f32], given: f32) -> f32 {
        let error = |scale: f32| -> f64 {
            let of_block = |block: &InputBlock| {
                let weights = &weights[block.inputs.clone()];
                let mut integers = vec![0; weights.len()];
                self.round_weights(block, output, scale, weights, &mut integers)
            };
            blocks.iter().filter_map(of_block).sum()
        };
        let (mut least, mut best) = (error(given), given);
        for factor in &FACTORS[1..] {
            let error = error(given * factor);
            if error < least {
                (least, best) = (error, given * factor);
            }
        }
        best
    }

    /// The way from the float weights to the least squares solution of a residual, for each output.
    fn towards(&self, block: &InputBlock, residual: &[f32]) -> Result<Vec<f64>, TuneError> {
        let rows = &self.problem.taught;
        let residual = FloatRows::new(residual, residual.len() / rows.count, rows.count)
            .ok_or(TuneError::Broken("a residual"))?;
        let mut towards = mean_products(residual, &rows.inputs, block.rows.clone())?;
        let of_output = towards.chunks_mut(block.inputs.len().max(1)).enumerate();
        for (output, towards) in of_output {
            if self.problem.bias.is_some() {
                take_off(towards, mean(residual.row(output)), &block.means);
            }
            if let Some(cholesky) = &block.cholesky {
                solve(cholesky, towards);
            }
        }
        Ok(towards)
    }

    /// Subtracts the products of weights and some rows of the inputs from values at the positions.
    fn subtract_products(
        &self,
        values: &mut [f32],
        weights: &[f32],
        rows: Range<usize>,
    ) -> Result<(), TuneError> {
        let broken = || TuneError::Broken("a product");
        let taught = &self.problem.taught;
        let outputs = values.len() / taught.count.max(1);
        let weights = FloatRows::new(weights, outputs, rows.len()).ok_or_else(broken)?;
        let (mut floats, mut products) = (Vec::new(), Vec::new());
        for columns in taught.inputs.parts(rows.len()) {
            let x = taught
                .inputs
                .floats(rows.clone(), columns.clone(), &mut floats)?;
            products.resize(outputs * columns.len(), 0.0);
            if !multiply(weights, x, &mut products) {
                return Err(broken());
            }
            let values = values.chunks_mut(taught.count);
            for (values, products) in values.zip(products.chunks(columns.len())) {
                let values = &mut values[columns.clone()];
                values
                    .iter_mut()
                    .zip(products)
                    .for_each(|(value, product)| *value -= product);
            }
        }
        Ok(())
    }
}

/// Multiplies each output by the factor of least squares, and shifts it. The factor goes into the
/// scale. `residual` is what `wanted` exceeds the outputs with the biases `before` by.
fn refit(solution: &mut Solution, residual: &[f32], wanted: &[f32], before: Option<&[f32]>) {
    let count = wanted.len() / solution.scales.len().max(1);
    let rows = residual.chunks(count).zip(wanted.chunks(count)).enumerate();
    for (output, (residual, wanted)) in rows {
        let bias = before.map_or(0.0, |before| f64::from(before[output]));
        let linear = mean(wanted) - mean(residual) - bias;
        // With a bias, both sides are centred.
        let [centre, middle] = match before {
            Some(_) => [linear, mean(wanted)],
            None => [0.0; 2],
        };
        let (mut squares, mut products) = (0.0, 0.0);
        for (&residual, &wanted) in residual.iter().zip(wanted) {
            let made = f64::from(wanted) - f64::from(residual) - bias - centre;
            squares += made * made;
            products += made * (f64::from(wanted) - middle);
        }
        let gain = products / squares;
        if !(0.5..2.0).contains(&gain) {
            continue;
        }
        solution.scales[output] *= gain as f32;
        if let Some(biases) = &mut solution.bias {
            biases[output] = (middle - gain * linear) as f32;
        }
    }
}
