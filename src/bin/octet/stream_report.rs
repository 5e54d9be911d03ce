//! The report of a conversion piece by piece: the same document as that of a run in memory, without
//! what needs a run of the model.

use std::path::Path;

use octet::profile::{Profiler, Section, SystemClock, environment};
use octet::quantize::{NodeChoice, QuantizedTensor, Scheme, Settings};
use octet::session::QuantizationSummary;
use serde::Serialize;

use super::progress::Progress;
use super::stream::{self, StreamForecast, StreamedResult, StreamedRun, WrittenFile};
use super::{Failure, files, notes};

/// Options for what is printed and written of a conversion.
pub struct StreamReport<'a> {
    pub report: Option<&'a Path>,
    pub json: bool,
    pub verbose: bool,
    pub scopes: &'a [String],
}

#[derive(Serialize)]
struct ModelSection<'a> {
    name: &'a str,
    bytes: u64,
}

#[derive(Serialize)]
struct ConversionSection<'a> {
    bytes_read: u64,
    bytes_written: u64,
    files: &'a [WrittenFile],
}

#[derive(Serialize)]
struct StreamedQuantizationSection<'a> {
    float_bytes: u64,
    quantized_bytes: u64,
    ratio: f64,
    nodes_quantized: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes_float16: Option<usize>,
    nodes_float: usize,
    float: Vec<&'a NodeChoice>,
    tensors: &'a [QuantizedTensor],
}

impl StreamReport<'_> {
    /// Converts a model; writes the report also where it fails.
    pub fn convert(&self, run: &StreamedRun<'_>) -> Result<StreamedResult, Failure> {
        let mut profiler = self.profiler();
        let outcome = run.convert(&mut profiler);
        self.scopes.iter().for_each(|_| profiler.end_scope());
        profiler.finish();
        self.write(&profiler, run.settings, None, outcome.as_ref().ok())?;
        outcome
    }

    /// Converts a model, and prints notes and the result.
    pub fn convert_and_print(&self, run: &StreamedRun<'_>) -> Result<(), Failure> {
        let done = self.convert(run)?;
        let all = [&*done.notes, &*done.quantized.notes].concat();
        let progress = Progress::new(0);
        let lines = notes::summary_lines(&all, self.verbose);
        lines.iter().for_each(|line| progress.note(line));
        match self.json {
            true => files::print(&json(run.settings, done)?),
            false => files::print(&stream::line(run.out, run.settings.scheme, &done)),
        }
    }

    /// Forecasts a conversion; returns what is printed.
    pub fn forecast(&self, run: &StreamedRun<'_>) -> Result<String, Failure> {
        let mut profiler = self.profiler();
        let forecast = run.forecast(&mut profiler)?;
        self.scopes.iter().for_each(|_| profiler.end_scope());
        profiler.finish();
        self.write(&profiler, run.settings, Some(&forecast), None)?;
        match self.json {
            true => Ok(serde_json::to_string_pretty(&forecast)? + "\n"),
            false => Ok(forecast_text(&forecast)),
        }
    }

    fn profiler(&self) -> Profiler {
        let mut profiler = Profiler::start(Box::new(SystemClock));
        self.scopes
            .iter()
            .for_each(|scope| profiler.begin_scope(scope));
        profiler
    }

    fn write(
        &self,
        profiler: &Profiler,
        settings: &Settings,
        forecast: Option<&StreamForecast>,
        done: Option<&StreamedResult>,
    ) -> Result<(), Failure> {
        let Some(path) = self.report else {
            return Ok(());
        };
        let place = environment(rayon::current_num_threads());
        let mut sections = vec![
            Section::new("environment", "Build and machine of the run.", &place),
            Section::new("settings", "Settings of the quantization.", settings),
        ];
        if let Some(forecast) = forecast {
            let comment = "Forecast of time, memory and files.";
            sections.push(Section::new("forecast", comment, forecast));
        }
        if let Some(done) = done {
            sections.extend(result_sections(settings.scheme, done));
        }
        files::write(path, &[profiler.report(&sections)], "--report")
    }
}

fn result_sections(scheme: Scheme, done: &StreamedResult) -> Vec<Section> {
    let (nodes, after) = (&done.quantized.nodes, done.bytes_after());
    let float: Vec<_> = nodes.iter().filter(|node| !node.quantized).collect();
    let count = nodes.len() - float.len();
    let halves = scheme == Scheme::Float16;
    let quantization = StreamedQuantizationSection {
        float_bytes: done.bytes_before,
        quantized_bytes: after,
        ratio: after as f64 / done.bytes_before.max(1) as f64,
        nodes_quantized: if halves { 0 } else { count },
        nodes_float16: halves.then_some(count),
        nodes_float: float.len(),
        float,
        tensors: &done.quantized.tensors,
    };
    let model = ModelSection {
        name: &done.model,
        bytes: done.bytes_before,
    };
    let conversion = ConversionSection {
        bytes_read: done.bytes_read,
        bytes_written: done.bytes_written,
        files: &done.files,
    };
    let warnings: Vec<&String> = done.notes.iter().chain(&done.quantized.notes).collect();
    vec![
        Section::new("model", "The model, with its files of weights.", &model),
        Section::new(
            "conversion",
            "Bytes read and written by this run, and the files of the result.",
            &conversion,
        ),
        Section::new(
            "quantization",
            "Result of the quantization. Nodes under `float` stay float, each with its reason. min and max\n\
             are the range that a tensor can represent, of several scales that of the largest.",
            &quantization,
        ),
        Section::new(
            "warnings",
            "Warnings and notes to read before the result is used.",
            &warnings,
        ),
    ]
}

/// A result as `--json` prints it.
fn json(settings: &Settings, done: StreamedResult) -> Result<String, Failure> {
    let files = done.files.clone();
    let summary = QuantizationSummary {
        scheme: settings.scheme,
        file_name: settings.file_name(&done.model),
        bytes_before: done.bytes_before as usize,
        bytes_after: done.bytes_after() as usize,
        nodes: done.quantized.nodes,
        tensors: done.quantized.tensors,
        notes: [done.notes, done.quantized.notes].concat(),
        guarded: 0,
        advice: Vec::new(),
    };
    let value = serde_json::json!({ "forecast": null, "summary": summary, "files": files });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

fn forecast_text(forecast: &StreamForecast) -> String {
    let line = notes::expected(forecast.peak_bytes, forecast.ms, forecast.output_bytes);
    let files = forecast.files.iter();
    let files = files.map(|file| format!("  {}: {} bytes\n", file.name, file.bytes));
    line + "\n" + &files.collect::<String>()
}
