//! `octet quantize`: a float model and samples in, an 8-bit model and a report out.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use octet::profile::memory;
use octet::quantize::Scheme;
use octet::samples;
use octet::session::{Error, Forecast, ForecastJob, Session};

use super::images::ImageOptions;
use super::progress::Progress;
use super::samples::{BadSampleOptions, Samples, left_out};
use super::settings::SettingsOptions;
use super::{Failure, files, notes, open, ranges, targets, threads};

/// Samples are read ahead by as many as keep all threads busy, and never more bytes than this.
const READ_AHEAD_BYTES: usize = 64 << 20;

/// Activations of so many bytes at once are those of a large model.
const LARGE: u64 = 64 << 20;

fn read_ahead(threads: usize) -> usize {
    match threads {
        1 => 1,
        more => 4 * more,
    }
}

#[derive(Args)]
pub struct Options {
    /// The float model; weights in files beside it are found by themselves
    model: PathBuf,
    /// Samples to calibrate with: .npz (one sample a file, arrays named by input), .npy,
    /// test_data_set_N/input_K.pb, .png, .jpg, or folders of them
    #[arg(long, visible_alias = "calib", aliases = ["data", "input"], value_name = "PATH", num_args = 1..)]
    samples: Vec<PathBuf>,
    /// So many random samples instead, to try things out: the result means nothing for real use
    #[arg(long, value_name = "N", conflicts_with_all = ["samples", "ranges"], value_parser = clap::value_parser!(u64).range(1..=1000))]
    demo: Option<u64>,
    /// Where the quantized model goes [default: beside the model, as MODEL_int8.onnx, or _uint8, _quantized (dynamic),
    /// _weights_int8, _q4 (blocks of 4 bits) or _fp16]
    #[arg(long, value_name = "OUT.onnx")]
    out: Option<PathBuf>,
    /// Where the report goes: time and memory of each step, settings, what was quantized and what not
    #[arg(long, value_name = "REPORT.yaml")]
    report: Option<PathBuf>,
    /// Tell every note, and not only a handful
    #[arg(long)]
    verbose: bool,
    /// Tell as JSON on the output stream what was forecast and what was done
    #[arg(long)]
    json: bool,
    /// Note in the report each layer of each sample as the calibration passes it
    #[arg(long)]
    layer_checkpoints: bool,
    /// A scope of your own around the whole run in the report (can be given again, from the outermost)
    #[arg(long, value_name = "MESSAGE")]
    scope: Vec<String>,
    /// Only tell what it will take: memory, time and the size of the result
    #[arg(long)]
    forecast: bool,
    #[command(flatten)]
    settings: SettingsOptions,
    /// How many samples run at a time [default: one for each processor]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Ranges to use instead of a calibration, as JSON: {"tensor": [min, max]}
    #[arg(long, value_name = "RANGES.json", conflicts_with = "samples")]
    ranges: Option<PathBuf>,
    /// Where the ranges that were found go, to be used again
    #[arg(long, value_name = "RANGES.json")]
    save_ranges: Option<PathBuf>,
    /// Where the float model goes as it was prepared before calibration
    #[arg(long, value_name = "PREPARED.onnx")]
    save_prepared: Option<PathBuf>,
    #[command(flatten)]
    bad: BadSampleOptions,
    #[command(flatten)]
    images: ImageOptions,
}

/// Does it.
pub fn run(options: &Options) -> Result<(), Failure> {
    let settings = options.settings.document()?;
    let given = !options.samples.is_empty() || options.demo.is_some() || options.ranges.is_some();
    if settings.need_samples() != given {
        return Err(Failure::usage(match given {
            true => {
                "--samples, --demo and --ranges are for the scheme static and the method gptq of blocks: leave them out, \
                 these settings need no samples"
            }
            false => {
                "no samples were given: name some with --samples, or choose a scheme that needs none (--scheme dynamic, \
                 weights, blocks or float16)"
            }
        }));
    }
    let image_settings = samples::Settings {
        demo: options.demo.is_some(),
        bad_samples: options.bad.setting(),
        ..options.images.settings()?
    };
    let out = out(options, &settings)?;
    let targets: Vec<_> = targets(options, &out).collect();
    targets::check(&targets, &options.model, &[])?;
    let threads = threads::start(options.threads)?;
    let samples = Samples::of(&options.samples, options.demo)?;

    let mut session = open::open(&options.model)?;
    targets::check(
        &targets,
        &options.model,
        &open::data(&options.model, &session),
    )?;
    session
        .refuse_quantized()
        .map_err(|error| about(options, error))?;
    let (mut image_settings, proposed) =
        options
            .images
            .proposed(&session, settings.images.as_ref(), image_settings)?;
    let pictures = samples.have_pictures();
    let samples = samples.checked(&mut session, &mut image_settings)?;
    let named = |error| about(options, error);
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
            memory::give_back_large_blocks();
        }
        if options.forecast {
            progress.clear();
            return files::print(&match options.json {
                true => serde_json::to_string_pretty(forecast)? + "\n",
                false => told(forecast),
            });
        }
        match &forecast.refusal {
            Some(why) => progress.note(why),
            None => progress.tell(told(forecast).trim_end()),
        }
    } else if options.forecast {
        return Err(Failure::usage(
            "--forecast tells what a calibration takes: give samples with --samples, or --demo",
        ));
    }
    match &options.ranges {
        Some(path) => session.set_ranges(ranges::read(path)?).map_err(named)?,
        None if !given => progress.stage("Preparing"),
        None => {
            progress.stage("Preparing");
            session.equalize(settings.equalizes());
            session
                .begin_calibration(image_settings.clone())
                .map_err(named)?;
            progress.stage("Calibrating");
            if let (None, Some(first)) = (options.demo, samples.each(&session).next()) {
                let first = first?;
                // A bad one is told of when it runs.
                let seen = session.preview(&first, &image_settings).unwrap_or_default();
                let said: Vec<String> = seen
                    .into_iter()
                    .flat_map(|input| input.notes)
                    .map(|note| format!("{}: {note}", first.name))
                    .collect();
                say(&progress, &said, options);
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
            let moments = settings.need_moments();
            while session.begin_extra_pass(method, moments).map_err(named)? {
                progress.stage("Counting");
                pass(&mut session)?;
            }
            let done = session.finish_calibration(method).map_err(named)?;
            let skipped = [image_settings.skipped.as_slice(), &done.skipped].concat();
            if let Some(said) = left_out(&skipped, done.samples) {
                progress.note(&said);
            }
        }
    }
    report_so_far(&session, options)?;
    progress.stage("Quantizing");
    let outcome = session.quantize(&settings);
    progress.clear();
    options.scope.iter().for_each(|_| session.end_scope());
    // Where quantizing fails, the report tells how far it came.
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
    say(&progress, &summary.notes, options);
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
        match summary.scheme {
            Scheme::Static | Scheme::Dynamic => "in integer arithmetic",
            Scheme::Weights | Scheme::Blocks => "with integer weights",
            Scheme::Float16 => "in half precision",
        }
    ))
}

