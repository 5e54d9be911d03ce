//! The session's error: a sentence to show and a kind to act on.

use crate::calibrate::run::FeedError;
use crate::compare::CompareError;
use crate::graph::GraphError;
use crate::onnx::external::ExternalError;
use crate::onnx::{ReadError, WriteError};
use crate::prepare::PrepareError;
use crate::prepare::equalize::EqualizeError;
use crate::quantize::QuantizeError;
use crate::runtime::EngineError;
use crate::samples::SampleError;
use crate::stats::SecondPassMissing;

/// Error of a session. The sentence states the problem, its place, its cause and the next step.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("{0}")]
    Read(#[from] ReadError),
    #[error("{0}")]
    Write(#[from] WriteError),
    #[error("{0}")]
    External(#[from] ExternalError),
    #[error("{0}")]
    Graph(#[from] GraphError),
    #[error("{0}")]
    Prepare(#[from] PrepareError),
    #[error("{0}")]
    Equalize(#[from] EqualizeError),
    #[error("{0}")]
    Quantize(#[from] QuantizeError),
    #[error("sample `{name}`: {source}")]
    Run { name: String, source: EngineError },
    #[error("{0}")]
    Engine(EngineError),
    #[error("{0}")]
    Compare(CompareError),
    #[error("{0}")]
    Sample(#[from] SampleError),
    #[error("{0}")]
    SecondPass(#[from] SecondPassMissing),
    #[error("{0}")]
    OtherSamples(FeedError),
    #[error("{0}")]
    UnderWay(FeedError),
    #[error(
        "the model's weights are in external files that are missing: {}; put them beside the model, or add them",
        files.join(", ")
    )]
    FilesMissing { files: Vec<String> },
    #[error(
        "there are no samples; static quantization needs real inputs to determine the ranges: add .npy, .npz, image or test_data_set files"
    )]
    NoSamples,
    #[error("calibration has not begun; choose samples and settings and begin it")]
    NotCalibrating,
    #[error("there are no ranges yet; calibrate with some samples first")]
    NotCalibrated,
    #[error("there is no profile yet; profile the model first")]
    NotProfiled,
    #[error(
        "equalization needs an extra pass over the samples: begin that pass before the calibration ends"
    )]
    EqualizationPending,
    #[error(
        "the settings have {}, but the calibration used {}: calibrate again with these settings",
        equalizing(*wanted),
        equalizing(*done)
    )]
    OtherEqualization {
        wanted: Option<f32>,
        done: Option<f32>,
    },
    #[error("stopped on request; the model is kept, calibration can be started again")]
    Stopped,
}

impl Error {
    /// Machine-readable kind, by which callers choose how to react.
    pub fn kind(&self) -> &'static str {
        match self {
            Error::Read(_) | Error::Graph(_) => "model",
            Error::Write(_) => "write",
            Error::External(_) | Error::FilesMissing { .. } => "external",
            Error::Prepare(_) | Error::Equalize(_) => "prepare",
            Error::Quantize(_) => "quantize",
            Error::Run { .. } | Error::Engine(_) => "engine",
            Error::Compare(_) => "compare",
            Error::Sample(_) | Error::NoSamples | Error::OtherSamples(_) => "sample",
            Error::NotCalibrating
            | Error::UnderWay(_)
            | Error::NotCalibrated
            | Error::NotProfiled
            | Error::EqualizationPending
            | Error::OtherEqualization { .. }
            | Error::SecondPass(_) => "order",
            Error::Stopped => "stopped",
        }
    }
}

fn equalizing(strength: Option<f32>) -> String {
    strength.map_or("no `equalize`".into(), |strength| {
        format!("`equalize: {strength}`")
    })
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Error {
        match error {
            EngineError::Stopped => Error::Stopped,
            other => Error::Engine(other),
        }
    }
}

impl From<FeedError> for Error {
    fn from(error: FeedError) -> Error {
        match error {
            FeedError::Sample(error) => Error::Sample(error),
            FeedError::Run { sample, source } => Error::Run {
                name: sample,
                source,
            },
            FeedError::Stopped => Error::Stopped,
            FeedError::OtherSamples { .. } | FeedError::OtherCount { .. } => {
                Error::OtherSamples(error)
            }
            FeedError::UnderWay(_) => Error::UnderWay(error),
        }
    }
}
