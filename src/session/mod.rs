//! The pipeline for its callers: the page, the command line and the library.
//!
//! A session holds one model. Opening reads and summarizes it. Calibration prepares it and collects
//! statistics. Quantization turns these into a new file; it can be repeated with other settings
//! without another calibration. A call that fails leaves the session unchanged.

mod advice;
mod calibrate;
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
mod model_summary;
mod prepared;
mod progress;
mod report;
mod runner;
mod sample_checks;
mod source;
mod warm_up;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde::Serialize;

pub use calibration::CalibrationSummary;
pub use comparison::compare_sample;
use equalization::Equalized;
pub use error::Error;
pub use export::Export;
pub use forecast::{Forecast, ForecastJob};
use free_weights::{free_half_weights, free_unused};
pub use inspect::{ChannelRanges, GraphView, NodeView, ValueDistribution, ValueView};
pub use model_summary::{DataFile, FloatOperator, GraphPort, ModelSummary};
use prepared::PreparedModel;
pub use progress::{Event, ProgressMonitor};
use report::Report;
pub use runner::{Profile, Runner};
pub use sample_checks::UnusableSample;
use sample_checks::input_specs;
pub use source::{Checksum, ModelFile, hexadecimal};
pub use warm_up::warm_up;

use crate::allocator;
use crate::calibrate::run::CalibrationRun;
use crate::compare::Comparison;
use crate::graph::{Graph, Model};
use crate::onnx;
use crate::onnx::schema::ValueInfoProto;
use crate::profile::{Profiler, Record, Section, SystemClock};
use crate::quantize::{self, NodeChoice, QuantizedTensor, Scheme};
use crate::samples::ShapeMismatch;
use crate::stats::{CalibrationStatistics, Method, Range};

/// Range of each value, by its name.
pub type ValueRanges = BTreeMap<String, Range>;

/// Source of the values' ranges.
enum RangeSource {
    /// Statistics of a calibration, its method, and the equalized model that they belong to.
    Statistics(CalibrationStatistics, Method, Option<Equalized>),
    /// Ranges that the caller set.
    Fixed(ValueRanges),
}

/// One model on its way from float to int8.
pub struct Session {
    file: ModelFile,
    wanted_files: Vec<String>,
    header: onnx::schema::ModelProto,
    summary: ModelSummary,
    /// Bytes of all constants of the opened model.
    constants: usize,
    /// Cached shape checks: the reason why inputs of these shapes don't fit the model, if any.
    refusals: HashMap<Vec<Vec<usize>>, Option<ShapeMismatch>>,
    prepared: Option<PreparedModel>,
    /// Engine for calibration, kept from a forecast or the begin of a calibration to its end.
    planned: Option<forecast::Planned>,
    calibration: Option<CalibrationRun>,
    /// Strength of equalization for later calibrations; `None` turns it off.
    equalize: Option<f32>,
    /// Equalized model of the current calibration.
    equalized: Option<Equalized>,
    /// True to record each layer of each sample.
    each_layer: bool,
    /// Checkpoints of samples that are done, until the report takes them.
    checkpoints: Arc<Mutex<Vec<Record>>>,
    range_source: Option<RangeSource>,
    profiler: Profiler,
    report: Report,
    profiles: Vec<runner::StoredProfile>,
    /// Comparison of the latest result.
    comparison: Option<Comparison>,
    /// Comparisons of earlier results, by their settings as JSON.
    comparisons: HashMap<String, Comparison>,
    /// Settings of the latest result, as JSON.
    result_settings: String,
}

/// A quantized model and its summary.
pub struct QuantizationResult {
    /// The file.
    pub model: onnx::Pieces,
    /// Ranges in use, by the name of the observed value.
    pub ranges: ValueRanges,
    /// Summary of the quantization.
    pub summary: QuantizationSummary,
}

