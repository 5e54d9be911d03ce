//! Running models. The one room that names tract.
//!
//! [`Engine`] runs a prepared model on samples of any shape the model takes, hands every watched
//! value to the caller as it is made, and lets tract free each activation after its last use.
//! [`infer_types`] tells types and shapes without running anything and without copying weights.

mod analysis;
mod attribution;
mod checks;
mod control;
mod execute;
mod float;
mod indices;
mod integer;
mod light;
mod load;
mod observe;
mod operators;
mod outline;
mod panics;
mod parts;
mod pixels;
mod plan;
mod run;
mod share;
mod steps;
mod typed;
mod types;
mod values;
mod weights;

pub use checks::check_unrun;
pub use float::FloatKernels;
pub use integer::FusedNode;
pub use outline::Outline;
pub use run::{Engine, Probe, StepClock};
pub use steps::{Step, StepValue, Steps, Timing};
pub use types::{infer_types, infer_types_of};

/// A value to be seen when a sample runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Its name.
    pub value: String,
    /// Values of as many elements to be seen at the same time.
    pub beside: Vec<String>,
}

impl From<String> for Watched {
    fn from(value: String) -> Watched {
        Watched {
            value,
            beside: Vec::new(),
        }
    }
}

/// Why a model can't be run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    /// Operators nobody implements.
    #[error(
        "the engine has no operator {operators}; the model can't be run here, and so not calibrated: \
         export it with standard ONNX operators (out of ONNX Runtime's optimizer, with its level extended at most)"
    )]
    UnknownOperators {
        /// `Operator (node name)`, the first few.
        operators: String,
    },
    /// A constant of an element type the engine has no form for.
    #[error("constant `{name}`: {reason}; export the model with float32 weights")]
    Constant {
        /// The initializer.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A node that says what makes no sense.
    #[error(
        "{operator} (node `{node}`): {what} is {found} and must be {wanted}; correct the model, or export it again"
    )]
    Node {
        /// Its operator.
        operator: String,
        /// The name a person knows it by.
        node: String,
        /// An attribute, an input, or what follows from them.
        what: String,
        /// What it is.
        found: String,
        /// What it should be.
        wanted: String,
    },
    /// Loops that make turn after turn.
    #[error(
        "{operator} (node `{node}`): all loops of the model have made {turns} turns in one run, and it is not at its end; check its \
         condition and its trip count, and that the samples are what the model is made for"
    )]
    Endless {
        /// Its operator.
        operator: String,
        /// The name a person knows it by.
        node: String,
        /// So many they may make.
        turns: usize,
    },
    /// Shapes or types that contradict each other, or a form of an operator tract doesn't take.
    #[error(
        "the engine can't plan this model: {detail}; check that the model runs in ONNX Runtime, and if it \
         does, report it with the model's graph"
    )]
    Plan {
        /// tract's chain of reasons.
        detail: String,
    },
    /// A failure while a sample was running.
    #[error(
        "the model failed while running: {detail}; check the sample's shapes and values against the model's inputs"
    )]
    Run {
        /// tract's chain of reasons.
        detail: String,
    },
    /// What is wrong in a way that nobody foresaw.
    #[error(
        "the engine broke off at this model: {detail}; check that the model runs in ONNX Runtime, and if it \
         does, report it with the model's graph"
    )]
    Panicked {
        /// What was said of it.
        detail: String,
    },
    /// The person asked to stop.
    #[error("stopped on request")]
    Stopped,
}

/// tract's errors are chains; the outermost names the node, the innermost the cause.
fn chain(error: &tract_onnx::prelude::TractError) -> String {
    let mut links: Vec<String> = error.chain().map(ToString::to_string).collect();
    links.dedup();
    if links.len() > 3 {
        links.drain(1..links.len() - 2);
    }
    let mut text = links.join(": ").replace('\n', " ");
    if text.len() > 400 {
        let end = (0..=400)
            .rev()
            .find(|&i| text.is_char_boundary(i))
            .unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}
