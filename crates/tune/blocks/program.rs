//! The program of a block for samples of one shape, and its values of a sample.

use octet_graph::Model;
use octet_graph::prepare::Types;
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::TensorProto;
use octet_training::reverse::{Mixture, ReverseProgram};

use super::ranges::LayerBlock;
use crate::TuneError;
use crate::layers::TunedLayer;
use crate::operators::{Builder, LayerLeaves, StepScale, ValueGrid, compile};

/// A value where the block begins or ends.
pub(crate) struct BlockValue {
    /// Its name in the quantized model, where it may be integers.
    pub(crate) name: String,
    value: usize,
    grid: Option<ValueGrid>,
}

/// The kinds of parameters by which the gradient of a block is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct LearnedKinds {
    pub(crate) weights: bool,
    /// Scales of activations.
    pub(crate) steps: bool,
}

/// A block for samples of one shape.
pub(crate) struct BlockProgram {
    program: ReverseProgram,
    /// The numbers of the leaves that are constant, by value.
    constants: Vec<Vec<f32>>,
    pub(crate) inputs: Vec<BlockValue>,
    pub(crate) outputs: Vec<BlockValue>,
    pub(crate) layers: Vec<LayerLeaves>,
    pub(crate) scales: Vec<StepScale>,
}

/// The parameters of a block in a step, in the order of its layers and scales.
#[derive(Clone, Default)]
pub(crate) struct BlockReals {
    /// Weights and biases of each layer.
    pub(crate) layers: Vec<[Vec<f32>; 2]>,
    pub(crate) scales: Vec<Vec<f32>>,
}

impl BlockReals {
    /// Adds other gradients.
    pub(crate) fn add(&mut self, other: &BlockReals) {
        let own = self.layers.iter_mut().flatten().chain(&mut self.scales);
        let other = other.layers.iter().flatten().chain(&other.scales);
        for (own, other) in own.zip(other) {
            own.iter_mut()
                .zip(other)
                .for_each(|(own, other)| *own += other);
        }
    }
}

/// True if a node has gradients, for inputs of these types.
pub(crate) fn is_supported(model: &Model, types: &Types, node: usize) -> bool {
    let mut builder = Builder::new(model, types, &[]);
    let of = &model.graph.nodes()[node];
    let outside = of.input.iter().filter(|name| !name.is_empty());
    for name in outside {
        let resting = crate::segments::resting(&model.graph, name);
        if !model.graph.initializers.contains(resting) && builder.known(resting).is_none() {
            // Sizes have no place among floats; their operator asks for them by name.
            let _float = builder.input(resting);
        }
    }
    compile(&mut builder, node).is_some()
}

impl BlockProgram {
    /// `None` if an operator has no gradient for these types.
    pub(crate) fn new(
        (model, types): (&Model, &Types),
        layers: &[TunedLayer],
        block: &LayerBlock,
        kinds: LearnedKinds,
    ) -> Option<BlockProgram> {
        let mut builder = Builder::new(model, types, layers);
        let mut inputs = Vec::new();
        for name in &block.inputs {
            let value = builder.input(name)?;
            inputs.push(end(&builder, name, value));
        }
        let nodes = block.nodes.clone();
        for node in nodes.filter(|&node| !crate::segments::is_repeated(&model.graph.nodes()[node]))
        {
            compile(&mut builder, node)?;
        }
        let mut outputs = Vec::new();
        for name in &block.outputs {
            let value = builder.known(name)?;
            outputs.push(end(&builder, name, value));
        }
        if outputs.is_empty() || builder.learned.is_empty() {
            return None;
        }
        let mut learned = Vec::new();
        for leaves in builder.learned.iter().filter(|_| kinds.weights) {
            learned.push(leaves.weights);
            learned.extend(leaves.bias);
        }
        if kinds.steps {
            learned.extend(builder.scales.iter().map(|scale| scale.leaf));
        }
        let values = outputs.iter().map(|output| output.value).collect();
        let (program, constants) = builder.program(values, &learned)?;
        Some(BlockProgram {
            program,
            constants,
            inputs,
            outputs,
            layers: builder.learned,
            scales: builder.scales,
        })
    }

