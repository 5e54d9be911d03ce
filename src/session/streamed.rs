//! A model of any size: read and converted piece by piece, without input or output of its own.
//!
//! The caller reads what [`StreamedModel::wanted`] asks for, first of the graph, then of small
//! constants. Then it plans a conversion, as often as it likes, and drives the last one from step to
//! step.

use std::collections::BTreeMap;

use serde::Serialize;

use super::error::{Error, OrderError};
use super::model_summary::{DataFile, ModelSummary};
use super::opened::input_specs;
use super::streamed_report::{StreamedOutcome, StreamedResult};
use crate::graph::Model;
use crate::onnx::schema::ModelProto;
use crate::onnx::skeleton::SkeletonReader;
use crate::onnx::{self, Stretch, check_stretches};
use crate::profile::{Profiler, RunStep, Section, SystemClock, environment};
use crate::quantize::Settings;
use crate::quantize::recipe::SLICE;
use crate::stream::{
    Conversion, ConversionJournal, ConversionStep, OutputFiles, SmallTensors, SourceIdentity,
    StreamError,
};

/// The version of Octet in journals.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The note on a plan that changed.
pub const RESTARTED: &str =
    "some weights have numbers beyond float16, so the conversion began again without them";

/// Bytes of slices that are in memory beside a recipe: as read, as floats, as results.
const SLICES: u64 = 4 * SLICE;

/// A model that is read and converted piece by piece.
pub struct StreamedModel {
    name: String,
    sources: Vec<SourceIdentity>,
    stage: StreamedStage,
}

enum StreamedStage {
    Graph(SkeletonReader),
    /// Waits for the files of weights.
    Files(ModelProto),
    Constants(SmallTensors),
    Ready {
        model: ModelProto,
        planned: Option<PlannedConversion>,
    },
    /// After an error.
    Failed,
}

struct PlannedConversion {
    conversion: Box<Conversion>,
    settings: Settings,
    profiler: Profiler,
    /// Bytes of this run.
    bytes_read: u64,
    bytes_written: u64,
    notes: Vec<String>,
    journal: ConversionJournal,
}

/// Files, sizes and nodes of a conversion that is planned.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamedPlan {
    /// Name of the model file.
    pub model: String,
    /// Name of the journal's file.
    pub journal: String,
    /// The files of weights.
    pub files: Vec<DataFile>,
    /// Bytes that are read, over all passes.
    pub bytes_to_read: u64,
    /// Bytes of the files of weights.
    pub bytes_to_write: u64,
    /// Bytes of memory that the conversion takes at most, beside the graph.
    pub memory: u64,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of nodes that are quantized.
    pub quantized: usize,
    /// Reasons why nodes stay float, each with the number of its nodes, the most frequent first.
    pub float: Vec<(String, usize)>,
    /// Notes for people, a sentence each.
    pub notes: Vec<String>,
}

impl StreamedModel {
    /// Starts to read a model. Its file is named relative to its folder.
    pub fn open(file: SourceIdentity) -> StreamedModel {
        StreamedModel {
            name: file.name.clone(),
            stage: StreamedStage::Graph(SkeletonReader::new(&file.name, file.bytes)),
            sources: vec![file],
        }
    }

    /// The bytes that [`Self::feed`] needs next; `None` when the stage is complete.
    pub fn wanted(&self) -> Option<Stretch> {
        match &self.stage {
            StreamedStage::Graph(reader) => {
                let (offset, length) = reader.next()?;
                Some(Stretch {
                    file: self.name.clone(),
                    offset,
                    length: length as u64,
                })
            }
            StreamedStage::Constants(small) => small.next().cloned(),
            _ => None,
        }
    }

