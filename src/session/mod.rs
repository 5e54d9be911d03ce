//! The stages in order, and what each remembers: what the faces use, and nothing else.
//!
//! A session holds one model. Opening reads it and makes its card; calibrating prepares it and
//! collects observations; quantizing turns these into a new file and can be repeated with other
//! settings without calibrating again. A call that fails leaves the session as it was before.

mod card;
mod comparing;
mod demo;
mod error;
mod export;
mod forecast;
mod look;
mod page;
mod release;
mod report;
mod running;
mod source;
mod warm_up;
mod watch;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde::Serialize;

pub use card::{Card, FloatOperator, Port};
pub use comparing::compare_sample;
pub use error::Error;
pub use export::Export;
pub use forecast::{Forecast, Job};
pub use look::{Channels, Distribution, GraphView, NodeView, ValueView};
use release::release;
use report::Report;
pub use running::{Profile, Runner};
pub use source::{Checksum, Source, hexadecimal};
pub use warm_up::warm_up;
pub use watch::{Event, Watch};

use crate::calibrate::run::Calibration;
use crate::calibrate::{Method, Observations, Range, SecondPassMissing};
use crate::compare::Comparison;
use crate::engine;
use crate::graph::{Model, TensorType, tensor_type_of};
use crate::onnx;
use crate::onnx::schema::ValueInfoProto;
use crate::prepare::{Prepared, prepare};
use crate::profile::{Profiler, Record, Section, Stopwatch, SystemClock, memory};
use crate::quantize::{self, NodeChoice, QuantizedTensor};
use crate::samples::{self, Encoded, InputSpec, Preview};

/// Range of each value, by name.
pub type Ranges = BTreeMap<String, Range>;

/// What is known of the values' ranges.
enum Found {
    /// What a calibration saw, and the method it was ended with.
    Seen(Observations, Method),
    /// The ranges themselves.
    Given(Ranges),
}

/// One model on its way from float to int8.
pub struct Session {
    file: Source,
    wanted_files: Vec<String>,
    header: onnx::schema::ModelProto,
    card: Card,
    prepared: Option<Ready>,
    /// The engine that a calibration runs, from a forecast or the calibration's begin to its end.
    planned: Option<forecast::Planned>,
    calibration: Option<Calibration>,
    /// Whether each layer is noted as a calibration passes it.
    each_layer: bool,
    /// The moments at which samples were done, until the report has them.
    passed: Arc<Mutex<Vec<Record>>>,
    found: Option<Found>,
    profiler: Profiler,
    report: Report,
    profiles: Vec<running::Kept>,
    comparison: Option<Comparison>,
}

/// The prepared model with a type for every value, and the types of those values whose type the file
/// declares: only these go out again.
struct Ready {
    model: Model,
    declared: Vec<ValueInfoProto>,
    done: Vec<String>,
    /// The most that was allocated while it was prepared.
    peak: u64,
}

impl Ready {
    fn new(header: &onnx::schema::ModelProto) -> Result<Ready, Error> {
        let model = Model::from_proto(header.clone())?;
        // Before the engine sees operators that only quantized models have.
        quantize::refuse_quantized(&model)?;
        let Prepared { mut model, done } = prepare(model)?;
        // tract knows the types of more operators than our own rules, but takes half as long as for a plan.
        let types = match model.graph.is_typed() {
            true => BTreeMap::new(),
            false => engine::infer_types(&model)?,
        };
        let file = header.graph.iter().flat_map(|graph| &graph.value_info);
        let named: HashSet<_> = file.map(|value| value.name.as_deref()).collect();
        let in_file = |value: &&ValueInfoProto| named.contains(&value.name.as_deref());
        let declared = model
            .graph
            .value_info
            .iter()
            .filter(in_file)
            .cloned()
            .collect();
        declare(&mut model, &types);
        Ok(Ready {
            model,
            declared,
            done,
            peak: 0,
        })
    }
}

/// What a calibration saw.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CalibrationSummary {
    /// How many samples were run.
    pub samples: usize,
    /// How many values have a range.
    pub values: usize,
    /// What `prepare` changed, a sentence each.
    pub prepared: Vec<String>,
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
    /// Size of the float file.
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
}

