//! `octet search`: the bits of each tensor under a budget.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use octet::profile::Section;
use octet::profile::yaml;
use octet::samples::{self, Skipped};
use octet::search::{
    Amount, Bits, Budget, Metric, Prefer, SearchOptions, SearchResult, SearchSample, Sensitivities,
};
use octet::session::{Error, Session};
use octet_host::time::Instant;

use super::images::ImageOptions;
use super::progress::Progress;
use super::samples::{BadSampleOptions, Samples, left_out};
use super::settings::SettingsOptions;
use super::texts::TextOptions;
use super::{Failure, files, labels, messages, open, targets, threads};

#[derive(Args)]
pub struct SearchCommand {
    /// The float model
    model: PathBuf,
    /// Samples, as for `octet quantize`: one half calibrates and chooses, the other verifies
    #[arg(long, visible_alias = "calib", aliases = ["data", "input"], value_name = "PATH", num_args = 1.., required = true)]
    samples: Vec<PathBuf>,
    /// Samples that verify, in place of a half of --samples
    #[arg(long, value_name = "PATH", num_args = 1..)]
    verify: Vec<PathBuf>,
    /// Limit that the result must keep: accuracy=0.5%, kl=0.01, sqnr=30, bytes=4MB, bytes=30%, time=60%,
    /// time=12ms or wide=8 (tensors with more than 8 bits)
    #[arg(long, value_name = "BUDGET")]
    budget: String,
    /// Class labels: lines of `SAMPLE,CLASS` with the sample's name or path and the class number
    #[arg(long, value_name = "LABELS.csv")]
    labels: Option<PathBuf>,
    /// The measure of the error [default: by the budget, the labels and the outputs]
    #[arg(long, value_enum, value_name = "METRIC")]
    metric: Option<MetricName>,
    /// The bits that a weight may get
    #[arg(long, value_name = "BITS", default_value = "4,8,16,float")]
    weight_bits: String,
    /// The bits that an activation may get
    #[arg(long, value_name = "BITS", default_value = "8,16,float")]
    activation_bits: String,
    /// Cost that counts among choices with equal noise
    #[arg(long, value_enum, value_name = "COST", default_value = "both")]
    prefer: PreferName,
    /// Number of tensors that are measured one by one; if there are more, a sketch finds the worst
    #[arg(long, value_name = "N", default_value = "200")]
    exact: String,
    /// Number of samples on which sensitivities are measured
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    measure: u32,
    /// Number of runs of the sketch for each of these samples
    #[arg(long, value_name = "N", default_value = "32", value_parser = clap::value_parser!(u32).range(2..=4096))]
    runs: u32,
    /// Measure the times of layers on this machine; without it, times come from a model of costs
    #[arg(long)]
    profile: bool,
    /// Draws the halves of --samples anew
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,
    /// Use the sensitivities of this file in place of a measurement
    #[arg(long, value_name = "FILE.json")]
    sensitivities: Option<PathBuf>,
    /// Save the sensitivities to this file; it can be edited and read again
    #[arg(long, value_name = "FILE.json")]
    save_sensitivities: Option<PathBuf>,
    /// Save the settings of the chosen point, for `octet quantize --config`
    #[arg(long, value_name = "SETTINGS.yaml")]
    save_settings: Option<PathBuf>,
    /// File of the quantized model of the chosen point
    #[arg(long, value_name = "OUT.onnx")]
    out: Option<PathBuf>,
    /// File of the report: the curve, the choice, the verdict
    #[arg(long, value_name = "REPORT.yaml")]
    report: Option<PathBuf>,
    /// Print the whole result as JSON
    #[arg(long)]
    json: bool,
    /// Print when each stage begins
    #[arg(long)]
    pub verbose: bool,
    /// Number of threads [default: one per processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    #[command(flatten)]
    settings: SettingsOptions,
    #[command(flatten)]
    bad: BadSampleOptions,
    #[command(flatten)]
    images: ImageOptions,
    #[command(flatten)]
    texts: TextOptions,
}

#[derive(Clone, Copy, ValueEnum)]
enum MetricName {
    Labels,
    Agreement,
    Kl,
    Sqnr,
}

#[derive(Clone, Copy, ValueEnum)]
enum PreferName {
    Both,
    Size,
    Time,
}

