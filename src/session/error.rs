//! The session's error: a sentence to show and a kind to act on.

use crate::broken_invariant::BrokenInvariant;
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
use crate::search::SearchError;
use crate::snippets::SnippetError;
use crate::stats::SecondPassMissing;
use crate::stream::StreamError;
use crate::tune::TuneError;

/// Error of a session. The sentence states the problem, its place, its cause and the next step.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    External(#[from] ExternalError),
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error(transparent)]
    Equalize(#[from] EqualizeError),
    #[error(transparent)]
    Quantize(#[from] QuantizeError),
    #[error("sample `{name}`: {source}")]
    Run { name: String, source: EngineError },
    #[error(transparent)]
    Engine(EngineError),
    #[error(transparent)]
    Compare(CompareError),
    #[error(transparent)]
    Sample(#[from] SampleError),
    #[error(transparent)]
    OtherSamples(FeedError),
    #[error(transparent)]
    Tune(TuneError),
    #[error(transparent)]
    Stream(StreamError),
    #[error(transparent)]
    Search(SearchError),
    #[error(transparent)]
    Snippet(#[from] SnippetError),
    #[error(transparent)]
    Order(#[from] OrderError),
    #[error(
        "the model's weights are in external files that are missing: {}; put them beside the model, or add them",
        files.join(", ")
    )]
    FilesMissing { files: Vec<String> },
    #[error(
        "there are no samples; static quantization needs real inputs to determine the ranges: add .npy, .npz, image or test_data_set files"
    )]
    NoSamples,
    #[error("the model has no node that computes `{name}`; name an output of one of its nodes")]
    NoSuchValue { name: String },
    #[error(
        "the value `{name}` has the element type `{element}`, which ONNX does not have; use a name such as float32 or uint8"
    )]
    NoSuchElement { name: String, element: String },
    #[error("stopped on request; the model is kept, calibration can be started again")]
    Stopped,
    #[error(transparent)]
    Broken(#[from] BrokenInvariant),
}

/// A call that the session's stage does not allow.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum OrderError {
    #[error("calibration has not begun; choose samples and settings and begin it")]
    NotCalibrating,
    #[error("there are no ranges yet; calibrate with some samples first")]
    NotCalibrated,
    #[error("the conversion has not been planned yet; read the model and plan it first")]
    NotPlanned,
    #[error("there is no profile yet; profile the model first")]
    NotProfiled,
    #[error("no comparison has begun; begin one with the quantized model")]
    NotComparing,
    #[error(
        "no search has begun, or it has not ended yet; begin one, and make its steps to the end"
    )]
    NotSearching,
    #[error(transparent)]
    UnderWay(FeedError),
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
    #[error(
        "these settings learn constants from the samples, which has not happened yet; tune the model with them first, or choose \
         another rounding and no finetune"
    )]
    NotTuned,
    #[error(transparent)]
    SecondPass(#[from] SecondPassMissing),
}

/// Kind of an error, by which callers choose how to react. JavaScript receives its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The model file can't be used.
    Model,
    /// The quantized file can't be written.
    Write,
    /// Files of external data are missing or unusable.
    External,
    /// The model can't be prepared.
    Prepare,
    /// The model can't be quantized with these settings.
    Quantize,
    /// The engine can't run the model.
    Engine,
    /// The models can't be compared.
    Compare,
    /// A sample can't be used.
    Sample,
    /// The settings can't be used.
    Settings,
    /// The memory does not suffice.
    Memory,
    /// A file of the page can't be read.
    Read,
    /// The journal of an unfinished conversion does not fit.
    Journal,
    /// The call is not allowed at this stage.
    Order,
    /// The caller stopped the call.
    Stopped,
    /// A bug in Octet.
    Internal,
}

impl ErrorKind {
    /// The name that JavaScript receives.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Model => "model",
            ErrorKind::Write => "write",
            ErrorKind::External => "external",
            ErrorKind::Prepare => "prepare",
            ErrorKind::Quantize => "quantize",
            ErrorKind::Engine => "engine",
            ErrorKind::Compare => "compare",
            ErrorKind::Sample => "sample",
            ErrorKind::Settings => "settings",
            ErrorKind::Memory => "memory",
            ErrorKind::Read => "read",
            ErrorKind::Journal => "journal",
            ErrorKind::Order => "order",
            ErrorKind::Stopped => "stopped",
            ErrorKind::Internal => "internal",
        }
    }
}

impl Error {
    /// Kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Read(_)
            | Error::Graph(_)
            | Error::Snippet(_)
            | Error::NoSuchValue { .. }
            | Error::NoSuchElement { .. } => ErrorKind::Model,
            Error::Write(_) => ErrorKind::Write,
            Error::External(_) | Error::FilesMissing { .. } => ErrorKind::External,
            Error::Prepare(_) | Error::Equalize(_) => ErrorKind::Prepare,
            Error::Quantize(_) | Error::Tune(_) => ErrorKind::Quantize,
            Error::Stream(error) => match error {
                StreamError::Short { .. } => ErrorKind::Read,
                StreamError::Journal(_) => ErrorKind::Journal,
                StreamError::Tensor(_) => ErrorKind::Model,
                _ => ErrorKind::Quantize,
            },
            Error::Run { .. } | Error::Engine(_) => ErrorKind::Engine,
            Error::Compare(_) => ErrorKind::Compare,
            Error::Sample(_) | Error::NoSamples | Error::OtherSamples(_) => ErrorKind::Sample,
            Error::Search(SearchError::TooFewSamples(_)) => ErrorKind::Sample,
            Error::Search(SearchError::Other(_)) => ErrorKind::Internal,
            Error::Search(_) => ErrorKind::Settings,
            Error::Order(_) => ErrorKind::Order,
            Error::Stopped => ErrorKind::Stopped,
            Error::Broken(_) => ErrorKind::Internal,
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
            FeedError::OtherSamples { .. }
            | FeedError::OtherCount { .. }
            | FeedError::OtherStatistics(_) => Error::OtherSamples(error),
            FeedError::Broken(broken) => broken.into(),
            FeedError::UnderWay(_) => OrderError::UnderWay(error).into(),
        }
    }
}

impl From<StreamError> for Error {
    fn from(error: StreamError) -> Error {
        match error {
            StreamError::External(error) => Error::External(error),
            StreamError::Graph(error) => Error::Graph(error),
            StreamError::Quantize(error) => Error::Quantize(error),
            StreamError::Write(error) => Error::Write(error),
            other => Error::Stream(other),
        }
    }
}

impl From<SearchError> for Error {
    fn from(error: SearchError) -> Error {
        match error {
            SearchError::Engine(error) => error.into(),
            SearchError::Quantize(error) => Error::Quantize(error),
            other => Error::Search(other),
        }
    }
}

impl From<CompareError> for Error {
    fn from(error: CompareError) -> Error {
        match error {
            CompareError::Engine(error) => error.into(),
            CompareError::Prepare(error) => Error::Prepare(error),
            other => Error::Compare(other),
        }
    }
}
