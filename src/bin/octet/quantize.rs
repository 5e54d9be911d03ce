//! `octet quantize`: reads a float model and samples, writes a quantized model and a report.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use octet::quantize::{Scheme, Settings};

use super::calibration::failure_of;
use super::images::ImageOptions;
use super::making::{MadeModel, check_data, make, reading};
use super::progress::Progress;
use super::ranges::RangeOptions;
use super::samples::BadSampleOptions;
use super::settings::SettingsOptions;
use super::stream::{self, StreamOptions, StreamedRun};
use super::stream_report::StreamReport;
use super::texts::TextOptions;
use super::transformers_js::WebFolder;
use super::{Failure, files, notes, targets, threads};

/// The end of the help.
pub const AFTERWARDS: &str = "\
Before: `octet inspect MODEL --snippet` prints a script that writes samples of this model.
Afterwards: `octet compare` judges the result, and `octet inspect RESULT --snippet onnxruntime`
(onnxruntime-web, transformers.js) prints code that runs it.";

#[derive(Args)]
pub struct QuantizeOptions {
    /// The float model; external data files beside it are found automatically. With --for, the
    /// folder of the model
    pub model: PathBuf,
    /// Write a folder that this program loads as it is, to --out: all of its forms of the models in
    /// a folder, its settings, a card with sizes and errors
    #[arg(long = "for", value_name = "PROGRAM", value_enum, requires = "out",
        conflicts_with_all = ["demo", "ranges", "save_ranges", "save_prepared", "forecast", "report", "scheme", "stream"])]
    pub target: Option<FolderTarget>,
    /// Samples for the calibration: .npz (one sample per file, arrays named by input), .npy,
    /// test_data_set_N/input_K.pb, pictures (.png, .jpg, .webp, .bmp, .gif), .wav, texts (.txt,
    /// .jsonl, .csv), tables (.csv), or folders of them
    #[arg(long, visible_alias = "calib", aliases = ["data", "input"], value_name = "PATH", num_args = 1..)]
    pub samples: Vec<PathBuf>,
    /// Use N random samples instead, to try Octet out; the result is useless for real data
    #[arg(long, value_name = "N", conflicts_with_all = ["samples", "ranges"], value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub demo: Option<u64>,
    /// File of the quantized model [default: beside the model, as MODEL_int8.onnx, or _uint8,
    /// _quantized (dynamic), _weights_int8, _q4 (4-bit blocks) or _fp16]
    #[arg(long, value_name = "OUT.onnx")]
    pub out: Option<PathBuf>,
    /// File of the report: time and memory of each step, settings, quantized and float nodes
    #[arg(long, value_name = "REPORT.yaml")]
    pub report: Option<PathBuf>,
    /// Print every note instead of a summary
    #[arg(long)]
    pub verbose: bool,
    /// Print the forecast and the result as JSON on the output stream
    #[arg(long)]
    pub json: bool,
    /// Add a checkpoint to the report for each layer of each calibration sample
    #[arg(long)]
    pub layer_checkpoints: bool,
    /// Wrap the run into a scope of this name in the report (repeatable, outermost first)
    #[arg(long, value_name = "MESSAGE")]
    pub scope: Vec<String>,
    /// Only estimate memory, time and the size of the result
    #[arg(long)]
    pub forecast: bool,
    #[command(flatten)]
    pub settings: SettingsOptions,
    /// Number of samples that run in parallel [default: one per processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub ranges: RangeOptions,
    /// Use these merged statistics of `octet observe` instead of a calibration: the file of each pass,
    /// in order
    #[arg(long, value_name = "PASS.stats", num_args = 1.., conflicts_with_all = ["samples", "ranges", "demo"])]
    pub stats: Vec<PathBuf>,
    /// Keep the layers that have learned in this file (`finetune`, `rounding: closed-form`). A run
    /// that was stopped goes on from it, with the same result
    #[arg(long, value_name = "RUN.journal")]
    pub journal: Option<PathBuf>,
    /// Save the float model as prepared for calibration to this file
    #[arg(long, value_name = "PREPARED.onnx")]
    pub save_prepared: Option<PathBuf>,
    #[command(flatten)]
    pub stream: StreamOptions,
    #[command(flatten)]
    pub bad: BadSampleOptions,
    #[command(flatten)]
    pub images: ImageOptions,
    #[command(flatten)]
    pub texts: TextOptions,
}

/// A program for which a whole folder is written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FolderTarget {
    #[value(name = "transformers.js")]
    TransformersJs,
}

impl QuantizeOptions {
    /// True if the run goes on after this error, without the sample.
    pub fn skips(&self, error: &octet::session::Error) -> bool {
        self.bad.continues_after(error)
    }
}

