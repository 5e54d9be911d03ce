//! The data of one layer: its quantized inputs at some positions, and the float values that its
//! outputs should have there.

use std::ops::Range;

use octet_kernels::{FloatRows, multiply};
use octet_training::QuantizationGrid;
use rayon::prelude::*;

use crate::TuneError;
use crate::activation::{LayerFunction, OutputStage};
use crate::frontier::Frontier;
use crate::inputs::{LayerInputs, take};
use crate::layers::TunedLayer;
use crate::rows::{Positions, chosen};
use crate::solution::Solution;
use crate::store::{LoadedValue, Store};

/// Outputs that are computed together.
pub(crate) const TOGETHER: usize = 16;
/// Of this many samples, one judges and doesn't teach.
const JUDGED: usize = 4;
/// Positions of a layer, at most.
const MOST_POSITIONS: usize = 16384;

/// Inputs and wanted outputs at some positions.
pub(crate) struct PositionRows {
    pub(crate) count: usize,
    /// The quantized inputs: group by group, a row for each input, a column for each position.
    pub(crate) inputs: LayerInputs,
    /// The float outputs before the activation, a row for each output.
    pub(crate) wanted: Vec<f32>,
}

/// The data of a layer.
pub(crate) struct LayerProblem {
    pub(crate) groups: usize,
    /// Inputs of an output, and outputs of a group.
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// Positions that teach, and those that judge.
    pub(crate) taught: PositionRows,
    pub(crate) judged: PositionRows,
    /// Float weights, a row for each output, and biases.
    pub(crate) weights: Vec<f32>,
    pub(crate) bias: Option<Vec<f32>>,
    pub(crate) activation: LayerFunction,
    /// The grid of the output, if the loss includes its rounding.
    pub(crate) output: Option<QuantizationGrid>,
}

/// The positions of a layer whose data has at most so many values.
pub(crate) fn positions_within(
    groups: usize,
    inputs: usize,
    outputs: usize,
    values: usize,
) -> usize {
    let each = groups * (inputs + outputs);
    (values / each.max(1)).clamp(256, MOST_POSITIONS)
}

/// A part of the outputs of a group.
pub(crate) struct OutputPart {
    pub(crate) group: usize,
    /// Outputs of the layer.
    pub(crate) outputs: Range<usize>,
}

impl LayerProblem {
    /// Gathers the data of a layer. `wanted` is the number of positions.
    pub(crate) fn gather(
        layer: &TunedLayer,
        [weights, bias]: [Vec<f32>; 2],
        (float, quantized): (&Frontier, &Frontier),
        store: &Store,
        wanted: usize,
        seed: u64,
    ) -> Result<LayerProblem, TuneError> {
        let (groups, inputs) = (layer.rows.view().groups(), layer.rows.inputs());
        let outputs = layer.rows.outputs() / groups;
        let samples = quantized.samples();
        let each = wanted.div_ceil(samples.max(1)).max(1);
        let positions = |shape: &[usize]| {
            let positions = Positions::new(layer.rows.view(), inputs, shape);
            positions.ok_or(TuneError::Broken("the shape of a layer's input"))
        };
        let counts = (0..samples)
            .map(|sample| {
                let shape = float.shape(sample, &layer.float_input)?;
                Ok(positions(shape)?.count.min(each))
            })
            .collect::<Result<Vec<usize>, TuneError>>()?;
        let element = quantized.element(0, &layer.input)?;
        let zeros = |count: usize| -> Result<PositionRows, TuneError> {
            let zero = (layer.input_scale, layer.input_zero_point);
            Ok(PositionRows {
                count,
                inputs: LayerInputs::zeros(element, zero, groups * inputs, count)?,
                wanted: vec![0.0; groups * outputs * count],
            })
        };
        let of_sample = |(sample, [original, integers]): (usize, [LoadedValue; 2])| {
            let (original, integers) = (original.tensor()?, integers.tensor()?);
            let floats = original
                .as_f32()
                .ok_or(TuneError::Broken("a float value"))?;
            if integers.shape() != original.shape() {
                return Err(TuneError::Broken("the shape of a layer's input"));
            }
            let positions = positions(original.shape())?;
            let places = chosen(positions.count, each, seed.wrapping_add(sample as u64));
            let places: Vec<_> = places.iter().map(|&at| positions.place(at)).collect();
            let mut rows = zeros(places.len())?;
            let count = rows.count;
            rows.inputs.read(&integers, &positions, &places)?;
            let mut originals = vec![0.0; inputs * count];
            for group in 0..groups {
                positions.read_group(floats, |float| float, 0.0, &places, group, &mut originals);
                let weights = &weights[group * outputs * inputs..][..outputs * inputs];
                let wanted = &mut rows.wanted[group * outputs * count..][..outputs * count];
                product(weights, &originals, (outputs, inputs, count), wanted)?;
                for (output, row) in wanted.chunks_mut(count.max(1)).enumerate() {
                    let more = bias.get(group * outputs + output).copied().unwrap_or(0.0);
                    row.iter_mut().for_each(|value| *value += more);
                }
            }
            Ok::<_, TuneError>(rows)
        };
        let load = |&sample: &usize| -> Result<(usize, [LoadedValue; 2]), TuneError> {
            let original = float.load(sample, &layer.float_input, store)?;
            Ok((
                sample,
                [original, quantized.load(sample, &layer.input, store)?],
            ))
        };
        // With few samples, positions of all of them judge.
        let judges = |sample: usize, position: usize| match samples >= JUDGED {
            true => sample % JUDGED == JUDGED - 1,
            false => position % JUDGED == JUDGED - 1,
        };
        // For each sample, if a position judges, and its column. Neighbouring columns are of
        // different samples.
        let mut columns: Vec<Vec<(bool, usize)>> = vec![Vec::new(); samples];
        let mut lengths = [0; 2];
        for position in 0..counts.iter().copied().max().unwrap_or(0) {
            for sample in (0..samples).filter(|&sample| position < counts[sample]) {
                let judges = judges(sample, position);
                let length = &mut lengths[usize::from(judges)];
                columns[sample].push((judges, *length));
                *length += 1;
            }
        }
        if lengths.contains(&0) {
            return Err(TuneError::Broken("the positions of a layer"));
        }
        let [mut taught, mut judged] = [zeros(lengths[0])?, zeros(lengths[1])?];
        // A sample of each thread at a time, so that the data is not held twice.
        let order: Vec<usize> = (0..samples).collect();
        for together in order.chunks(rayon::current_num_threads().max(1)) {
            let loaded = together.iter().map(load).collect::<Result<Vec<_>, _>>()?;
            let parts = loaded.into_par_iter().map(of_sample);
            let parts = parts.collect::<Result<Vec<PositionRows>, _>>()?;
            for (&sample, rows) in together.iter().zip(&parts) {
                taught.take(rows, &columns[sample], false)?;
                judged.take(rows, &columns[sample], true)?;
            }
        }
        Ok(LayerProblem {
            groups,
            inputs,
            outputs,
            taught,
            judged,
            weights,
            bias: layer.bias.as_ref().map(|_| bias),
            activation: layer.activation,
            output: None,
        })
    }