impl SearchCommand {
    fn options(&self) -> Result<SearchOptions, Failure> {
        let budget: Budget = self
            .budget
            .parse()
            .map_err(|error| Failure::usage(format!("--budget: {error}")))?;
        if matches!(budget, Budget::Time(Amount::Absolute(_))) && !self.profile {
            return Err(Failure::usage(
                "--budget: milliseconds need measured times; add --profile, or give a share such as time=60%",
            ));
        }
        let list = |text: &str, option: &str| -> Result<Vec<Bits>, Failure> {
            let all = text.split(',').map(str::parse::<Bits>);
            all.collect::<Result<_, _>>()
                .map_err(|error| Failure::usage(format!("{option}: {error}")))
        };
        let exact = match self.exact.as_str() {
            "all" => usize::MAX,
            number => number.parse().map_err(|_| {
                Failure::usage(format!(
                    "--exact: `{number}` is not a number of tensors or `all`"
                ))
            })?,
        };
        let sensitivities = match &self.sensitivities {
            Some(path) => {
                let text =
                    String::from_utf8_lossy(&files::read(path, "sensitivities")?).into_owned();
                let named = |error| Failure::input(format!("{}: {error}", path.display()));
                Some(Sensitivities::read(&text).map_err(named)?)
            }
            None => None,
        };
        Ok(SearchOptions {
            metric: self.metric.map(|metric| match metric {
                MetricName::Labels => Metric::Labels,
                MetricName::Agreement => Metric::Agreement,
                MetricName::Kl => Metric::Kl,
                MetricName::Sqnr => Metric::Sqnr,
            }),
            weights: list(&self.weight_bits, "--weight-bits")?,
            activations: list(&self.activation_bits, "--activation-bits")?,
            runs: self.runs as usize,
            exact,
            measured: self.measure as usize,
            prefer: match self.prefer {
                PreferName::Both => Prefer::Both,
                PreferName::Size => Prefer::Size,
                PreferName::Time => Prefer::Time,
            },
            sensitivities,
            ..SearchOptions::new(budget)
        })
    }
}

/// Runs the command.
pub fn run(command: &SearchCommand) -> Result<(), Failure> {
    let options = command.options()?;
    let settings = command.settings.document()?;
    let outputs = [
        (&command.out, "--out"),
        (&command.report, "--report"),
        (&command.save_settings, "--save-settings"),
        (&command.save_sensitivities, "--save-sensitivities"),
    ];
    let outputs: Vec<(&Path, &str)> = outputs
        .into_iter()
        .filter_map(|(path, option)| Some((path.as_deref()?, option)))
        .collect();
    targets::check(&outputs, &command.model, &[])?;
    let threads = threads::start(command.threads)?;
    let mut session = open::open(&command.model)?;
    targets::check(
        &outputs,
        &command.model,
        &open::data(&command.model, &session),
    )?;
    let named = |error: Error| Failure::from(error).about(command.model.display());
    session.refuse_quantized().map_err(named)?;
    let labels = match &command.labels {
        Some(path) => labels::read(path)?,
        None => HashMap::new(),
    };
    let reading = samples::SampleSettings {
        bad_samples: command.bad.setting(),
        ..command.images.settings()?
    };
    let (mut reading, proposed) =
        command
            .images
            .proposed(&session, settings.images.as_ref(), reading)?;
    let began = Instant::now();
    let mut read = |session: &mut Session, paths: &[PathBuf]| -> Result<Samples, Failure> {
        let samples = Samples::new(paths, None)?;
        let samples = samples.tokenized(session, &command.model, &command.texts)?;
        samples.usable(session, &mut reading)
    };
    let all = read(&mut session, &command.samples)?;
    let verifying = match command.verify.is_empty() {
        true => None,
        false => Some(read(&mut session, &command.verify)?),
    };
    let progress = Progress::new(all.count());
    if let Some(proposed) = proposed.filter(|_| all.have_pictures()) {
        progress.note(&proposed);
    }
    let (choosing, held) = match &verifying {
        Some(_) => ((0..all.count()).collect(), Vec::new()),
        None => octet::search::halves(all.count(), command.seed),
    };
    if let (None, Some(note)) = (&verifying, left_out(&reading.skipped, all.count())) {
        progress.note(&note);
    }
    progress.stage("Calibrating");
    session.equalize(settings.equalizes());
    session.begin_calibration(reading.clone()).map_err(named)?;
    let method = settings.method.unwrap_or_default();
    let feed = |session: &mut Session| -> Result<(), Failure> {
        for part in choosing.chunks(4 * threads) {
            let part = part.iter().map(|&index| all.get(session, index));
            let part = part.collect::<Result<Vec<_>, Failure>>()?;
            session.feed(part, &progress).map_err(named)?;
        }
        Ok(())
    };
    feed(&mut session)?;
    while session
        .begin_extra_pass(method, settings.needs_gram_matrices())
        .map_err(named)?
    {
        progress.stage("Extra pass");
        feed(&mut session)?;
    }
    session.finish_calibration(method).map_err(named)?;
    let mut decode = |session: &Session, samples: &Samples, places: &[usize]| {
        let mut decoded = Vec::new();
        for &index in places {
            let sample = samples.get(session, index)?;
            match session.decode(&sample, &reading) {
                Ok(inputs) => decoded.push(SearchSample {
                    label: labels::of(&labels, &sample.name),
                    name: sample.name,
                    inputs,
                }),
                Err(error) if command.bad.continues_after(&error) => {
                    let reason = error.to_string();
                    reading.skipped.push(Skipped {
                        sample: sample.name,
                        reason,
                    });
                }
                Err(error) => return Err(Failure::from(error)),
            }
        }
        Ok(decoded)
    };
    let choosing = decode(&session, &all, &choosing)?;
    let held = match &verifying {
        Some(samples) => decode(&session, samples, &(0..samples.count()).collect::<Vec<_>>())?,
        None => decode(&session, &all, &held)?,
    };
    let profiled = choosing.first().filter(|_| command.profile);
    let profiled = profiled.map(|sample| sample.inputs.clone());
    let mut search = session
        .begin_search(&settings, options, choosing, held)
        .map_err(named)?;
    let mut stage = "";
    loop {
        let now = search.progress();
        if now.stage != stage {
            stage = now.stage;
            let line = format!("{stage}, after {:.1} s", began.elapsed().as_secs_f64());
            match command.verbose {
                true => messages::line(&line),
                false => progress.tell(&line),
            }
        }
        let more = session.search_step(&mut search, profiled.as_deref(), &progress);
        if !more.map_err(named)? {
            break;
        }
    }
    progress.clear();
    let name = session.summary().name.clone();
    if let (Some(path), Some(file)) = (&command.save_sensitivities, search.sensitivities(&name)) {
        files::write(path, &[file.text()?], "--save-sensitivities")?;
    }
    let Some((result, _)) = search.result() else {
        return Err(Failure::unfinished(
            "the search ended without a result; start it again",
        ));
    };
    if let Some(path) = &command.save_settings {
        files::write(path, &[document(result)?], "--save-settings")?;
    }
    if let Some(out) = &command.out {
        let quantized = session.quantize(&result.settings).map_err(named)?;
        files::write(out, quantized.model.as_slice(), "--out")?;
    }
    if let Some(path) = &command.report {
        let section = Section::new("search", "The search under a budget.", result);
        files::write(path, &[yaml::sections(&[section])], "--report")?;
    }
    files::print(&match command.json {
        true => serde_json::to_string_pretty(result)? + "\n",
        false => table(result)?,
    })
}