/// Runs the command.
pub fn run(options: &QuantizeOptions) -> Result<(), Failure> {
    let mut settings = options.settings.document()?;
    if let (Some(FolderTarget::TransformersJs), Some(out)) = (options.target, &options.out) {
        threads::start(options.threads)?;
        let folder = WebFolder {
            source: &options.model,
            out,
            settings: &settings,
            limit: options.stream.limit(),
            samples: &options.samples,
            texts: &options.texts,
            report: streamed_report(options),
        };
        return folder.write();
    }
    let has_data = check_data(options, &settings)?;
    if options.journal.is_some() && !settings.tunes() {
        return Err(Failure::usage(
            "--journal keeps weights that learn, and these settings learn none: add --finetune or --rounding closed-form, or leave \
             it out",
        ));
    }
    let ranges = options.ranges.read(&mut settings)?;
    let image_settings = reading(options)?;
    let out = out(options, &settings)?;
    let targets: Vec<_> = targets(options, &out).collect();
    targets::check(&targets, &options.model, &[])?;
    let threads = threads::start(options.threads)?;
    if has_data && !settings.needs_samples() {
        // The samples show values beyond half precision, in memory only.
        if options.stream.is_asked() {
            return Err(Failure::usage(
                "a model that is converted piece by piece does not run: leave out --samples, or --stream and --data-size",
            ));
        }
    } else if options.stream.applies(&options.model, &settings) {
        return run_streamed(options, &out, &settings);
    }
    let Some(made) = make(
        options,
        (&settings, ranges),
        image_settings,
        &targets,
        threads,
    )?
    else {
        return Ok(());
    };
    let MadeModel {
        mut session,
        outcome,
        forecast,
        progress,
    } = made;
    let named = |error| failure_of(options, error);
    options.ranges.write(&mut session, &outcome, &progress)?;
    if let Some(path) = &options.save_prepared {
        let prepared = session.prepared().map_err(named)?;
        files::write(path, prepared.as_slice(), "--save-prepared")?;
    }
    files::write(&out, outcome.model.as_slice(), "--out")?;
    let summary = &outcome.summary;
    summary
        .advice
        .iter()
        .for_each(|advice| progress.note(advice));
    print_notes(&progress, &summary.notes, options);
    if options.json {
        let done = serde_json::json!({ "forecast": forecast, "summary": summary });
        return files::print(&(serde_json::to_string_pretty(&done)? + "\n"));
    }
    let (before, after) = (summary.bytes_before, summary.bytes_after);
    let share = 100.0 * after as f64 / before.max(1) as f64;
    let done = summary.nodes.iter().filter(|node| node.quantized).count();
    files::print(&format!(
        "{}: {after} bytes, {share:.0} % of {before}; {done} of {} operators {}\n",
        out.display(),
        summary.nodes.len(),
        operators_are(summary.scheme)
    ))
}

/// Words for the operators that a scheme quantized.
pub fn operators_are(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Static | Scheme::Dynamic => "in integer arithmetic",
        Scheme::Weights | Scheme::Blocks => "with integer weights",
        Scheme::Float16 => "in half precision",
    }
}

/// Converts a model piece by piece.
fn run_streamed(options: &QuantizeOptions, out: &Path, settings: &Settings) -> Result<(), Failure> {
    stream::refuse(&[
        (options.save_prepared.is_some(), "--save-prepared"),
        (options.layer_checkpoints, "--layer-checkpoints"),
    ])?;
    let run = StreamedRun {
        model: &options.model,
        out,
        settings,
        limit: options.stream.limit(),
    };
    let report = streamed_report(options);
    match options.forecast {
        true => files::print(&report.forecast(&run)?),
        false => report.convert_and_print(&run),
    }
}

fn streamed_report(options: &QuantizeOptions) -> StreamReport<'_> {
    StreamReport {
        report: options.report.as_deref(),
        json: options.json,
        verbose: options.verbose,
        scopes: &options.scope,
    }
}

/// The path of the quantized model. A forecast writes no file.
fn out(options: &QuantizeOptions, settings: &Settings) -> Result<PathBuf, Failure> {
    if let Some(out) = &options.out {
        return Ok(out.clone());
    }
    let model = options.model.file_name().unwrap_or_default();
    let name = settings.file_name(&model.to_string_lossy());
    match options.forecast {
        true => Ok(options.model.with_file_name(name)),
        false => targets::default_path(&options.model, &name),
    }
}

/// Prints notes: a summary, or all of them with `--verbose`.
pub fn print_notes(progress: &Progress, all: &[String], options: &QuantizeOptions) {
    let lines = notes::summary_lines(all, options.verbose);
    lines.iter().for_each(|line| progress.note(line));
}

fn targets<'a>(
    options: &'a QuantizeOptions,
    out: &'a Path,
) -> impl Iterator<Item = (&'a Path, &'static str)> {
    let report = options.report.as_deref().map(|path| (path, "--report"));
    let ranges = options
        .ranges
        .save_ranges
        .as_deref()
        .map(|path| (path, "--save-ranges"));
    let prepared = options
        .save_prepared
        .as_deref()
        .map(|path| (path, "--save-prepared"));
    std::iter::once((out, "--out"))
        .chain(report)
        .chain(ranges)
        .chain(prepared)
}