/// Summary of a quantization.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuantizationSummary {
    /// The scheme. A `quantized` node holds integers, or half-precision floats with scheme
    /// `float16`.
    pub scheme: Scheme,
    /// Proposed name for the file.
    pub file_name: String,
    /// Size of the float model in bytes, external data included.
    pub bytes_before: usize,
    /// Size of the quantized file in bytes.
    pub bytes_after: usize,
    /// All nodes, each with its choice and, if it stays float, the reason.
    pub nodes: Vec<NodeChoice>,
    /// All quantized tensors with their scales, zero points and ranges.
    pub tensors: Vec<QuantizedTensor>,
    /// Notes for people, a sentence each.
    pub notes: Vec<String>,
    /// Number of leading notes that come from mixed precision.
    pub guarded: usize,
    /// Advice on a result that is larger than necessary, a sentence each.
    pub advice: Vec<String>,
}

impl Session {
    /// Reads a model and summarizes it. The bytes are shared, not copied.
    pub fn open(file: ModelFile) -> Result<Session, Error> {
        let mut profiler = Profiler::start(Box::new(SystemClock));
        profiler.begin("Model Loading");
        let header = onnx::read(file.bytes.clone())?;
        let wanted_files = onnx::external::files(&header);
        let summary = ModelSummary::new(
            &file,
            Model::from_proto(header.clone())?,
            &input_specs(&header),
        );
        let constants = advice::constants(&header);
        profiler.end();
        Ok(Session {
            file,
            wanted_files,
            header,
            summary,
            constants,
            refusals: HashMap::new(),
            prepared: None,
            planned: None,
            calibration: None,
            equalize: None,
            equalized: None,
            each_layer: false,
            checkpoints: Arc::default(),
            range_source: None,
            profiler,
            report: Report::default(),
            profiles: Vec::new(),
            comparison: None,
            comparisons: HashMap::new(),
            result_settings: String::new(),
        })
    }

    /// Files of external data that have yet to be attached.
    pub fn wanted_files(&self) -> &[String] {
        &self.wanted_files
    }

    /// Attaches files of external data. All that the model needs must come in one call.
    pub fn attach(&mut self, files: &BTreeMap<String, Bytes>) -> Result<(), Error> {
        onnx::external::attach(&mut self.header, files)?;
        let attached = std::mem::take(&mut self.wanted_files);
        self.wanted_files = onnx::external::files(&self.header);
        let model = Model::from_proto(self.header.clone())?;
        self.summary = ModelSummary::new(&self.file, model, &input_specs(&self.header));
        let attached = attached.into_iter().filter_map(|name| {
            let bytes = onnx::external::find(files, &name)?.len();
            Some(DataFile { name, bytes })
        });
        self.summary.data_files = attached.collect();
        Ok(())
    }

    /// Summary of the opened model.
    pub fn summary(&self) -> &ModelSummary {
        &self.summary
    }

    /// Refuses a model that is quantized already, before any sample is read.
    pub fn refuse_quantized(&self) -> Result<(), Error> {
        if self.summary.already_quantized {
            quantize::refuse_quantized(&Model::from_proto(self.header.clone())?)?;
        }
        Ok(())
    }

    /// Begins a scope in the report, named by the caller.
    pub fn begin_scope(&mut self, message: &str) {
        self.profiler.begin_scope(message);
    }

    /// Ends the innermost scope.
    pub fn end_scope(&mut self) {
        self.profiler.end_scope();
    }

    /// Sets ranges from elsewhere in place of a calibration.
    pub fn set_ranges(&mut self, ranges: ValueRanges) -> Result<(), Error> {
        self.prepare()?;
        self.range_source = Some(RangeSource::Fixed(ranges));
        Ok(())
    }

    /// File of the prepared float model, equalized if calibration did that. The ranges belong to
    /// this model, and other tools need it for comparison.
    pub fn prepared(&mut self) -> Result<onnx::Pieces, Error> {
        self.prepare()?;
        let ready = self.prepared.as_ref().ok_or(Error::NotCalibrating)?;
        let mut model = self.calibrated_model().unwrap_or(&ready.model).clone();
        model.graph.value_info.clone_from(&ready.declared);
        Ok(onnx::pieces(&model.to_proto())?)
    }

