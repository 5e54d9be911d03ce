//! Rounding in closed form, for inputs that are quantized themselves.
//!
//! With the quantized inputs x̂ and the float outputs y, the mean squared error of an output is
//! const + (ŵ − w*)ᵀ·M·(ŵ − w*), where M = E[x̂·x̂ᵀ] and w* solves the least squares problem of y by
//! x̂. So GPTQ rounds w* in place of w. The inputs are taken in blocks; the residual of all outputs
//! is kept at the positions, so that a block corrects the errors of those before it.

use std::ops::Range;

use octet_kernels::{FloatRows, dot, multiply_transposed, take_off};
use octet_quantize::GramFactor;
use rayon::prelude::*;

use crate::TuneError;
use crate::problem::{Problem, Rows, product};
use crate::solution::Solution;

/// Inputs of a block, at most.
const BLOCK: usize = 512;
/// Positions whose products are summed in f32 before they are added in f64.
const PORTION: usize = 1024;
/// Damping of the diagonal, as GPTQ's: a fraction of its mean, and more with few positions.
const DAMPING: f64 = 0.01;
const FEW_POSITIONS: f64 = 0.2;
/// Factors of a scale that are tried.
const FACTORS: [f32; 10] = [1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55];

/// What the closed form may change besides the integers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freedom {
    /// The share of the way from the float weights to the least squares solution.
    pub(crate) shift: f64,
    /// The scales are searched.
    pub(crate) scales: bool,
    /// Each output's gain and bias are fitted afterwards.
    pub(crate) refit: bool,
}

/// Means and mean products of a block of inputs.
struct Moments {
    block: Range<usize>,
    means: Vec<f64>,
    /// The lower triangle, row by row.
    products: Vec<f64>,
}

/// Sums of products of two sets of rows, by a fixed order: f32 in portions, f64 over them.
fn mean_products(a: FloatRows, b: FloatRows) -> Result<Vec<f64>, TuneError> {
    let mut sums = vec![0.0; a.rows * b.rows];
    let mut portion = vec![0.0; sums.len()];
    for first in (0..a.columns).step_by(PORTION) {
        let count = PORTION.min(a.columns - first);
        let pair = a.of_columns(first, count).zip(b.of_columns(first, count));
        if !pair.is_some_and(|(a, b)| multiply_transposed(a, b, &mut portion)) {
            return Err(TuneError::Broken("a product"));
        }
        for (sum, &more) in sums.iter_mut().zip(&portion) {
            *sum += f64::from(more);
        }
    }
    let count = a.columns.max(1) as f64;
    sums.iter_mut().for_each(|sum| *sum /= count);
    Ok(sums)
}

fn means(rows: FloatRows) -> Vec<f64> {
    let mean = |row| octet_kernels::sum(rows.row(row)) / rows.columns.max(1) as f64;
    (0..rows.rows).map(mean).collect()
}