    /// The outputs in parts that lie in one group.
    pub(crate) fn parts(&self) -> Vec<OutputPart> {
        let of_group = |group: usize| {
            (0..self.outputs).step_by(TOGETHER).map(move |first| {
                let begin = group * self.outputs;
                let end = (first + TOGETHER).min(self.outputs);
                OutputPart {
                    group,
                    outputs: begin + first..begin + end,
                }
            })
        };
        (0..self.groups).flat_map(of_group).collect()
    }

    /// The inputs of a group, in order.
    pub(crate) fn inputs_of(&self, group: usize) -> Range<usize> {
        group * self.inputs..(group + 1) * self.inputs
    }

    /// The mean squared error of each output, behind the activation.
    pub(crate) fn losses(
        &self,
        rows: &PositionRows,
        solution: &Solution,
    ) -> Result<Vec<f64>, TuneError> {
        let of_part = |part: &OutputPart| -> Result<Vec<f64>, TuneError> {
            let reals = solution.reals(part.outputs.clone(), self.inputs);
            let weights = FloatRows::new(&reals, part.outputs.len(), self.inputs);
            let weights = weights.ok_or(TuneError::Broken("the weights of a part"))?;
            let mut stage = OutputStage::new(self.activation, self.output);
            let mut losses = vec![0.0; part.outputs.len()];
            let (mut floats, mut values) = (Vec::new(), Vec::new());
            for columns in rows.inputs.parts(self.inputs) {
                let own = self.inputs_of(part.group);
                let x = rows.inputs.floats(own, columns.clone(), &mut floats)?;
                values.resize(part.outputs.len() * columns.len(), 0.0);
                if !multiply(weights, x, &mut values) {
                    return Err(TuneError::Broken("a product"));
                }
                let outputs = part.outputs.clone().zip(values.chunks_mut(columns.len()));
                for ((output, values), loss) in outputs.zip(&mut losses) {
                    let bias = solution.bias_of(output);
                    values.iter_mut().for_each(|value| *value += bias);
                    stage.forward(values);
                    let wanted = &rows.wanted[output * rows.count..][columns.clone()];
                    self.activation.take_off(wanted, values);
                    for &error in &*values {
                        *loss += f64::from(error) * f64::from(error);
                    }
                }
            }
            losses
                .iter_mut()
                .for_each(|loss| *loss /= rows.count as f64);
            Ok(losses)
        };
        let parts = self.parts();
        let all = parts
            .par_iter()
            .map(of_part)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(all.concat())
    }
}

impl PositionRows {
    /// Takes the positions of a sample whose column says that they judge or teach.
    fn take(
        &mut self,
        of_sample: &PositionRows,
        columns: &[(bool, usize)],
        judge: bool,
    ) -> Result<(), TuneError> {
        let column_of = |at: usize| {
            let &(judges, column) = columns.get(at)?;
            (judges == judge).then_some(column)
        };
        self.inputs.take(&of_sample.inputs, column_of)?;
        let counts = [self.count, of_sample.count];
        take(&mut self.wanted, &of_sample.wanted, counts, column_of);
        Ok(())
    }
}

/// Writes the product of weights and inputs.
pub(crate) fn product(
    weights: &[f32],
    inputs: &[f32],
    (outputs, inner, count): (usize, usize, usize),
    out: &mut [f32],
) -> Result<(), TuneError> {
    let sizes = TuneError::Broken("a product");
    let pair = FloatRows::new(weights, outputs, inner).zip(FloatRows::new(inputs, inner, count));
    match pair.is_some_and(|(weights, inputs)| multiply(weights, inputs, out)) {
        true => Ok(()),
        false => Err(sizes),
    }
}