/// The settings as a document. JSON is valid YAML.
fn document(result: &SearchResult) -> Result<String, Failure> {
    Ok(format!(
        "# Settings of `octet search --budget {}`, for `octet quantize --config`.\n{}\n",
        result.budget,
        serde_json::to_string_pretty(&result.settings)?
    ))
}

/// The largest number of points that the table shows.
const SHOWN: usize = 16;

fn table(result: &SearchResult) -> Result<String, Failure> {
    let mut out = String::new();
    let [choosing, held] = result.samples;
    writeln!(out, "{choosing} samples chose, {held} verified")?;
    writeln!(
        out,
        "{:>2} {:>12} {:>7} {:>7} {:>10} {:>5} {:>5} {:>5} {:>6} {:>10}",
        "", "bytes", "size", "time", "predicted", "4", "8", "16", "float", "measured"
    )?;
    let last = result.points.len().saturating_sub(1);
    let stride = result.points.len().div_ceil(SHOWN).max(1);
    for (index, point) in result.points.iter().enumerate() {
        let chosen = index == result.point;
        if !(chosen || index == last || index % stride == 0) {
            continue;
        }
        let measured = point
            .chosen_sqnr
            .map_or(String::new(), |sqnr| format!("{sqnr:.1} dB"));
        let [four, eight, sixteen, float] = point.counts;
        writeln!(
            out,
            "{:>2} {:>12.0} {:>5.1} % {:>5.1} % {:>7.1} dB {four:>5} {eight:>5} {sixteen:>5} {float:>6} {measured:>10}",
            if chosen { "->" } else { "" },
            point.bytes,
            100.0 * point.share_of_bytes,
            100.0 * point.share_of_time,
            point.predicted_sqnr,
        )?;
    }
    let source = match result.times {
        octet::search::TimeSource::Profile => "times are measured on this machine",
        octet::search::TimeSource::Model => {
            "times come from a model of costs, not from a measurement"
        }
    };
    writeln!(out, "{source}")?;
    for (name, chosen) in [
        ("chosen", &result.chosen),
        ("without a search", &result.without_search),
    ] {
        writeln!(
            out,
            "{name}: {} bytes, {} tensors with 16 bits, {:.1} dB on the held-out samples",
            chosen.bytes, chosen.wide, chosen.held_sqnr
        )?;
    }
    writeln!(out, "{}", result.answer)?;
    Ok(out)
}
