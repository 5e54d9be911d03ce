//! The report of a conversion piece by piece: the same document as that of a run in memory, without
//! what needs a run of the model.

use std::path::Path;

use octet::profile::{Profiler, Section, SystemClock, environment};
use octet::quantize::Settings;
use octet::session::{QuantizationSummary, StreamedResult};

use super::stream::{self, StreamForecast, StreamedRun};
use super::{Failure, files, messages, notes};

/// Options for what is printed and written of a conversion.
pub struct StreamReport<'a> {
    pub report: Option<&'a Path>,
    pub json: bool,
    pub verbose: bool,
    pub scopes: &'a [String],
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
        let all = done.all_notes();
        let lines = notes::summary_lines(&all, self.verbose);
        lines.iter().for_each(|line| messages::note(line));
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
            sections.extend(done.sections(settings.scheme));
        }
        files::write(path, &[profiler.report(&sections)], "--report")
    }
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
