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

    /// The bias of an output; 0 without biases.
    pub(crate) fn bias_of(&self, output: usize) -> f32 {
        self.bias.as_ref().map_or(0.0, |bias| bias[output])
    }
}
