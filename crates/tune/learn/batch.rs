//! A step's positions, and the gradient there.

use octet_kernels::{FloatRows, multiply, multiply_transposed};

use crate::TuneError;
use crate::activation::OutputStage;
use crate::problem::{LayerProblem, OutputPart};

/// Some neighbouring positions of a part of the outputs.
pub(super) struct Batch<'a> {
    pub(super) problem: &'a LayerProblem,
    pub(super) part: &'a OutputPart,
    pub(super) first: usize,
    /// The inputs at these positions.
    pub(super) inputs: FloatRows<'a>,
}

impl Batch<'_> {
    /// Writes the gradient of the weighted mean squared error: to `values` by the outputs before the
    /// activation, to `gradient` by the weights. Returns the sum of the squared errors if it is
    /// `measured`, and 0 otherwise.
    pub(super) fn gradient(
        &self,
        (reals, bias, weight_of): (&[f32], &[f32], &[f32]),
        stage: &mut OutputStage,
        values: &mut [f32],
        gradient: &mut [f32],
        measured: bool,
    ) -> Result<f64, TuneError> {
        let broken = || TuneError::Broken("a step's product");
        let Batch {
            problem,
            part,
            first,
            inputs,
        } = *self;
        let together = inputs.columns;
        let rows = &problem.taught;
        let weights =
            FloatRows::new(reals, part.outputs.len(), problem.inputs).ok_or_else(broken)?;
        if !multiply(weights, inputs, values) {
            return Err(broken());
        }
        for (row, bias) in values.chunks_mut(together).zip(bias) {
            row.iter_mut().for_each(|value| *value += bias);
        }
        stage.forward(values);
        let mut error = 0.0;
        for (output, row) in values.chunks_mut(together).enumerate() {
            let place = (part.outputs.start + output) * rows.count + first;
            let wanted = &rows.wanted[place..][..together];
            let slope = 2.0 * weight_of[output] / together as f32;
            problem.activation.take_off(wanted, row);
            if measured {
                let squares = row.iter().map(|difference| difference * difference);
                error += squares.map(f64::from).sum::<f64>();
            }
            row.iter_mut().for_each(|value| *value *= slope);
        }
        stage.backward(values);
        let slopes = FloatRows::new(values, part.outputs.len(), together).ok_or_else(broken)?;
        match multiply_transposed(slopes, inputs, gradient) {
            true => Ok(error),
            false => Err(broken()),
        }
    }
}

/// The gradient by the logarithm of a scale, as in LSQ: the rounding error inside of the range, the
/// end of the range outside.
pub(super) fn scale_gradient(
    gradient: &[f32],
    weights: &[f32],
    scale: f32,
    [low, high]: [i32; 2],
) -> f32 {
    let of = |(&gradient, &weight): (&f32, &f32)| {
        let steps = weight / scale;
        let whole = steps.round_ties_even();
        let slope = if whole < low as f32 {
            low as f32
        } else if whole > high as f32 {
            high as f32
        } else {
            whole - steps
        };
        gradient * slope
    };
    gradient.iter().zip(weights).map(of).sum::<f32>() * scale
}

/// The batch of a step.
pub(crate) fn drawn(seed: u64, iteration: usize, batches: usize) -> usize {
    let mut state = seed ^ (iteration as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((u128::from(state ^ (state >> 31)) * batches as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activation::LayerFunction;
    use crate::inputs::LayerInputs;
    use crate::problem::PositionRows;

    fn values(count: usize, seed: usize) -> Vec<f32> {
        let value = |i: usize| (((i + 1) * 7919 * (seed + 3)) % 2003) as f32 / 1000.0 - 1.0;
        (0..count).map(value).collect()
    }

    fn words(count: usize, seed: usize) -> Vec<u16> {
        let word = |i: usize| (((i + 1) * 7919 * (seed + 3)) % 2003) as u16;
        (0..count).map(word).collect()
    }

    fn problem(
        groups: usize,
        inputs: usize,
        outputs: usize,
        activation: LayerFunction,
    ) -> LayerProblem {
        let rows = |seed: usize| PositionRows {
            count: 64,
            inputs: LayerInputs::words(words(groups * inputs * 64, seed), (0.001, 1000), 64),
            wanted: values(groups * outputs * 64, seed + 1),
        };
        LayerProblem {
            groups,
            inputs,
            outputs,
            taught: rows(1),
            judged: rows(4),
            weights: values(groups * outputs * inputs, 9),
            bias: Some(values(groups * outputs, 8)),
            activation,
            output: None,
        }
    }

    #[test]
    fn gradients_of_each_kind_of_layer_match_central_differences() {
        // A product or a convolution, one with groups, and one that is depthwise.
        for (groups, inputs, outputs) in [(1, 10, 5), (2, 6, 3), (3, 9, 1)] {
            for activation in [
                LayerFunction::Identity,
                LayerFunction::Clamp(0.0, 0.8),
                LayerFunction::Leaky(0.2),
                LayerFunction::Sigmoid,
                LayerFunction::Tanh,
            ] {
                let problem = problem(groups, inputs, outputs, activation);
                let parts = problem.parts();
                let part = &parts[parts.len() - 1];
                let own = part.outputs.start * inputs..part.outputs.end * inputs;
                let bias = &problem.bias.as_ref().unwrap()[part.outputs.clone()];
                let weight_of = vec![0.5; part.outputs.len()];
                let mut floats = Vec::new();
                let own_inputs = problem.inputs_of(part.group);
                let x = &problem.taught.inputs;
                let batch = Batch {
                    problem: &problem,
                    part,
                    first: 16,
                    inputs: x.floats(own_inputs, 16..48, &mut floats).unwrap(),
                };
                let mut stage = OutputStage::new(activation, None);
                let mut at = |reals: &[f32]| {
                    let (mut values, mut gradient) =
                        (vec![0.0; part.outputs.len() * 32], vec![0.0; reals.len()]);
                    let error = batch
                        .gradient(
                            (reals, bias, &weight_of),
                            &mut stage,
                            &mut values,
                            &mut gradient,
                            true,
                        )
                        .unwrap();
                    (0.5 * error / 32.0, gradient)
                };
                let reals = problem.weights[own].to_vec();
                let (_, gradient) = at(&reals);
                for place in 0..reals.len() {
                    let step = 1e-3;
                    let mut moved = reals.clone();
                    moved[place] += step;
                    let above = at(&moved).0;
                    moved[place] -= 2.0 * step;
                    let slope = (above - at(&moved).0) / f64::from(2.0 * step);
                    let actual = f64::from(gradient[place]);
                    assert!(
                        (actual - slope).abs() < 5e-3 * (1.0 + slope.abs()),
                        "{groups} {activation:?} {place}: {actual} {slope}"
                    );
                }
            }
        }
    }

    #[test]
    fn batches_depend_on_the_seed_and_lie_inside() {
        let drawn: Vec<usize> = (0..100).map(|at| drawn(5, at, 7)).collect();
        assert!(drawn.iter().all(|&one| one < 7));
        assert!((0..7).all(|one| drawn.contains(&one)));
        assert_ne!(
            drawn,
            (0..100)
                .map(|at| super::drawn(6, at, 7))
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn the_scale_has_the_gradient_of_lsq() {
        // One weight is rounded down, one up, one clipped at the end.
        let found = scale_gradient(&[1.0, 1.0, 2.0], &[0.6, 0.9, 9.0], 0.5, [-8, 7]);
        let expected = 0.5 * ((1.0 - 1.2) + (2.0 - 1.8) + 2.0 * 7.0);
        assert!((found - expected).abs() < 1e-5, "{found}");
    }
}
