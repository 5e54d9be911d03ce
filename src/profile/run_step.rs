//! Names of the moments that a run records: its stages, the caller's scopes and notes.

use std::fmt::{Display, Formatter, Result};

use serde::{Serialize, Serializer};

use crate::quantize::Scheme;

/// A stage of a run. The report, traces and forecasts show its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStep {
    /// Reading and summarizing the file.
    ModelLoading,
    /// Preparation of the model.
    Preparation,
    /// Forecast of time and memory.
    Forecast,
    /// Calibration with samples.
    Calibration,
    /// Learning of constants.
    Tuning,
    /// Quantization by this scheme.
    Quantization(Scheme),
    /// Writing of the quantized file.
    PostProcess,
    /// Measurement of each layer.
    Profiling,
    /// Comparison of two models.
    Comparison,
}

impl Display for RunStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            RunStep::ModelLoading => "Model Loading",
            RunStep::Preparation => "Pre-process",
            RunStep::Forecast => "Forecast",
            RunStep::Calibration => "Calibration",
            RunStep::Tuning => "Fine-tuning",
            RunStep::Quantization(scheme) => scheme.step(),
            RunStep::PostProcess => "Post-process",
            RunStep::Profiling => "Profiling",
            RunStep::Comparison => "Comparison",
        })
    }
}

impl Serialize for RunStep {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A part of a run with a start and an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunScope {
    /// A stage.
    Step(RunStep),
    /// A scope that the caller named.
    Named(String),
}

impl Display for RunScope {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            RunScope::Step(step) => step.fmt(f),
            RunScope::Named(name) => f.write_str(name),
        }
    }
}

/// A moment of a run that a checkpoint records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Start of the run.
    Start,
    /// End of the run.
    End,
    /// Start of a part.
    Begins(RunScope),
    /// End of a part.
    Ends(RunScope),
    /// An event, in words.
    Note(String),
}

impl Moment {
    /// Start of a stage.
    pub fn begins(step: RunStep) -> Moment {
        Moment::Begins(RunScope::Step(step))
    }

    /// End of a stage.
    pub fn ends(step: RunStep) -> Moment {
        Moment::Ends(RunScope::Step(step))
    }
}

impl Display for Moment {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Moment::Start => f.write_str("Start"),
            Moment::End => f.write_str("End"),
            Moment::Begins(scope) => write!(f, "{scope} Start"),
            Moment::Ends(scope) => write!(f, "{scope} End"),
            Moment::Note(text) => f.write_str(text),
        }
    }
}
