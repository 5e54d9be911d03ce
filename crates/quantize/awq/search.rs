//! The search for the scales of a group.

use rayon::prelude::*;

use super::groups::{ScaledGroup, ScaledProduct};
use crate::QuantizeError;
use crate::blocks::BlockSettings;
use crate::gptq::{WeightRows, input_gram};
use octet_graph::{Model, Node};
use octet_kernels::block_weights::{block_grid, block_integers};
use octet_kernels::dot_of_floats;
use octet_stats::{CalibrationStatistics, InputGram};

/// Exponents of a channel's magnitude, in parts of this number.
const STEPS: u32 = 20;
/// Columns of a weight that are measured at most.
const COLUMNS: usize = 128;

/// The result of a search.
pub(super) struct Outcome {
    /// The scales; `None` if none are better.
    pub(super) scales: Option<Vec<f32>>,
    /// Mean square error of the outputs without scales.
    pub(super) before: f64,
    /// Mean square error of the outputs with the scales.
    pub(super) after: f64,
}

/// The inputs of a weight, as far as they are measured.
struct MeasuredWeight {
    /// Columns one after the other, a number for each input.
    columns: Vec<Vec<f32>>,
    settings: BlockSettings,
    /// The columns that one measured column stands for.
    stands_for: f64,
}

/// Finds the scales of a group. `None` without samples of its value, or with numbers that are not
/// finite.
pub(super) fn best(
    model: &Model,
    group: &ScaledGroup,
    of: &dyn Fn(&Node) -> BlockSettings,
    seen: &CalibrationStatistics,
) -> Result<Option<Outcome>, QuantizeError> {
    let mut weights = Vec::new();
    let mut gram = None;
    for product in &group.products {
        let node = &model.graph.nodes()[product.node];
        let Some(tensor) = model.graph.initializers.get(&product.weight) else {
            return Ok(None);
        };
        let shape = tensor.shape()?;
        gram = gram.or_else(|| input_gram(seen, node, &WeightRows::from_node(node, &shape)?));
        let values = tensor.to_f32()?;
        if values.iter().any(|value| !value.is_finite()) {
            return Ok(None);
        }
        weights.push(measured(product, &values, &shape, of(node)));
    }
    let Some(gram) = gram else {
        return Ok(None);
    };
    let inputs = InputMoments::new(gram);
    if inputs.magnitudes.len() != group.channels {
        return Ok(None);
    }
    let before = error(&weights, &inputs, None);
    let mut outcome = Outcome {
        scales: None,
        before,
        after: before,
    };
    for step in 1..=STEPS {
        let Some(scales) = scales(&inputs.magnitudes, step as f32 / STEPS as f32) else {
            break;
        };
        let found = error(&weights, &inputs, Some(&scales));
        if found < outcome.after {
            outcome.after = found;
            outcome.scales = Some(scales);
        }
    }
    Ok(Some(outcome))
}

/// The columns of a weight that are measured, at even distances.
fn measured(
    product: &ScaledProduct,
    values: &[f32],
    shape: &[usize],
    settings: BlockSettings,
) -> MeasuredWeight {
    let (inputs, outputs) = match product.transposed {
        true => (shape[1], shape[0]),
        false => (shape[0], shape[1]),
    };
    let step = outputs.div_ceil(COLUMNS).max(1);
    let column = |column: usize| -> Vec<f32> {
        match product.transposed {
            true => values[column * inputs..][..inputs].to_vec(),
            false => values
                .iter()
                .skip(column)
                .step_by(outputs)
                .copied()
                .collect(),
        }
    };
    let columns: Vec<Vec<f32>> = (0..outputs).step_by(step).map(column).collect();
    MeasuredWeight {
        stands_for: outputs as f64 / columns.len().max(1) as f64,
        columns,
        settings,
    }
}

/// Second moments of a value on the samples.
struct InputMoments {
    /// Root mean square of each channel.
    magnitudes: Vec<f32>,
    /// First input and the lower triangle of mean products of each block of inputs.
    blocks: Vec<(usize, usize, Vec<f32>)>,
}

impl InputMoments {
    fn new(gram: &InputGram) -> InputMoments {
        let mut moments = InputMoments {
            magnitudes: Vec::new(),
            blocks: Vec::new(),
        };
        for (index, block) in gram.blocks().into_iter().enumerate() {
            let products = gram.products(0, index);
            let diagonal = (0..block.len()).map(|row| products[row * (row + 3) / 2].sqrt() as f32);
            moments.magnitudes.extend(diagonal);
            let products = products.into_iter().map(|product| product as f32);
            moments
                .blocks
                .push((block.start, block.len(), products.collect()));
        }
        moments
    }

    /// Mean square of an output's error, from the errors of its weights.
    fn mean_square(&self, errors: &[f32]) -> f64 {
        let mut all = 0.0;
        for (start, length, products) in &self.blocks {
            let own = &errors[*start..][..*length];
            let mut first = 0;
            for row in 0..*length {
                let cross = dot_of_floats(&products[first..][..row], &own[..row]);
                let square = self.magnitudes[start + row] * own[row];
                all += f64::from(2.0 * cross * own[row]) + f64::from(square) * f64::from(square);
                first += row + 1;
            }
        }
        all.max(0.0)
    }
}

/// Powers of the magnitudes, around 1. `None` if no channel is ever other than zero.
fn scales(magnitudes: &[f32], exponent: f32) -> Option<Vec<f32>> {
    let positive = magnitudes.iter().copied().filter(|&size| size > 0.0);
    let powers = positive.map(|size| size.powf(exponent).max(1e-4));
    let (least, greatest) = powers.fold((f32::INFINITY, 0.0f32), |(least, greatest), power| {
        (least.min(power), greatest.max(power))
    });
    let middle = (least * greatest).sqrt();
    if !middle.is_finite() || middle <= 0.0 {
        return None;
    }
    let scale = |&size: &f32| match size > 0.0 {
        true => size.powf(exponent).max(1e-4) / middle,
        false => 1.0,
    };
    Some(magnitudes.iter().map(scale).collect())
}

/// Sum over all outputs of the mean square of their errors.
fn error(weights: &[MeasuredWeight], inputs: &InputMoments, scales: Option<&[f32]>) -> f64 {
    let of_weight = |weight: &MeasuredWeight| {
        let (levels, method) = (weight.settings.levels(), weight.settings.grid_method());
        let of_column = |column: &Vec<f32>| {
            let mut errors = column.clone();
            if let Some(scales) = scales {
                errors.iter_mut().zip(scales).for_each(|(w, s)| *w *= s);
            }
            let mut integers = vec![0; weight.settings.size];
            for block in errors.chunks_mut(weight.settings.size) {
                let grid = block_grid(block, levels, method, |scale| scale);
                let integers = &mut integers[..block.len()];
                block_integers(block, grid, levels, method, integers);
                for (value, &integer) in block.iter_mut().zip(&*integers) {
                    *value -= grid.real(integer);
                }
            }
            if let Some(scales) = scales {
                errors.iter_mut().zip(scales).for_each(|(e, s)| *e /= s);
            }
            inputs.mean_square(&errors)
        };
        // In order, so that the sum does not depend on threads.
        let each: Vec<f64> = weight.columns.par_iter().map(of_column).collect();
        each.iter().sum::<f64>() * weight.stands_for
    };
    weights.iter().map(of_weight).sum()
}
