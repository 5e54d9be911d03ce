//! Constants of a layer: what the solvers return.

use std::ops::Range;

/// Integers, scales and biases of a layer, by output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Solution {
    /// Integers less the zero point, a row for each output.
    pub(crate) integers: Vec<i32>,
    /// The scale of each output. All are equal where the weight has one scale.
    pub(crate) scales: Vec<f32>,
    pub(crate) bias: Option<Vec<f32>>,
}

impl Solution {
    /// The reals of the weights of some outputs.
    pub(crate) fn reals(&self, outputs: Range<usize>, inputs: usize) -> Vec<f32> {
        let rows =
            self.integers[outputs.start * inputs..outputs.end * inputs].chunks(inputs.max(1));
        let scaled = rows.zip(&self.scales[outputs]);
        scaled
            .flat_map(|(row, &scale)| row.iter().map(move |&integer| integer as f32 * scale))
            .collect()
    }

    /// The solution of all outputs, from those of its parts in order.
    pub(crate) fn concat(parts: Vec<Solution>) -> Solution {
        let biases = parts.iter().map(|part| part.bias.clone());
        let biases: Option<Vec<Vec<f32>>> = biases.collect();
        let integers: Vec<&[i32]> = parts.iter().map(|part| &part.integers[..]).collect();
        let scales: Vec<&[f32]> = parts.iter().map(|part| &part.scales[..]).collect();
        Solution {
            integers: integers.concat(),
            scales: scales.concat(),
            bias: biases.map(|biases| biases.concat()),
        }
    }

    /// The bias of an output; 0 without biases.
    pub(crate) fn bias_of(&self, output: usize) -> f32 {
        self.bias.as_ref().map_or(0.0, |bias| bias[output])
    }
}