/// Notes that a sample is done, from any thread.
fn sample_done(
    name: &str,
    done: usize,
    stopwatch: &Stopwatch,
    passed: &Mutex<Vec<Record>>,
    watch: &dyn Watch,
) {
    let moment = stopwatch.moment(format!("Calibration sample {name} done"));
    let mut passed = passed.lock().unwrap_or_else(PoisonError::into_inner);
    passed.push(moment);
    drop(passed);
    let name = name.to_string();
    watch.event(&Event::Sample { done, name });
}

impl Session {
    /// Reads a model and makes its card. The bytes are shared, not copied.
    pub fn open(file: Source) -> Result<Session, Error> {
        let mut profiler = Profiler::start(Box::new(SystemClock));
        profiler.begin("Model Loading");
        let header = onnx::read(file.bytes.clone())?;
        let wanted_files = onnx::external::files(&header);
        let model = Model::from_proto(header.clone())?;
        let card = Card::new(&file, &model);
        profiler.end();
        Ok(Session {
            file,
            wanted_files,
            header,
            card,
            prepared: None,
            planned: None,
            calibration: None,
            each_layer: false,
            passed: Arc::default(),
            found: None,
            profiler,
            report: Report::default(),
            profiles: Vec::new(),
            comparison: None,
        })
    }

    /// The files beside the model that hold its weights and are not here yet.
    pub fn wanted_files(&self) -> &[String] {
        &self.wanted_files
    }

    /// Gives the session the files it wants; all of them at once.
    pub fn attach(&mut self, files: &BTreeMap<String, Bytes>) -> Result<(), Error> {
        onnx::external::attach(&mut self.header, files)?;
        self.wanted_files = onnx::external::files(&self.header);
        let model = Model::from_proto(self.header.clone())?;
        self.card = Card::new(&self.file, &model);
        Ok(())
    }

    /// What the model is.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// What a sample must bring.
    pub fn input_specs(&self) -> Vec<InputSpec> {
        let Some(graph) = &self.header.graph else {
            return Vec::new();
        };
        let constants: HashSet<_> = graph
            .initializer
            .iter()
            .map(|t| t.name.as_deref())
            .collect();
        let fed = graph
            .input
            .iter()
            .filter(|input| !constants.contains(&input.name.as_deref()));
        fed.filter_map(|input| {
            let declared = tensor_type_of(input)?;
            Some(InputSpec {
                name: input.name.clone()?,
                element: declared.element,
                shape: declared.shape.unwrap_or_default(),
            })
        })
        .collect()
    }

    /// What a sample looks like once decoded, input by input.
    pub fn preview(
        &self,
        sample: &Encoded,
        settings: &samples::Settings,
    ) -> Result<Vec<Preview>, Error> {
        Ok(samples::preview(sample, &self.input_specs(), settings)?)
    }

    /// Prepares the model and begins a calibration, leaving off any begun before.
    ///
    /// It watches all that any settings may ask for: these can change afterwards without another.
    pub fn begin_calibration(&mut self, samples: samples::Settings) -> Result<(), Error> {
        self.calibration = None;
        self.profiler.resume();
        let inputs = self.input_specs();
        let planned = self.planned()?;
        let (engine, watched) = (planned.engine.clone(), planned.watched.clone());
        let ready = self.prepared.as_ref().ok_or(Error::NotCalibrating)?;
        self.report.calibrating(&samples, &ready.done);
        let mut layers = Vec::new();
        if self.each_layer {
            let uses = ready.model.graph.uses();
            let layer = |value: &String| match uses.producer(value) {
                Some(node) => ready.model.graph.nodes[node].title().to_string(),
                None => format!("input {value}"),
            };
            layers.extend(watched.iter().map(layer));
        }
        let (stopwatch, passed) = (self.profiler.stopwatch().clone(), self.passed.clone());
        let looked = move |name: &str, slot: usize| {
            let layer = layers.get(slot);
            let layer = layer.map(|layer| format!("Calibration sample {name} layer {layer}"));
            let noted = [stopwatch.growth(), layer.map(|step| stopwatch.glance(step))];
            if noted.iter().any(Option::is_some) {
                let mut passed = passed.lock().unwrap_or_else(PoisonError::into_inner);
                passed.extend(noted.into_iter().flatten());
            }
        };
        let looked = Box::new(looked);
        let mut axes = quantize::channel_axes(&ready.model);
        let with_axis = |value: String| {
            let axis = axes.remove(&value);
            (value, axis)
        };
        let watched = watched.into_iter().map(with_axis).collect();
        let begun = Calibration::new(engine, watched, inputs, samples, looked);
        self.calibration = Some(begun);
        self.profiler.begin("Calibration");
        Ok(())
    }

