//! The stages in order, and what each remembers: what the faces use, and nothing else.
//!
//! A session holds one model. Opening reads it and makes its card; calibrating prepares it and
//! collects observations; quantizing turns these into a new file and can be repeated with other
//! settings without calibrating again. A call that fails leaves the session as it was before.

mod advice;
mod calibrate;
mod calibrating;
mod card;
mod comparing;
mod demo;
mod equalizing;
mod error;
mod export;
mod forecast;
mod look;
mod page;
mod pictures;
mod ready;
mod release;
mod report;
mod running;
mod source;
mod warm_up;
mod watch;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde::Serialize;

pub use calibrating::CalibrationSummary;
pub use card::{Card, DataFile, FloatOperator, Port};
pub use comparing::compare_sample;
use equalizing::Equalized;
pub use error::Error;
pub use export::Export;
pub use forecast::{Forecast, Job};
pub use look::{Channels, Distribution, GraphView, NodeView, ValueView};
pub use pictures::Misfit;
use pictures::input_specs;
use ready::Ready;
use release::{release, release_halves};
use report::Report;
pub use running::{Profile, Runner};
pub use source::{Checksum, Source, hexadecimal};
pub use warm_up::warm_up;
pub use watch::{Event, Watch};

use crate::calibrate::run::CalibrationRun;
use crate::calibrate::{Method, Observations, Range};
use crate::compare::Comparison;
use crate::graph::{Graph, Model};
use crate::onnx;
use crate::onnx::schema::ValueInfoProto;
use crate::profile::{Profiler, Record, Section, SystemClock, memory};
use crate::quantize::{self, NodeChoice, QuantizedTensor, Scheme};
use crate::samples::Refusal;

/// Range of each value, by name.
pub type Ranges = BTreeMap<String, Range>;

/// What is known of the values' ranges.
enum Found {
    /// What a calibration saw, the method it was ended with, and the model it was of, if channels were made alike.
    Seen(Observations, Method, Option<Equalized>),
    /// The ranges themselves.
    Given(Ranges),
}

/// One model on its way from float to int8.
pub struct Session {
    file: Source,
    wanted_files: Vec<String>,
    header: onnx::schema::ModelProto,
    card: Card,
    /// The bytes of all constants, as the model came.
    constants: usize,
    /// Where the model can't go on with inputs of some shapes, as far as that was asked.
    refusals: HashMap<Vec<Vec<usize>>, Option<Refusal>>,
    prepared: Option<Ready>,
    /// The engine that a calibration runs, from a forecast or the calibration's begin to its end.
    planned: Option<forecast::Planned>,
    calibration: Option<CalibrationRun>,
    /// By how much calibrations make channels alike that begin from here on, if they do.
    equalize: Option<f32>,
    /// The model of the calibration under way, once its channels were made alike.
    equalized: Option<Equalized>,
    /// Whether each layer is noted as a calibration passes it.
    each_layer: bool,
    /// The moments at which samples were done, until the report has them.
    passed: Arc<Mutex<Vec<Record>>>,
    found: Option<Found>,
    profiler: Profiler,
    report: Report,
    profiles: Vec<running::Kept>,
    /// Of the result that was made last.
    comparison: Option<Comparison>,
    /// Those of the results before, by their settings.
    compared: HashMap<String, Comparison>,
    /// The settings of the result that was made last.
    made_with: String,
}

/// A quantized model and what is worth saying of it.
pub struct Outcome {
    /// The file.
    pub model: onnx::Pieces,
    /// The ranges that were used, by the value they were seen of.
    pub ranges: Ranges,
    /// What was done.
    pub summary: Summary,
}

/// What was done to the model.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// What became integers, or halves where it is `float16`: what `quantized` means of a node.
    pub scheme: Scheme,
    /// The name that the file should have.
    pub file_name: String,
    /// Size of the float file, with the files beside it.
    pub bytes_before: usize,
    /// Size of the quantized file.
    pub bytes_after: usize,
    /// Each node and whether it is quantized; where not, why.
    pub nodes: Vec<NodeChoice>,
    /// Each tensor that is quantized, with its scale, zero point and range.
    pub tensors: Vec<QuantizedTensor>,
    /// What a person should know of it: a sentence each.
    pub notes: Vec<String>,
    /// So many of the notes, the first, tell of a tensor that the guard kept from being ruined.
    pub guarded: usize,
    /// What should be chosen otherwise, as the result is larger than it need be: a sentence each.
    pub advice: Vec<String>,
}

