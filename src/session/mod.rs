//! The pipeline for its callers: the page, the command line and the library.
//!
//! A session holds one model. Opening reads and summarizes it. Calibration prepares it and collects
//! statistics. Quantization turns these into a new file; it can be repeated with other settings
//! without another calibration. A call that fails leaves the session unchanged.
//!
//! The model passes through stages, each a type that owns what the stage has (`stage`): opened,
//! prepared, calibrating, calibrated. A session holds the stage and answers every call; a call that
//! the stage does not allow is an [`OrderError`].

mod advice;
mod calibrated;
mod calibrating;
mod calibration;
mod class_names;
mod comparison;
mod demo;
mod emulation;
mod equalization;
mod error;
mod excerpt;
mod export;
mod forecast;
mod free_weights;
mod html_report;
mod inspect;
mod journal;
mod model_summary;
mod opened;
mod partial_calibration;
mod prepared;
mod progress;
mod proof;
mod quantization;
mod ranges;
mod report;
mod runner;
mod sample_checks;
mod search;
pub mod self_check;
mod snippets;
mod source;
mod stage;
mod stored_profile;
mod streamed;
mod streamed_report;
mod tuning;
mod tuning_journal;
mod warm_up;

use std::collections::BTreeMap;

use bytes::Bytes;

use calibrating::CalibrationChoices;
pub use calibrating::CalibrationSummary;
use comparison::Comparisons;
pub use comparison::compare_sample;
pub use emulation::Emulation;
pub use error::{Error, ErrorKind, OrderError};
pub use excerpt::{SeenValue, excerpt, with_outputs};
pub use export::Export;
pub use forecast::{Forecast, ForecastJob};
pub use inspect::{ChannelRanges, GraphView, NodeView, ValueDistribution, ValueView};
use journal::Journal;
pub use model_summary::{DataFile, FloatOperator, GraphPort, ModelSummary, TextForm};
use opened::OpenedModel;
pub use partial_calibration::PassNeeds;
pub use progress::{Event, ProgressMonitor};
pub use proof::{Proof, ranges_text};
pub use quantization::{QuantizationResult, QuantizationSummary};
pub use ranges::ValueRanges;
pub use runner::{Profile, RepeatedRuns, Runner};
pub use sample_checks::UnusableSample;
pub use source::{Checksum, ModelFile, hexadecimal};
use stage::Stage;
use stored_profile::StoredProfile;
pub use streamed::{RESTARTED, StreamedModel, StreamedPlan};
pub use streamed_report::{StreamedOutcome, StreamedResult, StreamedWeight};
use tuning::LearnedConstants;
pub use tuning::{ResumedParts, TuningRun};
pub use warm_up::warm_up;

pub use crate::broken_invariant::BrokenInvariant;
use crate::profile::{RunStep, Section};
use crate::samples::{self, Encoded};
use crate::{onnx, quantize};

/// One model on its way from float to int8.
pub struct Session {
    opened: OpenedModel,
    stage: Stage,
    choices: CalibrationChoices,
    journal: Journal,
    profiles: Vec<StoredProfile>,
    comparisons: Comparisons,
    learned: LearnedConstants,
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
            learned: LearnedConstants::default(),
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
        let (ready, ranges) = self
            .stage
            .prepare(&mut self.opened, &mut self.journal.profiler)?;
        let mut model = ready.calibrated(ranges).clone();
        model.graph.value_info.clone_from(&ready.declared);
        Ok(onnx::pieces(&model.to_proto())?)
    }

    /// Forecasts a job from its first sample. The report shows the measured result beside it.
    pub fn forecast(
        &mut self,
        first: Encoded,
        reading: &samples::SampleSettings,
        job: &ForecastJob<'_>,
        monitor: &dyn ProgressMonitor,
    ) -> Result<Forecast, Error> {
        self.journal.profiler.resume();
        self.journal.profiler.begin(RunStep::Forecast);
        let result = self.forecast_of(first, reading, job, monitor);
        self.journal.profiler.end();
        let result = result?;
        self.journal.report.forecast(&result);
        Ok(result)
    }

    fn forecast_of(
        &mut self,
        first: Encoded,
        reading: &samples::SampleSettings,
        job: &ForecastJob<'_>,
        monitor: &dyn ProgressMonitor,
    ) -> Result<Forecast, Error> {
        let profiler = &mut self.journal.profiler;
        let (ready, _) = self.stage.prepare(&mut self.opened, profiler)?;
        ready.forecast(&self.opened, first, reading, job, &|| monitor.cancelled())
    }

    /// Quantizes with the statistics of the last calibration. Other settings and methods need no
    /// new calibration, unless they require an extra pass that it did not make.
    pub fn quantize(&mut self, settings: &quantize::Settings) -> Result<QuantizationResult, Error> {
        if settings.needs_samples() && self.stage.ranges().is_none() {
            return Err(OrderError::NotCalibrated.into());
        }
        let (learned, learned_notes) = self.learned.for_settings(settings)?;
        self.journal.profiler.resume();
        let (ready, ranges) = self
            .stage
            .prepare(&mut self.opened, &mut self.journal.profiler)?;
        let profiler = &mut self.journal.profiler;
        profiler.begin(RunStep::Quantization(settings.scheme));
        let quantized = ready.quantize(settings, ranges, learned);
        profiler.end();
        let quantized = quantized?;
        profiler.begin(RunStep::PostProcess);
        let written = ready.written(quantized.model);
        let file = written.and_then(|(proto, notes)| Ok((onnx::pieces(&proto)?, proto, notes)));
        profiler.end();
        let (file, proto, rounded) = file?;
        profiler.finish();
        let before = advice::ModelSize {
            file: self.opened.summary.bytes_in_all() as usize,
            constants: self.opened.constants,
        };
        let after = advice::ModelSize {
            file: file.bytes(),
            constants: advice::constants(&proto),
        };
        let summary = QuantizationSummary {
            scheme: settings.scheme,
            file_name: settings.file_name(&self.opened.summary.name),
            advice: advice::advice(&proto, before, after, settings),
            bytes_before: before.file,
            bytes_after: after.file,
            nodes: quantized.nodes,
            tensors: quantized.tensors,
            notes: (quantized.notes.into_iter())
                .chain(rounded)
                .chain(learned_notes)
                .collect(),
            guarded: quantized.guarded,
        };
        let report = &mut self.journal.report;
        let proof = Proof::new(settings, &quantized.ranges, &file);
        report.quantized(settings, &summary, &proof);
        report.compared(self.comparisons.restore(settings));
        report.add_forecast_result(&self.journal.profiler, summary.bytes_after);
        Ok(QuantizationResult {
            model: file,
            ranges: quantized.ranges,
            proof,
            summary,
        })
    }

    /// Report of the run so far, as YAML. It is a valid document at any moment.
    pub fn report(&self) -> String {
        let identity = self.opened.summary.identity();
        let mut sections = vec![Section::new("model", "The model.", &identity)];
        sections.extend(self.journal.report.sections());
        self.journal.profiler.report(&sections)
    }
}
