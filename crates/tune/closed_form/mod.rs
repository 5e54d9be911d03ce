//! Rounding in closed form, for inputs that are quantized themselves.
//!
//! With the quantized inputs x̂ and the float outputs y, the mean squared error of an output is
//! const + (ŵ − w*)ᵀ·M·(ŵ − w*), where M = E[x̂·x̂ᵀ] and w* solves the least squares problem of y by
//! x̂. So GPTQ rounds w* in place of w. The inputs are taken in blocks; the residual of all outputs
//! is kept at the positions, so that a block corrects the errors of those before it.

mod grams;
#[cfg(test)]
mod tests;

use octet_kernels::{FloatRows, take_off};
use octet_quantize::GramFactor;
use rayon::prelude::*;

use grams::{BlockGram, mean_products, means, solve};

use crate::TuneError;
use crate::problem::{LayerProblem, PositionRows, product};
use crate::solution::Solution;

/// Inputs of a block, at most.
const BLOCK: usize = 512;
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

/// The closed form of a layer, from another solution's scales.
pub(crate) fn solve_layer(
    problem: &LayerProblem,
    from: &Solution,
    ends: [i32; 2],
    zero_points: &[i32],
    freedom: Freedom,
    per_output: bool,
) -> Result<Solution, TuneError> {
    let solver = Solver {
        problem,
        ends,
        zero_points,
        freedom,
        per_output,
    };
    let of_group = |group: usize| solver.group(group, from);
    let groups = (0..problem.groups).into_par_iter().map(of_group);
    let groups = groups.collect::<Result<Vec<Solution>, TuneError>>()?;
    let biases: Option<Vec<Vec<f32>>> = groups.iter().map(|one| one.bias.clone()).collect();
    Ok(Solution {
        integers: groups
            .iter()
            .flat_map(|one| one.integers.iter().copied())
            .collect(),
        scales: groups
            .iter()
            .flat_map(|one| one.scales.iter().copied())
            .collect(),
        bias: biases.map(|biases| biases.concat()),
    })
}

struct Solver<'a> {
    problem: &'a LayerProblem,
    ends: [i32; 2],
    zero_points: &'a [i32],
    freedom: Freedom,
    per_output: bool,
}