impl Moments {
    fn new(inputs: FloatRows, block: Range<usize>) -> Result<Moments, TuneError> {
        let rows = inputs.of_rows(block.start, block.len());
        let rows = rows.ok_or(TuneError::Broken("a block of inputs"))?;
        // Sixteen rows at once, in parallel.
        let starts: Vec<usize> = (0..block.len()).step_by(16).collect();
        let stripe = |&first: &usize| {
            let own = rows.of_rows(first, 16.min(block.len() - first));
            let before = rows.of_rows(0, (first + 16).min(block.len()));
            let (own, before) = own
                .zip(before)
                .ok_or(TuneError::Broken("a block of inputs"))?;
            let products = mean_products(own, before)?;
            let triangle = (0..own.rows)
                .flat_map(|row| products[row * before.rows..][..first + row + 1].to_vec());
            Ok::<_, TuneError>(triangle.collect::<Vec<f64>>())
        };
        let stripes = starts
            .par_iter()
            .map(stripe)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Moments {
            means: means(rows),
            products: stripes.concat(),
            block,
        })
    }

    fn product(&self, a: usize, b: usize, centred: bool) -> f64 {
        let (a, b) = (a.max(b), a.min(b));
        let common = if centred {
            self.means[a] * self.means[b]
        } else {
            0.0
        };
        self.products[a * (a + 1) / 2 + b] - common
    }

    /// The lower Cholesky factor of the damped matrix, a full row for each input.
    fn cholesky(&self, centred: bool, positions: usize) -> Option<Vec<f64>> {
        let size = self.block.len();
        let trace: f64 = (0..size)
            .map(|k| self.product(k, k, centred).max(0.0))
            .sum();
        let fraction = DAMPING + FEW_POSITIONS * size as f64 / positions.max(1) as f64;
        let damping = fraction * trace / size as f64;
        if !(damping.is_finite() && damping > 0.0) {
            return None;
        }
        let mut rows = vec![0.0; size * size];
        for a in 0..size {
            let (before, own) = rows.split_at_mut(a * size);
            let own = &mut own[..size];
            for b in 0..a {
                let other = &before[b * size..][..size];
                own[b] = (self.product(a, b, centred) - dot(&own[..b], &other[..b])) / other[b];
            }
            let left = self.product(a, a, centred).max(0.0) + damping - dot(&own[..a], &own[..a]);
            own[a] = left.max(damping * 1e-6).sqrt();
        }
        rows.iter().all(|value| value.is_finite()).then_some(rows)
    }
}

/// Solves L·Lᵀ·x = b in place.
fn solve(factor: &[f64], b: &mut [f64]) {
    let size = b.len();
    for a in 0..size {
        let row = &factor[a * size..][..size];
        b[a] = (b[a] - dot(&row[..a], &b[..a])) / row[a];
    }
    for a in (0..size).rev() {
        let row = &factor[a * size..][..size];
        b[a] /= row[a];
        let (before, own) = b.split_at_mut(a);
        take_off(before, own[0], &row[..a]);
    }
}