    /// Takes the bytes that [`Self::wanted`] asked for.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match &mut self.stage {
            StreamedStage::Graph(reader) => Ok(reader.feed(bytes)?),
            StreamedStage::Constants(small) => Ok(small.feed(bytes)?),
            _ => Err(OrderError::NotPlanned.into()),
        }
    }

    /// Ends the stage in which the graph is read. Returns the names of the files of weights.
    pub fn end_graph(&mut self) -> Result<Vec<String>, Error> {
        let StreamedStage::Graph(reader) = self.take() else {
            return Err(OrderError::NotPlanned.into());
        };
        let model = reader.finish()?;
        let mut files = onnx::external::files(&model);
        // The skeleton names the model file for the weights in it.
        files.retain(|file| *file != self.name);
        self.stage = StreamedStage::Files(model);
        Ok(files)
    }

    /// Names the files of weights that are there. Fails if one is missing or too short.
    pub fn attach(&mut self, files: Vec<SourceIdentity>) -> Result<(), Error> {
        let StreamedStage::Files(model) = &self.stage else {
            return Err(OrderError::NotPlanned.into());
        };
        let all = self.sources.iter().take(1).chain(&files);
        let sizes: BTreeMap<String, u64> =
            all.map(|file| (file.name.clone(), file.bytes)).collect();
        check_stretches(model, &sizes)?;
        self.sources.truncate(1);
        self.sources.extend(files);
        if let StreamedStage::Files(model) = self.take() {
            self.stage = StreamedStage::Constants(SmallTensors::new(model)?);
        }
        Ok(())
    }

    /// Ends the stage in which small constants are read. Returns a summary of the model.
    pub fn end_constants(&mut self) -> Result<ModelSummary, Error> {
        let StreamedStage::Constants(small) = self.take() else {
            return Err(OrderError::NotPlanned.into());
        };
        let model = small.finish()?;
        let inputs = input_specs(&model);
        let graph = Model::from_proto(model.clone())?;
        let mut summary = ModelSummary::of_graph(&self.name, graph, &inputs);
        let mut sources = self.sources.iter();
        summary.bytes = sources.next().map_or(0, |file| file.bytes);
        let data_files = sources.map(|file| DataFile {
            name: file.name.clone(),
            bytes: file.bytes,
        });
        summary.data_files = data_files.collect();
        self.stage = StreamedStage::Ready {
            model,
            planned: None,
        };
        Ok(summary)
    }

    /// Plans a conversion into files of weights of at most `limit` bytes.
    pub fn plan(&mut self, settings: &Settings, limit: u64) -> Result<StreamedPlan, Error> {
        let StreamedStage::Ready { model, planned } = &mut self.stage else {
            return Err(OrderError::NotPlanned.into());
        };
        *planned = None;
        let output = OutputFiles {
            model: settings.file_name(&self.name),
            limit,
        };
        let mut profiler = Profiler::start(Box::new(SystemClock));
        profiler.begin(RunStep::Preparation);
        let conversion = Conversion::new(model.clone(), settings, output.clone())?;
        profiler.end();
        profiler.begin(RunStep::Quantization(settings.scheme));
        let sources = self.sources.clone();
        let journal = ConversionJournal::new(VERSION, sources, settings, &output, &conversion);
        let plan = StreamedPlan::new(&output.model, &conversion)?;
        *planned = Some(PlannedConversion {
            conversion: Box::new(conversion),
            settings: settings.clone(),
            profiler,
            bytes_read: 0,
            bytes_written: 0,
            notes: Vec::new(),
            journal,
        });
        Ok(plan)
    }

    /// Goes on where the conversion of this journal ended. Before the first step.
    pub fn resume(&mut self, journal: &str) -> Result<(), Error> {
        let planned = self.planned()?;
        let before = ConversionJournal::from_json(journal).map_err(StreamError::from)?;
        Ok(before.resume(&mut planned.journal, &mut planned.conversion)?)
    }

    /// Bytes that were read, and all that are.
    pub fn progress(&mut self) -> Result<(u64, u64), Error> {
        Ok(self.planned()?.conversion.progress())
    }

    /// The reads that come from here on, in order, if the plan stays.
    pub fn reads(&mut self) -> Result<Vec<Stretch>, Error> {
        Ok(self.planned()?.conversion.reads()?)
    }

    /// The next step of the conversion.
    pub fn step(&mut self) -> Result<ConversionStep, Error> {
        let planned = self.planned()?;
        let step = planned.conversion.next_step()?;
        match &step {
            ConversionStep::Restart => {
                planned.journal.restart(&planned.conversion);
                planned.notes.push(RESTARTED.to_owned());
            }
            ConversionStep::Write { bytes, .. } => planned.bytes_written += bytes.len() as u64,
            ConversionStep::Copy { from, again, .. } => {
                planned.bytes_written += from.length;
                if !again {
                    planned.bytes_read += from.length;
                }
            }
            _ => {}
        }
        Ok(step)
    }

    /// The plan after [`ConversionStep::Restart`] or [`Self::resume`].
    pub fn changed_plan(&mut self) -> Result<StreamedPlan, Error> {
        let planned = self.planned()?;
        let model = planned.journal.model().to_owned();
        StreamedPlan::new(&model, &planned.conversion)
    }

    /// Takes the bytes that a step asked for.
    pub fn feed_conversion(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let planned = self.planned()?;
        planned.bytes_read += bytes.len() as u64;
        Ok(planned.conversion.feed(bytes)?)
    }

    /// True if constants are complete that the journal does not have.
    pub fn is_journal_old(&mut self) -> Result<bool, Error> {
        let planned = self.planned()?;
        let finished = planned.conversion.finished().len();
        Ok(finished > planned.journal.finished())
    }

    /// The journal with all constants that are complete. Their bytes must be on the disk.
    pub fn journal(&mut self) -> Result<String, Error> {
        let planned = self.planned()?;
        planned.journal.record(&planned.conversion);
        Ok(planned.journal.to_json())
    }

    /// The model file, which is written last, and what there is to say about the result.
    pub fn finish(&mut self) -> Result<(onnx::Pieces, StreamedOutcome), Error> {
        let StreamedStage::Ready { planned, .. } = &mut self.stage else {
            return Err(OrderError::NotPlanned.into());
        };
        let mut planned = planned.take().ok_or(OrderError::NotPlanned)?;
        let (model, mut result) = StreamedResult::new(
            &self.name,
            planned.journal.model(),
            self.sources.iter().map(|file| file.bytes).sum(),
            [planned.bytes_read, planned.bytes_written],
            *planned.conversion,
        )?;
        result.notes = planned.notes;
        planned.profiler.end();
        planned.profiler.finish();
        let place = environment(rayon::current_num_threads());
        let mut sections = vec![
            Section::new("environment", "Build and machine of the run.", &place),
            Section::new(
                "settings",
                "Settings of the quantization.",
                &planned.settings,
            ),
        ];
        sections.extend(result.sections(planned.settings.scheme));
        let outcome = StreamedOutcome {
            float: result.float().cloned().collect(),
            notes: result.all_notes(),
            report: planned.profiler.report(&sections),
            weights: result.weights,
        };
        Ok((model, outcome))
    }

    fn planned(&mut self) -> Result<&mut PlannedConversion, Error> {
        match &mut self.stage {
            StreamedStage::Ready { planned, .. } => {
                Ok(planned.as_mut().ok_or(OrderError::NotPlanned)?)
            }
            _ => Err(OrderError::NotPlanned.into()),
        }
    }

    fn take(&mut self) -> StreamedStage {
        std::mem::replace(&mut self.stage, StreamedStage::Failed)
    }
}

impl StreamedPlan {
    fn new(model: &str, conversion: &Conversion) -> Result<StreamedPlan, Error> {
        let quantized = conversion.quantized();
        let mut reasons = BTreeMap::<String, usize>::new();
        for reason in quantized
            .nodes
            .iter()
            .filter_map(|node| node.reason.as_ref())
        {
            *reasons.entry(reason.words().to_string()).or_default() += 1;
        }
        let mut float: Vec<(String, usize)> = reasons.into_iter().collect();
        float.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let files: Vec<DataFile> = conversion
            .files()
            .iter()
            .map(|file| DataFile {
                name: file.name.clone(),
                bytes: file.bytes,
            })
            .collect();
        Ok(StreamedPlan {
            model: model.to_owned(),
            journal: ConversionJournal::file_name(model),
            bytes_to_read: conversion.progress().1,
            bytes_to_write: files.iter().map(|file| file.bytes).sum(),
            files,
            memory: conversion.memory()? + SLICES,
            nodes: quantized.nodes.len(),
            quantized: quantized.nodes.iter().filter(|node| node.quantized).count(),
            float,
            notes: quantized.notes.clone(),
        })
    }
}