    /// Runs some samples; may be called again and again, with the same result however they are cut.
    pub fn feed(&mut self, samples: Vec<Encoded>, watch: &dyn Watch) -> Result<(), Error> {
        let calibration = self.calibration.as_mut().ok_or(Error::NotCalibrating)?;
        let passed = &self.passed;
        let stopwatch = self.profiler.stopwatch();
        let finished = |name: &str, done| sample_done(name, done, stopwatch, passed, watch);
        let fed = calibration.feed(samples, finished, || watch.cancelled());
        self.note_passed();
        Ok(fed?)
    }

    /// Begins to run a sample, and comes back at once where there are threads for it, so that the next can be read
    /// meanwhile. [`Session::settle`] tells how those went that were begun. Whether it was begun: not once another has
    /// failed.
    pub fn begin_sample(
        &mut self,
        sample: Encoded,
        watch: &'static dyn Watch,
    ) -> Result<bool, Error> {
        let calibration = self.calibration.as_mut().ok_or(Error::NotCalibrating)?;
        let passed = Arc::clone(&self.passed);
        let stopwatch = self.profiler.stopwatch().clone();
        let finished = move |name: &str, done| sample_done(name, done, &stopwatch, &passed, watch);
        let (stop, ended) = (|| watch.cancelled(), || watch.ended());
        Ok(calibration.begin(sample, finished, stop, ended))
    }

    /// How many of the samples begun have not ended.
    pub fn samples_under_way(&self) -> usize {
        self.calibration.as_ref().map_or(0, Calibration::under_way)
    }

    /// The ranges of the values that are watched, as far as samples have ended.
    pub fn ranges_so_far(&self) -> Vec<(&str, Option<Range>)> {
        self.calibration
            .as_ref()
            .map_or_else(Vec::new, Calibration::so_far)
    }

    /// How the samples went that were begun. They must have ended.
    pub fn settle(&mut self) -> Result<(), Error> {
        let calibration = self.calibration.as_mut().ok_or(Error::NotCalibrating)?;
        let settled = calibration.settle();
        self.note_passed();
        Ok(settled?)
    }

    fn note_passed(&mut self) {
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        self.profiler.passed(std::mem::take(&mut *passed));
    }

    /// Has calibrations that begin from here on note in the report each layer of each sample that they pass. That is a lot of
    /// a large model.
    pub fn checkpoint_layers(&mut self, each: bool) {
        self.each_layer = each;
    }

    /// Begins a scope of the caller's own in the report, around whatever follows.
    pub fn begin_scope(&mut self, message: &str) {
        self.profiler.begin_scope(message);
    }

    /// Ends the scope that was begun last.
    pub fn end_scope(&mut self) {
        self.profiler.end_scope();
    }

    /// Begins a second pass over the samples if this method needs one; says whether it does. If so, the
    /// same samples are to be fed again before the calibration is finished with this method.
    pub fn begin_second_pass(&mut self, method: Method) -> Result<bool, Error> {
        let calibration = self.calibration.as_mut().ok_or(Error::NotCalibrating)?;
        let Some(layout) = method.second_pass() else {
            return Ok(false);
        };
        calibration.begin_second_pass(layout)?;
        Ok(true)
    }

