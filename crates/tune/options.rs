//! The options of a run.

use octet_training::annealed_beta;

/// The algorithm of the fine-tuning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuneAlgorithm {
    /// Each weight learns which of its two nearest integers it takes.
    AdaRound,
    /// Weights and scales are learned, with rounding as the identity in the gradient.
    AdaQuant,
}

/// The place of values between two layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontierPlace {
    /// In memory, floats as floats.
    Floats,
    /// In memory, floats as halves.
    Halves,
    /// In a file, floats as halves.
    File,
}

/// The options of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneOptions {
    /// Solve each layer in closed form first.
    pub closed_form: bool,
    /// Learn afterwards.
    pub learn: bool,
    /// The algorithm.
    pub algorithm: TuneAlgorithm,
    /// Steps of each layer.
    pub iterations: usize,
    /// The rate of the optimizer.
    pub learning_rate: f32,
    /// Positions of a step.
    pub positions: usize,
    /// Weight of AdaRound's regulariser.
    pub reg_param: f32,
    /// First and last exponent of the regulariser.
    pub beta_range: [f32; 2],
    /// Share of the steps without regulariser.
    pub warm_start: f32,
    /// Biases are learned too.
    pub update_bias: bool,
    /// The loss includes the rounding of the output.
    pub output_qdq: bool,
    /// The seed of the positions.
    pub seed: u64,
    /// Operators whose weights are learned.
    pub operators: Vec<String>,
    /// The place of values between two layers.
    pub resting: FrontierPlace,
    /// Values of the inputs and outputs of one layer, at most.
    pub layer_values: usize,
    /// Layers learn in blocks, where all operators of a block have gradients.
    pub blocks: bool,
    /// Samples of a step of a block.
    pub samples: usize,
    /// The share of a block's values that are rounded in a step.
    pub drop_ratio: f32,
    /// Scales of activations learn too, in blocks.
    pub activation_scales: bool,
    /// Steps in which scales and biases of the whole model learn from the float outputs.
    pub distillation: usize,
    /// Only the layer with the most memory is learned, to measure it.
    pub only_largest: bool,
}

impl TuneOptions {
    /// The weight and the exponent of AdaRound's regularizer in an iteration. The weight is 0 during
    /// the warm start.
    pub(crate) fn pull(&self, iteration: usize, iterations: usize) -> [f32; 2] {
        match annealed_beta(iteration, iterations, self.warm_start, self.beta_range) {
            Some(beta) => [self.reg_param, beta],
            None => [0.0, 2.0],
        }
    }
}