/// Where the quantized model goes. A forecast writes nothing.
fn out(options: &Options, settings: &octet::quantize::Settings) -> Result<PathBuf, Failure> {
    if let Some(out) = &options.out {
        return Ok(out.clone());
    }
    let model = options.model.file_name().unwrap_or_default();
    let name = settings.file_name(&model.to_string_lossy());
    match options.forecast {
        true => Ok(options.model.with_file_name(name)),
        false => targets::beside(&options.model, &name),
    }
}

/// Tells some notes, all of them where that is asked for.
fn say(progress: &Progress, all: &[String], options: &Options) {
    let lines = notes::told(all, options.verbose);
    lines.iter().for_each(|line| progress.note(line));
}

/// What the job will take, if it has samples.
fn forecast(
    session: &mut Session,
    options: &Options,
    settings: &octet::quantize::Settings,
    reading: &samples::Settings,
    samples: &Samples,
    threads: usize,
) -> Result<Option<Forecast>, Failure> {
    let job = ForecastJob {
        samples: samples.count(),
        ahead: read_ahead(threads),
        threads,
        method: settings.method.unwrap_or_default(),
        settings,
    };
    let mut failed = None;
    for index in 0..samples.count() {
        let sample = samples.get(session, index)?;
        match session.forecast(sample, reading, &job, &()) {
            Ok(found) => return Ok(Some(found)),
            // Another sample may tell it; if none does, the first says why.
            Err(error) if options.bad.goes_on(&error) => {
                failed.get_or_insert(error);
            }
            Err(error) => return Err(about(options, error)),
        }
    }
    failed.map_or(Ok(None), |error| Err(about(options, error)))
}

/// A forecast in a line.
fn told(forecast: &Forecast) -> String {
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let refusal = forecast
        .refusal
        .as_ref()
        .map_or(String::new(), |why| format!("; {why}"));
    format!(
        "it will take about {:.0} MB of memory and {:.1} s, and the result will have about {:.1} MB{refusal}\n",
        mb(forecast.peak_bytes),
        forecast.ms / 1e3,
        mb(forecast.output_bytes)
    )
}

fn calibrate(
    session: &mut Session,
    samples: &Samples,
    threads: usize,
    options: &Options,
    progress: &Progress,
) -> Result<(), Failure> {
    let mut waiting = Vec::new();
    let mut bytes = 0;
    // The report is written ever more rarely, but every second: it tells of each sample, of which there may be many.
    let (mut next, mut written) = (1, Instant::now());
    for index in 0..samples.count() {
        let encoded = samples.get(session, index)?;
        bytes += encoded
            .parts
            .iter()
            .map(|(_, content)| content.len())
            .sum::<usize>();
        waiting.push(encoded);
        let last = index + 1 == samples.count();
        if last || waiting.len() >= read_ahead(threads) || bytes >= READ_AHEAD_BYTES {
            session
                .feed(std::mem::take(&mut waiting), progress)
                .map_err(|error| about(options, error))?;
            bytes = 0;
            if index + 1 >= next || written.elapsed() > Duration::from_secs(1) {
                report_so_far(session, options)?;
                (next, written) = (2 * (index + 1), Instant::now());
            }
        }
    }
    Ok(())
}

/// The failure of an error, with the model's path unless it is a sample's own, which names that.
fn about(options: &Options, error: Error) -> Failure {
    match error.kind() {
        "sample" => Failure::from(error),
        _ => Failure::from(error).about(options.model.display()),
    }
}

/// The report as it stands, written after each step: a run that is killed leaves the last one.
fn report_so_far(session: &Session, options: &Options) -> Result<(), Failure> {
    match &options.report {
        Some(path) => files::write(path, &[session.report()], "--report"),
        None => Ok(()),
    }
}

fn targets<'a>(
    options: &'a Options,
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