    /// Ends the calibration: from here on the model can be quantized.
    pub fn finish_calibration(&mut self, method: Method) -> Result<CalibrationSummary, Error> {
        let calibration = self.calibration.take().ok_or(Error::NotCalibrating)?;
        let samples = calibration.done();
        if samples == 0 {
            self.calibration = Some(calibration);
            return Err(Error::NoSamples);
        }
        if let Some(layout) = method.second_pass()
            && calibration.second_pass() != Some(layout)
        {
            // The first pass is kept: the second can be begun, or another method taken.
            self.calibration = Some(calibration);
            return Err(Error::SecondPass(SecondPassMissing(method)));
        }
        let observations = calibration.finish()?;
        self.planned = None;
        memory::give_back();
        self.profiler.end();
        let values = observations.len();
        self.report.calibrated(method, samples, &observations);
        self.found = Some(Found::Seen(observations, method));
        let prepared = self
            .prepared
            .as_ref()
            .map(|r| r.done.clone())
            .unwrap_or_default();
        Ok(CalibrationSummary {
            samples,
            values,
            prepared,
        })
    }

    /// Takes ranges from elsewhere in place of a calibration.
    pub fn set_ranges(&mut self, ranges: Ranges) -> Result<(), Error> {
        self.prepare()?;
        self.found = Some(Found::Given(ranges));
        Ok(())
    }

    /// The file of the prepared float model: what the ranges are of, and what other tools must be given to
    /// be compared.
    pub fn prepared(&mut self) -> Result<onnx::Pieces, Error> {
        self.prepare()?;
        let ready = self.prepared.as_ref().ok_or(Error::NotCalibrating)?;
        let mut model = ready.model.clone();
        model.graph.value_info.clone_from(&ready.declared);
        Ok(onnx::pieces(&model.to_proto())?)
    }

    /// Quantizes with what the last calibration saw. Other settings, other methods among them, need no other
    /// calibration.
    pub fn quantize(&mut self, settings: &quantize::Settings) -> Result<Outcome, Error> {
        if settings.scheme.needs_samples() && self.found.is_none() {
            return Err(Error::NotCalibrated);
        }
        self.profiler.resume();
        self.prepare()?;
        let ready = self.prepared.as_ref().ok_or(Error::NotCalibrated)?;
        let ranges = self.found.as_ref().map(|found| match found {
            Found::Seen(observations, method) => quantize::Ranges::Seen(observations, *method),
            Found::Given(ranges) => quantize::Ranges::Given(ranges),
        });
        self.profiler.begin(settings.scheme.step());
        let quantized = quantize::apply(&ready.model, settings, ranges);
        self.profiler.end();
        let quantized = quantized?;
        self.profiler.begin("Post-process");
        let mut model = quantized.model;
        let uses = model.graph.uses();
        let made =
            |v: &&ValueInfoProto| v.name.as_ref().is_some_and(|n| uses.producer(n).is_some());
        model.graph.value_info = ready.declared.iter().filter(made).cloned().collect();
        let file = onnx::pieces(&model.to_proto());
        self.profiler.end();
        let file = file?;
        self.profiler.finish();
        let summary = Summary {
            bytes_before: self.card.bytes,
            bytes_after: file.bytes(),
            nodes: quantized.nodes,
            tensors: quantized.tensors,
            notes: quantized.notes,
            guarded: quantized.guarded,
        };
        self.report.quantized(settings, &summary);
        self.report.took(&self.profiler, summary.bytes_after);
        Ok(Outcome {
            model: file,
            ranges: quantized.ranges,
            summary,
        })
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
            release(&mut self.file.bytes, &mut self.header, &mut ready.model)?;
            Ok::<_, Error>(ready)
        });
        let ready = ready.map(|ready| Ready { peak, ..ready });
        self.profiler.end();
        self.prepared = Some(ready?);
        Ok(())
    }
}

/// Writes inferred types into the graph, over what it declares for the same values.
fn declare(model: &mut Model, types: &BTreeMap<String, TensorType>) {
    let graph = &mut model.graph;
    let ports: HashSet<String> = graph
        .inputs
        .iter()
        .chain(&graph.outputs)
        .filter_map(|v| v.name.clone())
        .collect();
    graph
        .value_info
        .retain(|v| v.name.as_ref().is_some_and(|n| !types.contains_key(n)));
    for (name, found) in types {
        if !ports.contains(name) && !graph.initializers.contains(name) {
            graph.value_info.push(ValueInfoProto::of(name, found));
        }
    }
}
