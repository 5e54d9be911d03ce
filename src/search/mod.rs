//! A search for the number of bits of each tensor, under a budget of accuracy, bytes or time.
//!
//! The noise that rounding a tensor adds to the outputs is nearly additive over tensors. So a search
//! measures each tensor's noise once (`measure`), knows its costs (`costs`), and chooses by a
//! knapsack (`knapsack`). The curve of all best choices is part of the result. Quantized models of
//! some of its points run on the samples that choose; the samples that were held out then tell, with
//! an interval of confidence, if the budget holds. With too few samples it can be undecidable.
//!
//! A search runs in short steps, so that its caller can show progress and stop it. The result does
//! not depend on the number of threads.

mod bisection;
mod bits;
mod budget;
mod choose;
mod costs;
mod divided;
mod found;
mod interval;
mod judge;
mod knapsack;
mod measure;
mod measurements;
mod prepare;
mod run;
mod segments;
mod sensitivities;
mod single_tensors;
mod tensors;
mod verify;

pub use bits::{Bits, UnknownBits};
pub use budget::{Amount, Budget, BudgetError, Metric};
pub use choose::{BudgetVerdict, Chosen, SearchPoint, SearchResult};
pub use costs::{NodeTimes, TimeSource};
pub use divided::{DividedSamples, ErrorRuns, PendingPass};
pub use found::FoundCurve;
pub use interval::Estimate;
pub use measurements::{Half, JudgedModel, Measurements, NoisePass};
pub use run::{BudgetSearch, SearchProgress, SearchSample};
pub use sensitivities::{Sensitivities, SensitivitiesError, Sensitivity};

use crate::graph::Model;
use crate::quantize::{QuantizeError, Quantized, ScaleGroups, Settings};
use crate::runtime::EngineError;

/// Preference of a search among choices with equal noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// A small file and a short time alike, each relative to the float model.
    #[default]
    Both,
    /// A small file.
    Size,
    /// A short time.
    Time,
}

/// The choices of a caller.
#[derive(Clone, Debug)]
pub struct SearchOptions {
    /// The budget.
    pub budget: Budget,
    /// The metric, in place of the one that follows from the budget and the outputs.
    pub metric: Option<Metric>,
    /// The bits that a weight may get.
    pub weights: Vec<Bits>,
    /// The bits that an activation may get.
    pub activations: Vec<Bits>,
    /// Number of tensors that are measured on all samples, the worst ones. The others are measured on
    /// the first.
    pub exact: usize,
    /// Number of samples on which sensitivities are measured.
    pub measured: usize,
    /// The preference among choices.
    pub prefer: Prefer,
    /// Sensitivities from a file, in place of a measurement.
    pub sensitivities: Option<Sensitivities>,
}

impl SearchOptions {
    /// The defaults for a budget.
    pub fn new(budget: Budget) -> SearchOptions {
        SearchOptions {
            budget,
            metric: None,
            weights: Bits::ALL.to_vec(),
            activations: vec![Bits::Eight, Bits::Sixteen, Bits::Float],
            exact: 30,
            measured: 4,
            prefer: Prefer::Both,
            sensitivities: None,
        }
    }
}

/// The model of a search, and its quantization by settings.
pub trait SearchedModel: Sync {
    /// The float model.
    fn model(&self) -> &Model;
    /// The name of the file.
    fn name(&self) -> &str;
    /// Bytes of the float file.
    fn float_bytes(&self) -> usize;
    /// The groups of tensors that share a scale.
    fn groups(&self, settings: &Settings) -> Result<ScaleGroups, SearchError>;
    /// Quantizes the model.
    fn quantize(&self, settings: &Settings) -> Result<Quantized, SearchError>;
    /// Bytes of the file of a quantized model.
    fn file_bytes(&self, quantized: &Quantized) -> Result<usize, SearchError>;
    /// Measured times of the nodes, if the caller asked for a profile; their conversions are left at 0.
    /// `wide` makes the model with 16-bit activations.
    fn times(
        &self,
        narrow: &Quantized,
        wide: &dyn Fn() -> Result<Quantized, SearchError>,
    ) -> Result<Option<Vec<NodeTimes>>, SearchError>;
}

/// Reasons why a search ends without a result.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SearchError {
    #[error(
        "a search needs at least 2 samples, one to choose by and one to verify with, and there are {0}: add samples"
    )]
    TooFewSamples(usize),
    #[error(
        "the budget is about answers, but no output of the model holds class scores: give a budget for the SQNR, such as \
         sqnr=30, or for bytes or time"
    )]
    NoClasses,
    #[error(
        "the metric labels needs a label for some samples: give them with --labels, or choose the metric agreement"
    )]
    NoLabels,
    #[error(
        "a search chooses among integers of the scheme static, but the settings have another scheme: leave `scheme` out"
    )]
    Scheme,
    #[error(
        "a search measures many models and learns none of them: leave `finetune` and `rounding: closed-form` out, and \
         add them to the settings that the search writes"
    )]
    Learned,
    #[error(
        "no tensor is left to choose for: the settings fix the type of every tensor; remove some"
    )]
    NothingToChoose,
    #[error("8 bits must be among the candidates of weights and of activations: add them")]
    NoEight,
    #[error(
        "the budget {budget} can't be met: the best that these candidates reach is {best}; {hint}"
    )]
    Unreachable {
        budget: Budget,
        best: String,
        hint: &'static str,
    },
    #[error(transparent)]
    Sensitivities(#[from] SensitivitiesError),
    #[error(transparent)]
    Quantize(#[from] QuantizeError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("{0}")]
    Other(String),
}

/// The halves of a number of samples: those that choose, and those that are held out. Equal seeds
/// draw equal halves.
pub fn halves(count: usize, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let key =
        |&index: &usize| interval::mixed((index as u64) ^ interval::mixed(seed.wrapping_add(1)));
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(key);
    let mut held = order.split_off(count.div_ceil(2));
    order.sort_unstable();
    held.sort_unstable();
    (order, held)
}

#[cfg(test)]
mod tests;