impl Session {
    /// Reads a model and makes its card. The bytes are shared, not copied.
    pub fn open(file: Source) -> Result<Session, Error> {
        let mut profiler = Profiler::start(Box::new(SystemClock));
        profiler.begin("Model Loading");
        let header = onnx::read(file.bytes.clone())?;
        let wanted_files = onnx::external::files(&header);
        let card = Card::new(
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
            card,
            constants,
            refusals: HashMap::new(),
            prepared: None,
            planned: None,
            calibration: None,
            equalize: None,
            equalized: None,
            each_layer: false,
            passed: Arc::default(),
            found: None,
            profiler,
            report: Report::default(),
            profiles: Vec::new(),
            comparison: None,
            compared: HashMap::new(),
            made_with: String::new(),
        })
    }

    /// The files beside the model that hold its weights and are not here yet.
    pub fn wanted_files(&self) -> &[String] {
        &self.wanted_files
    }

    /// Gives the session the files it wants; all of them at once.
    pub fn attach(&mut self, files: &BTreeMap<String, Bytes>) -> Result<(), Error> {
        onnx::external::attach(&mut self.header, files)?;
        let attached = std::mem::take(&mut self.wanted_files);
        self.wanted_files = onnx::external::files(&self.header);
        let model = Model::from_proto(self.header.clone())?;
        self.card = Card::new(&self.file, model, &input_specs(&self.header));
        let attached = attached.into_iter().filter_map(|name| {
            let bytes = onnx::external::find(files, &name)?.len();
            Some(DataFile { name, bytes })
        });
        self.card.data_files = attached.collect();
        Ok(())
    }

    /// What the model is.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// Refuses a model that is quantized already, before anybody looks at its samples.
    pub fn refuse_quantized(&self) -> Result<(), Error> {
        if self.card.already_quantized {
            quantize::refuse_quantized(&Model::from_proto(self.header.clone())?)?;
        }
        Ok(())
    }

    /// Begins a scope of the caller's own in the report, around whatever follows.
    pub fn begin_scope(&mut self, message: &str) {
        self.profiler.begin_scope(message);
    }

    /// Ends the scope that was begun last.
    pub fn end_scope(&mut self) {
        self.profiler.end_scope();
    }

    /// Takes ranges from elsewhere in place of a calibration.
    pub fn set_ranges(&mut self, ranges: Ranges) -> Result<(), Error> {
        self.prepare()?;
        self.found = Some(Found::Given(ranges));
        Ok(())
    }

    /// The file of the prepared float model, with its channels made alike where they were: what the ranges are of, and what other
    /// tools must be given to be compared.
    pub fn prepared(&mut self) -> Result<onnx::Pieces, Error> {
        self.prepare()?;
        let ready = self.prepared.as_ref().ok_or(Error::NotCalibrating)?;
        let mut model = self.calibrated_model().unwrap_or(&ready.model).clone();
        model.graph.value_info.clone_from(&ready.declared);
        Ok(onnx::pieces(&model.to_proto())?)
    }

    /// Quantizes with what the last calibration saw. Other settings, other methods among them, need no other
    /// calibration.
    pub fn quantize(&mut self, settings: &quantize::Settings) -> Result<Outcome, Error> {
        if settings.need_samples() && self.found.is_none() {
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
        let restored = ready.half.restore(&mut model);
        model.graph.value_info = declared_again(&model.graph, &ready.declared);
        let made = model.to_proto();
        let file = onnx::pieces(&made);
        self.profiler.end();
        let rounded = restored.map_err(quantize::QuantizeError::from)?;
        let file = file?;
        self.profiler.finish();
        let before = advice::Size {
            file: self.card.bytes_in_all(),
            constants: self.constants,
        };
        let after = advice::Size {
            file: file.bytes(),
            constants: advice::constants(&made),
        };
        let summary = Summary {
            scheme: settings.scheme,
            file_name: settings.file_name(&self.card.name),
            advice: advice::advice(&made, before, after, settings),
            bytes_before: before.file,
            bytes_after: after.file,
            nodes: quantized.nodes,
            tensors: quantized.tensors,
            notes: quantized.notes.into_iter().chain(rounded).collect(),
            guarded: quantized.guarded,
        };
        self.report.quantized(settings, &summary);
        self.compared_as(settings);
        self.report.took(&self.profiler, summary.bytes_after);
        Ok(Outcome {
            model: file,
            ranges: quantized.ranges,
            summary,
        })
    }

    fn quantized(&self, settings: &quantize::Settings) -> Result<quantize::Quantized, Error> {
        let model = self.model_for(settings)?;
        let ranges = self.found.as_ref().map(|found| match found {
            Found::Seen(observations, method, _) => quantize::Ranges::Seen(observations, *method),
            Found::Given(ranges) => quantize::Ranges::Given(ranges),
        });
        let mut quantized = quantize::apply(model, settings, ranges)?;
        quantized.notes.extend(self.said_of_channels(settings));
        if let Some(ready) = &self.prepared {
            quantized.notes.extend(ready.functions.said());
            quantized.notes.extend(ready.half.said());
        }
        Ok(quantized)
    }

    /// The report of the run so far, as YAML; whole at any moment.
    pub fn report(&self) -> String {
        let mut sections = vec![Section::of(
            "model",
            "What was quantized.",
            &self.card.identity(),
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
        let (ready, peak) = memory::peak_of(|| {
            let mut ready = Ready::new(&self.header)?;
            release_halves(&mut self.header);
            release(&mut self.file.bytes, &mut self.header, &mut ready.model)?;
            Ok::<_, Error>(ready)
        });
        let ready = ready.map(|ready| Ready { peak, ..ready });
        self.profiler.end();
        self.prepared = Some(ready?);
        Ok(())
    }
}

/// What the file declared of those values that the graph still makes, with the types these have now: a scheme may have changed them.
fn declared_again(graph: &Graph, declared: &[ValueInfoProto]) -> Vec<ValueInfoProto> {
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