    fn leaves<'a>(&'a self, inputs: &'a [Vec<f32>], reals: &'a BlockReals) -> Vec<&'a [f32]> {
        let mut leaves: Vec<&[f32]> = self.constants.iter().map(Vec::as_slice).collect();
        for (input, numbers) in self.inputs.iter().zip(inputs) {
            leaves[input.value] = numbers;
        }
        for (layer, [weights, bias]) in self.layers.iter().zip(&reals.layers) {
            leaves[layer.weights] = weights;
            if let Some(leaf) = layer.bias {
                leaves[leaf] = bias;
            }
        }
        for (scale, number) in self.scales.iter().zip(&reals.scales) {
            leaves[scale.leaf] = number;
        }
        leaves
    }

    /// The mean squared error of each output; its values have the number that the targets have.
    pub(crate) fn errors(
        &self,
        inputs: &[Vec<f32>],
        targets: &[Vec<f32>],
        reals: &BlockReals,
    ) -> Result<Vec<f64>, TuneError> {
        let run = self
            .program
            .forward(&self.leaves(inputs, reals), None, false);
        let outputs = self.outputs.iter().zip(targets);
        outputs
            .map(|(output, target)| {
                let made = run.value(output.value);
                fits(made, target)?;
                let squares = made
                    .iter()
                    .zip(target)
                    .map(|(a, b)| f64::from(a - b).powi(2));
                Ok(squares.sum::<f64>() / target.len().max(1) as f64)
            })
            .collect()
    }

    /// The error, Σ weight · mean squared error, and its gradients.
    pub(crate) fn gradient(
        &self,
        (inputs, targets): (&[Vec<f32>], &[Vec<f32>]),
        reals: &BlockReals,
        weights: &[f32],
        mixture: Mixture,
    ) -> Result<(f64, BlockReals), TuneError> {
        let leaves = self.leaves(inputs, reals);
        let run = self.program.forward(&leaves, Some(mixture), true);
        let (mut error, mut slopes) = (0.0, Vec::new());
        for ((output, target), &weight) in self.outputs.iter().zip(targets).zip(weights) {
            let made = run.value(output.value);
            fits(made, target)?;
            let factor = weight / target.len().max(1) as f32;
            let slope = |(made, target): (&f32, &f32)| {
                error += f64::from(factor * (made - target) * (made - target));
                2.0 * factor * (made - target)
            };
            slopes.push((output.value, made.iter().zip(target).map(slope).collect()));
        }
        let mut all = self.program.backward(&leaves, run, slopes);
        let mut take = |leaf: usize| {
            let zeros = || vec![0.0; self.program.len_of(leaf)];
            all[leaf].take().unwrap_or_else(zeros)
        };
        let gradients = BlockReals {
            layers: self
                .layers
                .iter()
                .map(|layer| {
                    [
                        take(layer.weights),
                        layer.bias.map_or_else(Vec::new, &mut take),
                    ]
                })
                .collect(),
            scales: self.scales.iter().map(|scale| take(scale.leaf)).collect(),
        };
        Ok((error, gradients))
    }
}

fn fits(made: &[f32], target: &[f32]) -> Result<(), TuneError> {
    match made.len() == target.len() {
        true => Ok(()),
        false => Err(TuneError::Broken("the values of a block's output")),
    }
}

fn end(builder: &Builder, name: &str, value: usize) -> BlockValue {
    BlockValue {
        name: name.to_string(),
        value,
        grid: builder.grid(name).cloned(),
    }
}

impl BlockValue {
    /// The reals of its tensor in the quantized model.
    pub(crate) fn reals(&self, tensor: Tensor) -> Result<Vec<f32>, TuneError> {
        reals(tensor, self.grid.as_ref())
    }
}

/// The reals of a tensor. Without a grid it holds plain numbers, such as the result of a comparison.
pub(crate) fn reals(tensor: Tensor, grid: Option<&ValueGrid>) -> Result<Vec<f32>, TuneError> {
    let (zero_point, scale) = grid.map_or((0, 1.0), |grid| (grid.zero_point, grid.scale));
    let shape = tensor.shape().to_vec();
    match tensor.into_values() {
        Values::F32(values) => Ok(values),
        Values::U8(values) => Ok(dequantized(&values, zero_point, scale)),
        Values::I8(values) => Ok(dequantized(&values, zero_point, scale)),
        Values::U16(values) => Ok(dequantized(&values, zero_point, scale)),
        Values::I16(values) => Ok(dequantized(&values, zero_point, scale)),
        values => {
            let tensor = Tensor::new(shape, values);
            let tensor = tensor.ok_or(TuneError::Broken("the shape of a block's value"))?;
            let integers = TensorProto::from_tensor("", &tensor).to_i64()?;
            let real = |integer: i64| (integer - zero_point) as f32 * scale;
            Ok(integers.into_iter().map(real).collect())
        }
    }
}

fn dequantized<T: Copy + Into<i32>>(integers: &[T], zero_point: i64, scale: f32) -> Vec<f32> {
    // It has the type of the integers, at most 16 bits.
    let zero_point = zero_point as i32;
    let real = |&integer: &T| (integer.into() - zero_point) as f32 * scale;
    integers.iter().map(real).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_a_comparison_holds_zeros_and_ones() {
        let tensor = Tensor::new(vec![3], Values::Bool(vec![true, false, true])).unwrap();
        assert_eq!(reals(tensor, None).unwrap(), [1.0, 0.0, 1.0]);
    }
}