/// The closed form of a layer, from another solution's scales.
pub(crate) fn solve_layer(
    problem: &Problem,
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
    problem: &'a Problem,
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
        let moments = blocks
            .map(|block| Moments::new(x, block))
            .collect::<Result<Vec<_>, _>>()?;
        let factors: Vec<Option<GramFactor>> = moments
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
                    let of_block = |(one, factor): (&Moments, &Option<GramFactor>)| {
                        let factor = factor.as_ref()?;
                        let round = |_: usize, wanted| self.round(first + output, scale, wanted);
                        let mut integers = vec![0; one.block.len()];
                        Some(factor.improve(&weights[one.block.clone()], &mut integers, round)[1])
                    };
                    moments.iter().zip(&factors).filter_map(of_block).sum()
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
        for (one, factor) in moments.iter().zip(&factors) {
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
    rows: &Rows,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activation::Activation;

    fn values(count: usize, seed: usize) -> Vec<f32> {
        let value = |i: usize| (((i + 1) * 7919 * (seed + 3)) % 2003) as f32 / 1000.0 - 1.0;
        (0..count).map(value).collect()
    }

    /// A layer whose inputs are rounded coarsely and go together.
    fn problem(groups: usize, inputs: usize, outputs: usize, bias: bool) -> Problem {
        let rows = |count: usize, seed: usize| {
            let (common, own) = (
                values(count, seed),
                values(groups * inputs * count, seed + 1),
            );
            let float = |at: usize| common[at % count] + 0.4 * own[at] + 0.3;
            let floats: Vec<f32> = (0..own.len()).map(float).collect();
            let rounded = floats
                .iter()
                .map(|value| (value * 4.0).round() / 4.0)
                .collect();
            let weights = values(groups * outputs * inputs, 9);
            let mut wanted = vec![0.0; groups * outputs * count];
            for group in 0..groups {
                let x = &floats[group * inputs * count..][..inputs * count];
                let weights = &weights[group * outputs * inputs..][..outputs * inputs];
                let out = &mut wanted[group * outputs * count..][..outputs * count];
                product(weights, x, (outputs, inputs, count), out).unwrap();
            }
            Rows {
                count,
                inputs: rounded,
                wanted,
            }
        };
        Problem {
            groups,
            inputs,
            outputs,
            taught: rows(1200, 1),
            judged: rows(400, 5),
            weights: values(groups * outputs * inputs, 9),
            bias: bias.then(|| vec![0.0; groups * outputs]),
            activation: Activation::Identity,
            output: None,
        }
    }

    fn nearest(problem: &Problem, scale: f32) -> Solution {
        let integer = |weight: &f32| ((weight / scale).round_ties_even() as i32).clamp(-8, 7);
        Solution {
            integers: problem.weights.iter().map(integer).collect(),
            scales: vec![scale; problem.groups * problem.outputs],
            bias: problem.bias.clone(),
        }
    }

    fn total(problem: &Problem, solution: &Solution) -> f64 {
        problem
            .losses(&problem.judged, solution)
            .unwrap()
            .iter()
            .sum()
    }

    #[test]
    fn each_freedom_lowers_the_error_on_other_positions() {
        for (groups, inputs, outputs, bias) in
            [(1, 24, 20, true), (1, 600, 5, false), (6, 9, 1, true)]
        {
            let problem = problem(groups, inputs, outputs, bias);
            let start = nearest(&problem, 0.15);
            let solved = |shift, scales, refit| {
                let freedom = Freedom {
                    shift,
                    scales,
                    refit,
                };
                solve_layer(&problem, &start, [-8, 7], &[0], freedom, true).unwrap()
            };
            let before = total(&problem, &start);
            let symmetric = total(&problem, &solved(0.0, false, false));
            let asymmetric = total(&problem, &solved(1.0, false, false));
            assert!(symmetric < before, "{inputs}: {symmetric} {before}");
            if inputs == 24 {
                assert!(asymmetric < symmetric, "{inputs}: {asymmetric} {symmetric}");
            }
            let all = total(&problem, &solved(1.0, true, true));
            assert!(all < before, "{inputs}: {all} {before}");
        }
    }

    #[test]
    fn all_numbers_of_threads_give_the_same_solution() {
        let problem = problem(2, 40, 33, true);
        let start = nearest(&problem, 0.15);
        let freedom = Freedom {
            shift: 1.0,
            scales: true,
            refit: true,
        };
        let solved = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| solve_layer(&problem, &start, [-8, 7], &[0], freedom, true).unwrap())
        };
        let one = solved(1);
        assert_eq!(one, solved(2));
        assert_eq!(one, solved(5));
    }

    #[test]
    fn systems_are_solved() {
        // The lower factor of [[4, 2], [2, 5]].
        let factor = [2.0, 0.0, 1.0, 2.0];
        let mut b = [8.0, 14.0];
        solve(&factor, &mut b);
        assert!((4.0 * b[0] + 2.0 * b[1] - 8.0).abs() < 1e-12);
        assert!((2.0 * b[0] + 5.0 * b[1] - 14.0).abs() < 1e-12);
    }

    #[test]
    fn the_refit_finds_gain_and_bias() {
        let made = values(300, 2);
        let wanted: Vec<f32> = made.iter().map(|value| 1.25 * value + 0.5).collect();
        let residual: Vec<f32> = wanted
            .iter()
            .zip(&made)
            .map(|(wanted, made)| wanted - made)
            .collect();
        let mut solution = Solution {
            integers: vec![],
            scales: vec![2.0],
            bias: Some(vec![0.0]),
        };
        refit(&mut solution, &residual, &wanted, Some(&[0.0]));
        assert!((solution.scales[0] - 2.5).abs() < 1e-4);
        assert!((solution.bias_of(0) - 0.5).abs() < 1e-4);
    }
}
