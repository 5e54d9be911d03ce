//! `octet quantize`: reads a float model and samples, writes a quantized model and a report.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use octet::allocator;
use octet::quantize::{Scheme, Settings};
use octet::samples;
use octet::session::Session;

use super::calibration::{calibrate, failure_of, forecast, report_so_far};
use super::images::ImageOptions;
use super::progress::Progress;
use super::samples::{BadSampleOptions, Samples, left_out};
use super::settings::SettingsOptions;
use super::stats_files;
use super::stream::{self, StreamOptions, StreamedRun};
use super::stream_report::StreamReport;
use super::texts::TextOptions;
use super::transformers_js::WebFolder;
use super::tuning::tune;
use super::{Failure, files, notes, open, ranges, targets, threads};

/// Live activations of this many bytes mark a large model.
const LARGE: u64 = 64 << 20;

#[derive(Args)]
pub struct QuantizeOptions {
    /// The float model; external data files beside it are found automatically. With --for, the
    /// folder of the model
    pub model: PathBuf,
    /// Write a folder that this program loads as it is, to --out: all of its forms of the models in
    /// a folder, its settings, a card with sizes and errors
    #[arg(long = "for", value_name = "PROGRAM", value_enum, requires = "out",
        conflicts_with_all = ["demo", "ranges", "save_ranges", "save_prepared", "forecast", "report", "scheme", "stream"])]
    target: Option<FolderTarget>,
    /// Samples for the calibration: .npz (one sample per file, arrays named by input), .npy,
    /// test_data_set_N/input_K.pb, .png, .jpg, texts (.txt, .jsonl, .csv), or folders of them
    #[arg(long, visible_alias = "calib", aliases = ["data", "input"], value_name = "PATH", num_args = 1..)]
    samples: Vec<PathBuf>,
    /// Use N random samples instead, to try Octet out; the result is useless for real data
    #[arg(long, value_name = "N", conflicts_with_all = ["samples", "ranges"], value_parser = clap::value_parser!(u64).range(1..=1000))]
    demo: Option<u64>,
    /// File of the quantized model [default: beside the model, as MODEL_int8.onnx, or _uint8,
    /// _quantized (dynamic), _weights_int8, _q4 (4-bit blocks) or _fp16]
    #[arg(long, value_name = "OUT.onnx")]
    out: Option<PathBuf>,
    /// File of the report: time and memory of each step, settings, quantized and float nodes
    #[arg(long, value_name = "REPORT.yaml")]
    pub report: Option<PathBuf>,
    /// Print every note instead of a summary
    #[arg(long)]
    verbose: bool,
    /// Print the forecast and the result as JSON on the output stream
    #[arg(long)]
    json: bool,
    /// Add a checkpoint to the report for each layer of each calibration sample
    #[arg(long)]
    layer_checkpoints: bool,
    /// Wrap the run into a scope of this name in the report (repeatable, outermost first)
    #[arg(long, value_name = "MESSAGE")]
    scope: Vec<String>,
    /// Only estimate memory, time and the size of the result
    #[arg(long)]
    forecast: bool,
    #[command(flatten)]
    settings: SettingsOptions,
    /// Number of samples that run in parallel [default: one per processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Use these ranges instead of a calibration, as JSON: {"tensor": [min, max]}
    #[arg(long, value_name = "RANGES.json", conflicts_with = "samples")]
    ranges: Option<PathBuf>,
    /// Use these merged statistics of `octet observe` instead of a calibration: the file of each pass,
    /// in order
    #[arg(long, value_name = "PASS.stats", num_args = 1.., conflicts_with_all = ["samples", "ranges", "demo"])]
    pub stats: Vec<PathBuf>,
    /// Save the calibrated ranges to this file, for --ranges
    #[arg(long, value_name = "RANGES.json")]
    save_ranges: Option<PathBuf>,
    /// Save the float model as prepared for calibration to this file
    #[arg(long, value_name = "PREPARED.onnx")]
    save_prepared: Option<PathBuf>,
    #[command(flatten)]
    stream: StreamOptions,
    #[command(flatten)]
    bad: BadSampleOptions,
    #[command(flatten)]
    images: ImageOptions,
    #[command(flatten)]
    texts: TextOptions,
}

