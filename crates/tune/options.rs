//! What to learn, and how.

/// The algorithm of the fine-tuning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Each weight learns which of its two nearest integers it takes.
    AdaRound,
    /// Weights and scales are learned, with rounding as the identity in the gradient.
    AdaQuant,
}

/// Where the values between two layers rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resting {
    /// In memory, floats as floats.
    Floats,
    /// In memory, floats as halves.
    Halves,
    /// In a file, floats as halves.
    File,
}

/// What to learn, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneOptions {
    /// Solve each layer in closed form first.
    pub closed_form: bool,
    /// Learn afterwards.
    pub learn: bool,
    /// The algorithm.
    pub algorithm: Algorithm,
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
    /// Where values rest.
    pub resting: Resting,
    /// Bytes of the inputs and outputs of one layer, at most.
    pub layer_bytes: usize,
    /// Only the layer with the most memory is learned, to measure it.
    pub only_largest: bool,
}
