//! Learned rounding: the constants of a quantized model are chosen so that each layer, at its
//! quantized inputs, gives the values of the float model.
//!
//! The samples advance through both models layer by layer (`frontier`). At each layer the closed
//! form and the fine-tuning propose constants. A proposal is taken only if positions that did not
//! teach it have a smaller error. The later layers then see its outputs.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod activation;
mod block_run;
mod block_steps;
mod blocks;
mod closed_form;
mod frontier;
mod inputs;
mod judge;
mod layer_run;
mod layers;
mod learn;
mod learned_part;
mod operators;
mod options;
mod problem;
mod rows;
mod segments;
mod solution;
mod store;
mod tuning;
mod value_file;

pub use learned_part::{LayerReport, LearnedPart, TunedPart};
pub use options::{FrontierPlace, TuneAlgorithm, TuneOptions};
pub use tuning::{Judgement, TuneForecast, Tuned, Tuning, TuningSummary};
pub use value_file::{OpenValueFile, ValueFile, unnamed_file};

use octet_onnx::tensor::TensorError;
use octet_runtime::EngineError;

/// Why constants can't be learned.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum TuneError {
    #[error(
        "learned rounding advances layer by layer, which the control flow of {operator} (node `{node}`) prevents; choose \
         the rounding gptq, and no finetune"
    )]
    ControlFlow { node: String, operator: String },
    #[error("learned rounding needs samples, and none was added; give some")]
    NoSamples,
    #[error(
        "the intermediate values can't be stored in a file: {error}; free some space, or set mem_opt_level to 1"
    )]
    File { error: String },
    #[error("stopped on request")]
    Stopped,
    #[error("learned rounding failed at {0}; report it with the model's graph and the settings")]
    Broken(&'static str),
    #[error(transparent)]
    Tensor(#[from] TensorError),
    #[error(transparent)]
    Engine(EngineError),
}

impl From<EngineError> for TuneError {
    fn from(error: EngineError) -> TuneError {
        match error {
            EngineError::Stopped => TuneError::Stopped,
            other => TuneError::Engine(other),
        }
    }
}