/// A program for which a whole folder is written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FolderTarget {
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
    let settings = options.settings.document()?;
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
    let observed = options.ranges.is_some() || !options.stats.is_empty();
    let has_data = !options.samples.is_empty() || options.demo.is_some() || observed;
    let fits = match has_data {
        true => settings.takes_samples(),
        false => !settings.needs_samples(),
    };
    if !fits {
        return Err(Failure::usage(match has_data {
            true => {
                "--samples, --demo, --ranges and --stats are for the scheme static, half precision, and the methods gptq and awq of \
                 blocks: leave them out, these settings use no samples"
            }
            false => {
                "no samples were given: name some with --samples, or choose a scheme that needs none (--scheme dynamic, \
                 weights, blocks or float16)"
            }
        }));
    }
    if observed && settings.tunes() {
        return Err(Failure::usage(
            "`finetune` and `rounding: closed-form` learn from samples, and --ranges and --stats hold none: give --samples in \
             their place",
        ));
    }
    let image_settings = samples::SampleSettings {
        demo: options.demo.is_some(),
        bad_samples: options.bad.setting(),
        ..options.images.settings()?
    };
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
    let samples = Samples::new(&options.samples, options.demo)?;

    let mut session = open::open(&options.model)?;
    targets::check(
        &targets,
        &options.model,
        &open::data(&options.model, &session),
    )?;
    session
        .refuse_quantized()
        .map_err(|error| failure_of(options, error))?;
    let (mut image_settings, proposed) =
        options
            .images
            .proposed(&session, settings.images.as_ref(), image_settings)?;
    let pictures = samples.have_pictures();
    let samples = samples.tokenized(&session, &options.model, &options.texts)?;
    let samples = samples.usable(&mut session, &mut image_settings)?;
    let named = |error| failure_of(options, error);
    session.checkpoint_layers(options.layer_checkpoints);
    options
        .scope
        .iter()
        .for_each(|message| session.begin_scope(message));
    let progress = Progress::new(samples.count());
    if let Some(proposed) = proposed.filter(|_| pictures) {
        progress.note(&proposed);
    }
    let forecast = forecast(
        &mut session,
        options,
        &settings,
        &image_settings,
        &samples,
        threads,
    )?;
    if let Some(forecast) = &forecast {
        if forecast.live_bytes > LARGE {
            allocator::give_back_large_blocks();
        }
        if options.forecast {
            progress.clear();
            return files::print(&match options.json {
                true => serde_json::to_string_pretty(forecast)? + "\n",
                false => notes::forecast_line(forecast),
            });
        }
        match &forecast.refusal {
            Some(why) => progress.note(why),
            None => progress.tell(notes::forecast_line(forecast).trim_end()),
        }
    } else if options.forecast {
        return Err(Failure::usage(
            "--forecast needs samples: give some with --samples, or use --demo",
        ));
    }
    match &options.ranges {
        Some(path) => session.set_ranges(ranges::read(path)?).map_err(named)?,
        None if !has_data => progress.stage("Preparing"),
        None if !options.stats.is_empty() => {
            progress.stage("Preparing");
            stats_files::calibrate(&mut session, options, &settings, &progress)?;
        }
        None => {
            progress.stage("Preparing");
            session.equalize(settings.equalizes());
            session
                .begin_calibration(image_settings.clone())
                .map_err(named)?;
            progress.stage("Calibrating");
            if let (None, Some(first)) = (options.demo, samples.each(&session).next()) {
                let first = first?;
                // An unusable sample is reported when it runs.
                let seen = session.preview(&first, &image_settings).unwrap_or_default();
                let texts: Vec<String> = seen
                    .into_iter()
                    .flat_map(|input| input.notes)
                    .map(|note| format!("{}: {note}", first.name))
                    .collect();
                print_notes(&progress, &texts, options);
            }
            if options.demo.is_some() {
                progress.note("the samples are random: the result is for trying things out only");
            }
            let method = settings.method.unwrap_or_default();
            if let Some(note) = method.note() {
                progress.note(&note);
            }
            let pass = |session: &mut Session| -> Result<(), Failure> {
                let done = calibrate(session, &samples, threads, options, &progress);
                if done.is_err() {
                    report_so_far(session, options)?;
                }
                done
            };
            pass(&mut session)?;
            let moments = settings.needs_gram_matrices();
            while session.begin_extra_pass(method, moments).map_err(named)? {
                progress.stage("Extra pass");
                pass(&mut session)?;
            }
            let done = session.finish_calibration(method).map_err(named)?;
            let skipped = [image_settings.skipped.as_slice(), &done.skipped].concat();
            if let Some(texts) = left_out(&skipped, done.samples) {
                progress.note(&texts);
            }
        }
    }
    report_so_far(&session, options)?;
    if settings.tunes() {
        progress.stage("Fine-tuning");
        let reading = (&samples, &image_settings);
        tune(&mut session, &settings, reading, options, &progress)?;
        report_so_far(&session, options)?;
    }
    progress.stage("Quantizing");
    let outcome = session.quantize(&settings);
    progress.clear();
    options.scope.iter().for_each(|_| session.end_scope());
    // If quantizing fails, the report shows how far it came.
    report_so_far(&session, options)?;
    let outcome = outcome.map_err(named)?;

    if let Some(path) = &options.save_ranges {
        files::write(path, &[ranges::text(&outcome.ranges)?], "--save-ranges")?;
    }
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
fn print_notes(progress: &Progress, all: &[String], options: &QuantizeOptions) {
    let lines = notes::summary_lines(all, options.verbose);
    lines.iter().for_each(|line| progress.note(line));
}

fn targets<'a>(
    options: &'a QuantizeOptions,
    out: &'a Path,
) -> impl Iterator<Item = (&'a Path, &'static str)> {
    let report = options.report.as_deref().map(|path| (path, "--report"));
    let ranges = options
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
