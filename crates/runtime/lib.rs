//! Runs models. This is the only crate that names tract.
//!
//! [`Engine`] runs a prepared model on samples of any shape that the model accepts. It passes every
//! watched value to the caller as soon as the value is computed, and lets tract free each
//! activation after its last use. [`infer_types`] infers types and shapes without a run and without
//! a copy of the weights.

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![allow(
    clippy::result_large_err,
    clippy::large_enum_variant,
    clippy::type_complexity
)]

mod attribution;
mod cost_estimate;
mod cut_points;
mod datum;
mod dedup_im2col;
mod engine;
mod execute;
mod float;
mod indices;
mod inference;
mod int8;
mod invariant;
mod load;
mod observe;
mod operator_inputs;
mod operators;
mod panics;
mod plan;
mod plan_step;
mod run_context;
mod share_rows;
mod steps;
mod thread_choice;
mod tract_graph;
mod typed;
mod types;
mod validate;
mod values;
mod weights;

pub use cost_estimate::CostEstimate;
pub use engine::{Engine, Probe};
pub use float::{FloatKernels, UnknownFloatKernels};
pub use invariant::EngineInvariant;
pub use octet_int8::{FusedNode, Processor};
pub use plan_step::{PlanStep, StepValue};
pub use run_context::StepClock;
pub use steps::{PlanSteps, Timing};
pub use thread_choice::NowMs;
pub use types::{infer_types, infer_types_of};
pub use validate::validate_unrun;

/// A value that a run reports to the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// The name of the value.
    pub value: String,
    /// Values with the same number of elements, reported together with it.
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
    /// Operators that the engine doesn't implement.
    #[error(
        "the engine has no operator {operators}, so the model can't be run or calibrated here; \
         export it with standard ONNX operators (from ONNX Runtime's optimizer, with level `extended` at most)"
    )]
    UnknownOperators {
        /// `Operator (node name)` of the first few.
        operators: String,
    },
    /// A constant whose element type the engine can't represent.
    #[error("constant `{name}`: {reason}; export the model with float32 weights")]
    Constant {
        /// The name of the initializer.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A node with an invalid attribute, input or shape.
    #[error(
        "{operator} (node `{node}`): {what} is {actual} and must be {expected}; correct the model, or export it again"
    )]
    Node {
        /// The operator of the node.
        operator: String,
        /// The name of the node as people see it.
        node: String,
        /// The attribute, input or shape that is invalid.
        what: String,
        /// The actual value.
        actual: String,
        /// The values that are allowed.
        expected: String,
    },
    /// Loops that ran up to the limit of iterations.
    #[error(
        "{operator} (node `{node}`): the loops of the model ran {iterations} iterations in one inference without an end; check its \
         condition and its trip count, and that the samples fit the model"
    )]
    Endless {
        /// The operator of the node.
        operator: String,
        /// The name of the node as people see it.
        node: String,
        /// The limit.
        iterations: usize,
    },
    /// Shapes or types that contradict each other, or a use of an operator that tract doesn't
    /// support.
    #[error(
        "the engine can't plan this model: {detail}; check that the model runs in ONNX Runtime, and if it \
         does, report it with the model's graph"
    )]
    Plan {
        /// tract's chain of reasons.
        detail: String,
    },
    /// A failure while a sample ran.
    #[error(
        "the model failed while running: {detail}; check the sample's shapes and values against the model's inputs"
    )]
    Run {
        /// tract's chain of reasons.
        detail: String,
    },
    /// A panic inside the engine.
    #[error(
        "the engine failed at this model: {detail}; check that the model runs in ONNX Runtime, and if it \
         does, report it with the model's graph"
    )]
    Panicked {
        /// The message of the panic.
        detail: String,
    },
    /// A defect of the engine.
    #[error(
        "the engine failed at this model: {0}; check that the model runs in ONNX Runtime, and if it \
         does, report it with the model's graph"
    )]
    Broken(#[from] EngineInvariant),
    /// The caller stopped the run.
    #[error("stopped on request")]
    Stopped,
}

/// Joins tract's chain of errors; the outermost names the node, the innermost the cause.
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