impl Solver<'_> {
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

    fn group(&self, group: usize, from: &Solution) -> Result<Solution, TuneError> {
        let problem = self.problem;
        let (inputs, outputs) = (problem.inputs, problem.outputs);
        let rows = &problem.taught;
        let x = problem.group_inputs(rows, group)?;
        let centred = problem.bias.is_some();
        let count = inputs.div_ceil(BLOCK).max(1);
        let blocks = (0..count).map(|block| inputs * block / count..inputs * (block + 1) / count);
        let grams = blocks
            .map(|block| BlockGram::new(x, block))
            .collect::<Result<Vec<_>, _>>()?;
        let factors: Vec<Option<GramFactor>> = grams
            .par_iter()
            .map(|one| {
                GramFactor::new(
                    &one.products,
                    centred.then_some(one.means.as_slice()),
                    rows.count as u64,
                )
            })
            .collect();
        let first = group * outputs;
        let floats = &problem.weights[first * inputs..][..outputs * inputs];
        let mut scales = from.scales[first..first + outputs].to_vec();
        if self.freedom.scales && self.per_output {
            let search = |(output, scale): (usize, &mut f32)| {
                let weights = &floats[output * inputs..][..inputs];
                let error = |scale: f32| -> f64 {
                    let of_block = |(one, factor): (&BlockGram, &Option<GramFactor>)| {
                        let factor = factor.as_ref()?;
                        let round = |_: usize, wanted| self.round(first + output, scale, wanted);
                        let mut integers = vec![0; one.block.len()];
                        Some(factor.improve(&weights[one.block.clone()], &mut integers, round)[1])
                    };
                    grams.iter().zip(&factors).filter_map(of_block).sum()
                };
                let given = *scale;
                let mut least = error(given);
                for factor in &FACTORS[1..] {
                    let error = error(given * factor);
                    if error < least {
                        (least, *scale) = (error, given * factor);
                    }
                }
            };
            scales.par_iter_mut().enumerate().for_each(search);
        }
        // What the float weights leave at quantized inputs.
        let count = rows.count;
        let mut residual = rows.wanted[first * count..][..outputs * count].to_vec();
        subtract_products(&mut residual, floats, rows, x, inputs)?;
        let bias = problem
            .bias
            .as_ref()
            .map(|bias| &bias[first..first + outputs]);
        for (output, row) in residual.chunks_mut(count).enumerate() {
            let bias = bias.map_or(0.0, |bias| bias[output]);
            row.iter_mut().for_each(|value| *value -= bias);
        }
        let mut integers = vec![0; outputs * inputs];
        for (one, factor) in grams.iter().zip(&factors) {
            let block = one.block.clone();
            let own = x
                .of_rows(block.start, block.len())
                .ok_or(TuneError::Broken("a block of inputs"))?;
            let cholesky = match self.freedom.shift > 0.0 {
                true => one.cholesky(centred, count),
                false => None,
            };
            let round_output =
                |(output, residual): (usize, &mut [f32])| -> Result<Vec<i32>, TuneError> {
                    let mut weights = floats[output * inputs..][block.clone()].to_vec();
                    if let Some(cholesky) = &cholesky {
                        let row = FloatRows::new(residual, 1, count)
                            .ok_or(TuneError::Broken("a residual"))?;
                        let mut towards = mean_products(row, own)?;
                        if centred {
                            take_off(&mut towards, means(row)[0], &one.means);
                        }
                        solve(cholesky, &mut towards);
                        for (weight, more) in weights.iter_mut().zip(&towards) {
                            *weight += (self.freedom.shift * more) as f32;
                        }
                    }
                    let scale = scales[output];
                    let round = |_: usize, wanted| self.round(first + output, scale, wanted);
                    let mut integers: Vec<i32> = weights
                        .iter()
                        .map(|&weight| round(0, weight.into()).0)
                        .collect();
                    if let Some(factor) = factor {
                        factor.improve(&weights, &mut integers, round);
                    }
                    let floats = &floats[output * inputs..][block.clone()];
                    let errors: Vec<f32> = integers
                        .iter()
                        .zip(floats)
                        .map(|(&integer, float)| integer as f32 * scale - float)
                        .collect();
                    let mut added = vec![0.0; count];
                    let errors = FloatRows::new(&errors, 1, block.len())
                        .ok_or(TuneError::Broken("a row of errors"))?;
                    if !octet_kernels::multiply(errors, own, &mut added) {
                        return Err(TuneError::Broken("a product"));
                    }
                    residual
                        .iter_mut()
                        .zip(&added)
                        .for_each(|(value, more)| *value -= more);
                    Ok(integers)
                };
            let rounded = residual.par_chunks_mut(count).enumerate().map(round_output);
            let rounded = rounded.collect::<Result<Vec<_>, _>>()?;
            for (output, row) in rounded.into_iter().enumerate() {
                integers[output * inputs..][block.clone()].copy_from_slice(&row);
            }
        }
        let bias = bias.map(|bias| {
            let shifts = residual
                .chunks(count)
                .map(|row| (octet_kernels::sum(row) / count as f64) as f32);
            bias.iter()
                .zip(shifts)
                .map(|(bias, shift)| bias + shift)
                .collect()
        });
        let mut solution = Solution {
            integers,
            scales,
            bias,
        };
        if self.freedom.refit && self.per_output {
            let before = problem
                .bias
                .as_ref()
                .map(|bias| &bias[first..first + outputs]);
            refit(
                &mut solution,
                &residual,
                &rows.wanted[first * count..][..outputs * count],
                before,
            );
        }
        Ok(solution)
    }
}

/// Subtracts the products of weights and inputs from values at the positions.
fn subtract_products(
    values: &mut [f32],
    weights: &[f32],
    rows: &PositionRows,
    x: FloatRows,
    inputs: usize,
) -> Result<(), TuneError> {
    let count = rows.count;
    let part = crate::problem::TOGETHER;
    let pairs = values
        .par_chunks_mut(part * count)
        .zip(weights.par_chunks(part * inputs));
    pairs.try_for_each(|(values, weights)| {
        let mut products = vec![0.0; values.len()];
        product(
            weights,
            x.values,
            (values.len() / count, inputs, count),
            &mut products,
        )?;
        values
            .iter_mut()
            .zip(&products)
            .for_each(|(value, product)| *value -= product);
        Ok(())
    })
}

/// Multiplies each output by the factor of least squares, and shifts it. The factor goes into the
/// scale. `residual` is what `wanted` exceeds the outputs with the biases `before` by.
fn refit(solution: &mut Solution, residual: &[f32], wanted: &[f32], before: Option<&[f32]>) {
    let count = wanted.len() / solution.scales.len().max(1);
    let mean = |values: &[f32]| octet_kernels::sum(values) / count as f64;
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
