//! The pipeline for its callers: the page, the command line and the library.
//!
//! A session holds one model. Opening reads and summarizes it. Calibration prepares it and collects
//! statistics. Quantization turns these into a new file; it can be repeated with other settings
//! without another calibration. A call that fails leaves the session unchanged.
//!
//! The model passes through stages, each a type that owns what the stage has ([`stage`]): opened,
//! prepared, calibrating, calibrated. A session holds the stage and answers every call; a call that
//! the stage does not allow is an [`OrderError`].

mod advice;
mod calibrating;
mod calibration;
mod comparison;
mod demo;
mod equalization;
mod error;
mod export;
mod forecast;
mod free_weights;
mod html_report;
mod inspect;
mod journal;
mod model_summary;
mod opened;
mod prepared;
mod progress;
mod quantization;
mod ranges;
mod report;
mod runner;
mod sample_checks;
mod source;
mod stage;
mod warm_up;

use std::collections::BTreeMap;

use bytes::Bytes;

use calibrating::CalibrationChoices;
pub use calibrating::CalibrationSummary;
use comparison::Comparisons;
pub use comparison::compare_sample;
pub use error::{BrokenInvariant, Error, ErrorKind, OrderError};
pub use export::Export;
pub use forecast::{Forecast, ForecastJob};
pub use inspect::{ChannelRanges, GraphView, NodeView, ValueDistribution, ValueView};
use journal::Journal;
pub use model_summary::{DataFile, FloatOperator, GraphPort, ModelSummary};
use opened::OpenedModel;
pub use progress::{Event, ProgressMonitor};
pub use quantization::{QuantizationResult, QuantizationSummary};
pub use ranges::ValueRanges;
pub use runner::{Profile, Runner};
pub use sample_checks::UnusableSample;
pub use source::{Checksum, ModelFile, hexadecimal};
use stage::Stage;
pub use warm_up::warm_up;

use crate::onnx;
use crate::profile::{RunStep, Section};

/// One model on its way from float to int8.
pub struct Session {
    opened: OpenedModel,
    stage: Stage,
    choices: CalibrationChoices,
    journal: Journal,
    profiles: Vec<runner::StoredProfile>,
    comparisons: Comparisons,
}

impl Session {
    /// Reads a model and summarizes it. The bytes are shared, not copied.
    pub fn open(file: ModelFile) -> Result<Session, Error> {
        let mut journal = Journal::start();
        journal.profiler.begin(RunStep::ModelLoading);
        let opened = OpenedModel::read(file)?;
        journal.profiler.end();
        Ok(Session {
            opened,
            stage: Stage::Opened,
            choices: CalibrationChoices::default(),
            journal,
            profiles: Vec::new(),
            comparisons: Comparisons::default(),
        })
    }

    /// Files of external data that have yet to be attached.
    pub fn wanted_files(&self) -> &[String] {
        self.opened.wanted_files()
    }

    /// Attaches files of external data. All that the model needs must come in one call.
    pub fn attach(&mut self, files: &BTreeMap<String, Bytes>) -> Result<(), Error> {
        self.opened.attach(files)
    }

    /// Summary of the opened model.
    pub fn summary(&self) -> &ModelSummary {
        &self.opened.summary
    }

    /// Refuses a model that is quantized already, before any sample is read.
    pub fn refuse_quantized(&self) -> Result<(), Error> {
        self.opened.refuse_quantized()
    }

    /// Begins a scope in the report, named by the caller.
    pub fn begin_scope(&mut self, message: &str) {
        self.journal.profiler.begin_scope(message);
    }

    /// Ends the innermost scope.
    pub fn end_scope(&mut self) {
        self.journal.profiler.end_scope();
    }

    /// File of the prepared float model, equalized if calibration did that. The ranges belong to
    /// this model, and other tools need it for comparison.
    pub fn prepared(&mut self) -> Result<onnx::Pieces, Error> {
        let (ready, ranges) = self.stage.prepare(&mut self.opened, &mut self.journal)?;
        let mut model = ready.calibrated(ranges).clone();
        model.graph.value_info.clone_from(&ready.declared);
        Ok(onnx::pieces(&model.to_proto())?)
    }

    /// Report of the run so far, as YAML. It is a valid document at any moment.
    pub fn report(&self) -> String {
        let identity = self.opened.summary.identity();
        let mut sections = vec![Section::new("model", "The model.", &identity)];
        sections.extend(self.journal.report.sections());
        self.journal.profiler.report(&sections)
    }
}