    /// Quantizes with the statistics of the last calibration. Other settings and methods need no
    /// new calibration, unless they require an extra pass that it did not make.
    pub fn quantize(&mut self, settings: &quantize::Settings) -> Result<QuantizationResult, Error> {
        if settings.needs_samples() && self.range_source.is_none() {
            return Err(Error::NotCalibrated);
        }
        self.profiler.resume();
        self.prepare()?;
        self.profiler.begin(settings.scheme.step());
        let quantized = self.quantized(settings);
        self.profiler.end();
        let quantized = quantized?;
        let ready = self.prepared.as_ref().ok_or(Error::NotCalibrated)?;
        self.profiler.begin("Post-process");
        let mut model = quantized.model;
        let restored = ready.upcast.restore(&mut model);
        model.graph.value_info = remaining_declarations(&model.graph, &ready.declared);
        let proto = model.to_proto();
        let file = onnx::pieces(&proto);
        self.profiler.end();
        let rounded = restored.map_err(quantize::QuantizeError::from)?;
        let file = file?;
        self.profiler.finish();
        let before = advice::ModelSize {
            file: self.summary.bytes_in_all(),
            constants: self.constants,
        };
        let after = advice::ModelSize {
            file: file.bytes(),
            constants: advice::constants(&proto),
        };
        let summary = QuantizationSummary {
            scheme: settings.scheme,
            file_name: settings.file_name(&self.summary.name),
            advice: advice::advice(&proto, before, after, settings),
            bytes_before: before.file,
            bytes_after: after.file,
            nodes: quantized.nodes,
            tensors: quantized.tensors,
            notes: quantized.notes.into_iter().chain(rounded).collect(),
            guarded: quantized.guarded,
        };
        self.report.quantized(settings, &summary);
        self.restore_comparison(settings);
        self.report
            .add_forecast_result(&self.profiler, summary.bytes_after);
        Ok(QuantizationResult {
            model: file,
            ranges: quantized.ranges,
            summary,
        })
    }

    fn quantized(&self, settings: &quantize::Settings) -> Result<quantize::Quantized, Error> {
        let model = self.model_for(settings)?;
        let ranges = self.range_source.as_ref().map(|source| match source {
            RangeSource::Statistics(observations, method, _) => {
                quantize::ActivationRanges::Observed(observations, *method)
            }
            RangeSource::Fixed(ranges) => quantize::ActivationRanges::Provided(ranges),
        });
        let mut quantized = quantize::apply(model, settings, ranges)?;
        quantized.notes.extend(self.equalization_note(settings));
        if let Some(ready) = &self.prepared {
            quantized.notes.extend(ready.functions.notes());
            quantized.notes.extend(ready.upcast.note());
        }
        Ok(quantized)
    }

    /// Report of the run so far, as YAML. It is a valid document at any moment.
    pub fn report(&self) -> String {
        let mut sections = vec![Section::new(
            "model",
            "The model.",
            &self.summary.identity(),
        )];
        sections.extend(self.report.sections());
        self.profiler.report(&sections)
    }

    fn prepare(&mut self) -> Result<(), Error> {
        if !self.wanted_files.is_empty() {
            return Err(Error::FilesMissing {
                files: self.wanted_files.clone(),
            });
        }
        if self.prepared.is_some() {
            return Ok(());
        }
        self.profiler.begin("Pre-process");
        let (ready, peak) = allocator::peak_of(|| {
            let mut ready = PreparedModel::new(&self.header)?;
            free_half_weights(&mut self.header);
            free_unused(&mut self.file.bytes, &mut self.header, &mut ready.model)?;
            Ok::<_, Error>(ready)
        });
        let ready = ready.map(|ready| PreparedModel { peak, ..ready });
        self.profiler.end();
        self.prepared = Some(ready?);
        Ok(())
    }
}

/// Declared types of the values that the graph still computes. Element types are updated, since a
/// scheme may have changed them.
fn remaining_declarations(graph: &Graph, declared: &[ValueInfoProto]) -> Vec<ValueInfoProto> {
    let (uses, elements) = (graph.uses(), graph.element_types());
    let again = declared.iter().filter_map(|value| {
        let name = value.name.as_deref()?;
        uses.producer(name)?;
        let mut value = value.clone();
        if let Some(&element) = elements.get(name) {
            value.set_element(element);
        }
        Some(value)
    });
    again.collect()
}
