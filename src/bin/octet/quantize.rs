//! `octet quantize`: a float model and samples in, an 8-bit model and a report out.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use octet::samples::{Encoded, SampleRef, group};
use octet::session::{Error, Session};

use super::images::{ImageOptions, one_of};
use super::progress::Progress;
use super::settings::SettingsOptions;
use super::{Failure, files, open, ranges};

/// Samples are read ahead by as many as keep all threads busy, and never more bytes than this.
const READ_AHEAD_BYTES: usize = 64 << 20;
const READ_AHEAD_SAMPLES: usize = 4;

#[derive(Args)]
pub struct Options {
    /// The float model; weights in files beside it are found by themselves
    model: PathBuf,
    /// Samples to calibrate with: .npz (one sample a file, arrays named by input), .npy,
    /// test_data_set_N/input_K.pb, .png, .jpg, or folders of them
    #[arg(long, value_name = "PATH", num_args = 1.., required_unless_present = "ranges")]
    calib: Vec<PathBuf>,
    /// Where the quantized model goes
    #[arg(long, value_name = "OUT.onnx")]
    out: PathBuf,
    /// Where the report goes: time and memory of each step, settings, what was quantized and what not
    #[arg(long, value_name = "REPORT.yaml")]
    report: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingsOptions,
    /// When activations get their scales: static (from the samples)
    #[arg(long, default_value = "static")]
    scheme: String,
    /// How many samples run at a time [default: one for each processor]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Ranges to use instead of a calibration, as JSON: {"tensor": [min, max]}
    #[arg(long, value_name = "RANGES.json", conflicts_with = "calib")]
    ranges: Option<PathBuf>,
    /// Where the ranges that were found go, to be used again
    #[arg(long, value_name = "RANGES.json")]
    save_ranges: Option<PathBuf>,
    /// Where the float model goes as it was prepared before calibration
    #[arg(long, value_name = "PREPARED.onnx")]
    save_prepared: Option<PathBuf>,
    #[command(flatten)]
    images: ImageOptions,
}

/// Does it.
pub fn run(options: &Options) -> Result<(), Failure> {
    planned(
        "--scheme",
        &options.scheme,
        &["static"],
        &["dynamic", "weights"],
    )?;
    let settings = options.settings.document()?;
    let image_settings = options.images.settings()?;
    for (target, option) in targets(options) {
        files::check_target(target, option)?;
        if same_file(target, &options.model) {
            let shown = target.display();
            return Err(Failure(format!(
                "{option} {shown} is the model itself, which would be lost: choose another name"
            )));
        }
    }
    let threads = start_threads(options.threads)?;
    let samples = match &options.ranges {
        Some(_) => vec![],
        None => group(&files::expand(&options.calib)?)?,
    };

    let mut session = open::open(&options.model)?;
    let named = |error| about(options, error);
    let before = session.card().bytes;
    let progress = Progress::new(samples.len());
    match &options.ranges {
        Some(path) => session.set_ranges(ranges::read(path)?).map_err(named)?,
        None => {
            progress.stage("Preparing");
            session
                .begin_calibration(image_settings.clone())
                .map_err(named)?;
            progress.stage("Calibrating");
            if let Some(first) = samples.first() {
                for seen in session.preview(&encoded(first)?, &image_settings)? {
                    seen.notes
                        .iter()
                        .for_each(|note| progress.note(&format!("{}: {note}", first.name)));
                }
            }
            calibrate(&mut session, &samples, threads, options, &progress)?;
            session.finish_calibration(settings.method).map_err(named)?;
        }
    }
    report_so_far(&session, options)?;
    progress.stage("Quantizing");
    let outcome = session.quantize(&settings);
    progress.clear();
    // Where quantizing fails, the report tells how far it came.
    report_so_far(&session, options)?;
    let outcome = outcome.map_err(named)?;

    if let (Some(path), Some(found)) = (&options.save_ranges, session.ranges()) {
        files::write(path, ranges::text(&found)?.as_bytes(), "--save-ranges")?;
    }
    if let Some(path) = &options.save_prepared {
        files::write(path, &session.prepared().map_err(named)?, "--save-prepared")?;
    }
    files::write(&options.out, &outcome.model, "--out")?;
    let after = outcome.model.len();
    let share = 100.0 * after as f64 / before.max(1) as f64;
    println!(
        "{}: {after} bytes, {share:.0} % of {before}",
        options.out.display()
    );
    Ok(())
}

fn calibrate(
    session: &mut Session,
    samples: &[SampleRef],
    threads: usize,
    options: &Options,
    progress: &Progress,
) -> Result<(), Failure> {
    let mut waiting = Vec::new();
    let mut bytes = 0;
    for (index, sample) in samples.iter().enumerate() {
        let encoded = encoded(sample)?;
        bytes += encoded
            .parts
            .iter()
            .map(|(_, content)| content.len())
            .sum::<usize>();
        waiting.push(encoded);
        let last = index + 1 == samples.len();
        if last || waiting.len() >= threads * READ_AHEAD_SAMPLES || bytes >= READ_AHEAD_BYTES {
            session
                .feed(&waiting, progress)
                .map_err(|error| about(options, error))?;
            waiting.clear();
            bytes = 0;
            report_so_far(session, options)?;
        }
    }
    Ok(())
}

/// The failure of an error, with the model's path unless it is a sample's own, which names that.
fn about(options: &Options, error: Error) -> Failure {
    match error.kind() {
        "sample" => Failure(error.to_string()),
        _ => Failure(format!("{}: {error}", options.model.display())),
    }
}

fn encoded(sample: &SampleRef) -> Result<Encoded, Failure> {
    let read = |path: &String| {
        Ok((
            path.clone(),
            Bytes::from(files::read(Path::new(path), "sample")?),
        ))
    };
    let parts = sample
        .parts
        .iter()
        .map(read)
        .collect::<Result<_, Failure>>()?;
    Ok(Encoded {
        name: sample.name.clone(),
        parts,
    })
}

/// The report as it stands, written after each step: a run that is killed leaves the last one.
fn report_so_far(session: &Session, options: &Options) -> Result<(), Failure> {
    match &options.report {
        Some(path) => files::write(path, session.report().as_bytes(), "--report"),
        None => Ok(()),
    }
}

fn targets(options: &Options) -> impl Iterator<Item = (&Path, &'static str)> {
    let report = options.report.as_deref().map(|path| (path, "--report"));
    let ranges = options
        .save_ranges
        .as_deref()
        .map(|path| (path, "--save-ranges"));
    let prepared = options
        .save_prepared
        .as_deref()
        .map(|path| (path, "--save-prepared"));
    std::iter::once((options.out.as_path(), "--out"))
        .chain(report)
        .chain(ranges)
        .chain(prepared)
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Refuses a value that is not there: as planned, or as unknown.
fn planned(option: &str, given: &str, known: &[&str], planned: &[&str]) -> Result<(), Failure> {
    if known.contains(&given) {
        Ok(())
    } else if planned.contains(&given) {
        Err(Failure(format!(
            "{option} {given} is not there yet: choose {}",
            known.join(", ")
        )))
    } else {
        Err(one_of(option, given, known))
    }
}

fn start_threads(wanted: Option<usize>) -> Result<usize, Failure> {
    let threads = match wanted {
        Some(0) => {
            return Err(Failure(
                "--threads 0 can't run anything: give 1 or more".into(),
            ));
        }
        Some(n) => n,
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .map_err(|error| {
            Failure(format!(
                "can't start {threads} threads: {error}; give fewer with --threads"
            ))
        })?;
    Ok(threads)
}
