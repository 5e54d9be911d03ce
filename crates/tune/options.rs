//! The options of a run.

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
    /// Bytes of the inputs and outputs of one layer, at most.
    pub layer_bytes: usize,
    /// Only the layer with the most memory is learned, to measure it.
    pub only_largest: bool,
}
