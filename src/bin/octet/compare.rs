//! `octet compare`: the error that quantization causes in every output and layer.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use octet::compare::{Comparison, Decision, Verdict, slower};
use octet::profile::Repeats;
use octet::runtime::Processor;
use octet::samples::{self, Skipped};
use octet::session::{Emulation, Runner, Session, compare_sample};
use octet::tensor::Tensor;

use super::comparison_text::text;
use super::images::ImageOptions;
use super::labels;
use super::progress::Progress;
use super::reports::ReportFiles;
use super::samples::{BadSampleOptions, Samples, left_out};
use super::shard_samples::ShardOptions;
use super::texts::TextOptions;
use super::{Failure, files, open, shard_comparison, threads};

#[derive(Args)]
pub struct CompareOptions {
    /// The float model
    pub float: PathBuf,
    /// The quantized model made from it, with QuantizeLinear and DequantizeLinear pairs
    pub quantized: PathBuf,
    /// Samples to compare on, as for `octet quantize`; preferably not those of the calibration
    #[arg(long, visible_alias = "data", aliases = ["calib", "input"], value_name = "PATH", num_args = 1.., required_unless_present_any = ["demo", "stats"])]
    samples: Vec<PathBuf>,
    /// Use N random samples instead; the result means little for real use
    #[arg(long, value_name = "N", conflicts_with = "samples", value_parser = clap::value_parser!(u64).range(1..=1000))]
    demo: Option<u64>,
    /// Class labels, to measure accuracy: lines of `SAMPLE,CLASS` with the sample's name or path
    /// and the class number
    #[arg(long, value_name = "LABELS.csv")]
    pub labels: Option<PathBuf>,
    /// Number of layers to list, the worst first
    #[arg(long, value_name = "N", default_value = "15")]
    top: usize,
    /// Also time both models and show where the quantized one is slower
    #[arg(long)]
    profile: bool,
    /// Also show the error of each output with only the weights quantized, and with only the
    /// activations
    #[arg(long)]
    pub split: bool,
    /// Also show the answers of native ONNX Runtime on this processor, which Octet emulates
    #[arg(long, value_name = "PROCESSOR", conflicts_with_all = ["stats", "save_stats"])]
    processor: Option<EmulatedProcessor>,
    /// End with the exit code 4 if the verdict is worse than this
    #[arg(long, value_name = "VERDICT")]
    require: Option<Requirement>,
    /// Print the whole result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub shard: ShardOptions,
    /// Write the sums of this shard to a file for `octet merge`, and print no result
    #[arg(long, value_name = "OUT.stats", conflicts_with_all = ["profile", "stats", "require"])]
    pub save_stats: Option<PathBuf>,
    /// Print the result of these merged sums instead of running samples
    #[arg(long, value_name = "ALL.stats", conflicts_with_all = ["samples", "demo", "profile"])]
    stats: Option<PathBuf>,
    #[command(flatten)]
    files: ReportFiles,
    /// Number of threads [default: one per processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    #[command(flatten)]
    bad: BadSampleOptions,
    #[command(flatten)]
    images: ImageOptions,
    #[command(flatten)]
    texts: TextOptions,
}

/// The worst verdict that is accepted.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Requirement {
    /// The quantized model is as good as required
    Ship,
    /// It is not known to be worse than acceptable
    Look,
}

/// A processor with other sums.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum EmulatedProcessor {
    /// AMD before Zen 4 and most Intel before 2021: sums of two products are cut off at 16 bits
    #[value(name = "x86-without-vnni")]
    X86WithoutVnni,
}

/// Runs the command.
pub fn run(options: &CompareOptions) -> Result<(), Failure> {
    options.files.check()?;
    shard_comparison::check(options)?;
    threads::start(options.threads)?;
    let settings = samples::SampleSettings {
        demo: options.demo.is_some(),
        bad_samples: options.bad.setting(),
        ..options.images.settings()?
    };
    let progress = Progress::reading(&options.float);
    let mut float = open::open(&options.float)?;
    let (mut settings, proposed) = options.images.proposed(&float, None, settings)?;
    let quantized = open::open(&options.quantized)?;
    let named =
        |error: octet::session::Error| Failure::from(error).about(options.quantized.display());
    let labels = match &options.labels {
        Some(path) => labels::read(path)?,
        None => HashMap::new(),
    };
    let runner = quantized.runner().map_err(named)?;
    let mut emulation = match options.processor {
        Some(EmulatedProcessor::X86WithoutVnni) => {
            let emulation = quantized.emulation(Processor::X86WithoutVnni);
            Some(emulation.map_err(named)?)
        }
        None => None,
    };
    let bound = shard_comparison::Bound::new(options, &float, &quantized, &settings)?;
    let mut comparing = float.begin_comparison(&runner).map_err(named)?;
    if options.split && !comparing.split() {
        progress.note("the error can't be split: no weights follow a DequantizeLinear");
    }
    if let Some(path) = &options.stats {
        bound.replace(path, &mut comparing)?;
        return print(options, &mut float, comparing.finish());
    }
    let samples = Samples::new(&options.samples, options.demo)?;
    let samples = samples.tokenized(&float, &options.float, &options.texts)?;
    if samples.count() == 0 {
        return Err(Failure::usage(
            "no samples were given: name some with --samples",
        ));
    }
    if let Some(proposed) = proposed.filter(|_| samples.have_pictures()) {
        progress.note(&proposed);
    }
    let mut shard = options.shard.begin(options.demo, &samples)?;
    let samples = options.shard.divide(&mut shard, samples);
    let samples = match samples.count() {
        0 => samples,
        _ => samples.usable(&mut float, &mut settings)?,
    };
    let already = settings.skipped.len();
    let mut first = None;
    let mut failed = None;
    let mut used = 0;
    progress.set_length(samples.count() as u64);
    progress.stage("Comparing");
    for (done, sample) in samples.each(&float).enumerate() {
        progress.set_position(done as u64);
        let sample = sample?;
        shard.add(&sample);
        let inputs = match float.decode(&sample, &settings) {
            Ok(inputs) => inputs,
            Err(error) if options.bad.continues_after(&error) => {
                settings.skipped.push(Skipped {
                    sample: sample.name,
                    reason: error.to_string(),
                });
                failed.get_or_insert(error);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let label = labels::of(&labels, &sample.name);
        used += usize::from(label.is_some());
        let answers = compare_sample(&mut comparing, &inputs, label, &());
        let answers = answers.and_then(|answers| match &mut emulation {
            Some(emulation) => emulation.feed(&inputs, &answers, &()),
            None => Ok(()),
        });
        answers.map_err(|error| Failure::from(error).about(format!("sample `{}`", sample.name)))?;
        first.get_or_insert(inputs);
    }
    progress.clear();
    if let (None, Some(error)) = (&first, failed) {
        return Err(error.into());
    }
    let compared = samples.count() + already - settings.skipped.len();
    if let Some(note) = left_out(&settings.skipped, compared) {
        progress.note(&note);
    }
    if let Some(out) = &options.save_stats {
        return bound.save(out, &comparing, &shard, &settings.skipped);
    }
    if !labels.is_empty() && used == 0 {
        return Err(Failure::input(format!(
            "none of the {} labels belongs to one of these samples: write the sample's name or path before the comma",
            labels.len()
        )));
    }
    let mut comparison = comparing.finish();
    let emulated = emulation.map(Emulation::finish);
    comparison.warnings.extend(emulated.unwrap_or_default());
    if let Some(inputs) = first.filter(|_| options.profile || options.files.need_profile()) {
        comparison
            .warnings
            .extend(slower_warning(&mut float, &runner, &inputs)?);
    }
    print(options, &mut float, comparison)
}

/// Adds the result to the report, and prints it.
fn print(
    options: &CompareOptions,
    float: &mut Session,
    comparison: Comparison,
) -> Result<(), Failure> {
    float.finish_comparison(&comparison);
    options.files.write(float)?;
    files::print(&match options.json {
        true => serde_json::to_string_pretty(&comparison)? + "\n",
        false => text(&comparison, options.top)?,
    })?;
    match options.require {
        Some(required) => check(comparison.verdict.as_ref(), required),
        None => Ok(()),
    }
}

/// Fails if the verdict is worse than required.
fn check(verdict: Option<&Verdict>, required: Requirement) -> Result<(), Failure> {
    let Some(verdict) = verdict else {
        return Err(Failure::requirement(
            "no output is a computed float, so there is no verdict: remove --require",
        ));
    };
    let worst = match required {
        Requirement::Ship => Decision::Ship,
        Requirement::Look => Decision::Look,
    };
    if verdict.decision <= worst {
        return Ok(());
    }
    let next = verdict.next.first().map(|step| format!("; next: {step}"));
    Err(Failure::requirement(format!(
        "the verdict on `{}` is: {}, worse than --require allows. {}{}",
        verdict.output,
        verdict.decision,
        verdict.reason,
        next.unwrap_or_default()
    )))
}

/// A warning with the slower layers, if the quantized model is slower.
fn slower_warning(
    float: &mut Session,
    quantized: &Runner,
    inputs: &[Tensor],
) -> Result<Option<octet::compare::Warning>, Failure> {
    let repeats = Repeats::default();
    let a = float.profile(inputs, repeats, None, &())?.table;
    let b = float
        .profile_of("int8", quantized, inputs, repeats, &())?
        .table;
    let both: Vec<_> = a
        .layers
        .iter()
        .filter_map(|layer| {
            let other = b.layer(&layer.name)?;
            Some((layer.name.clone(), layer.ms.median, other.ms.median))
        })
        .collect();
    Ok(slower(&both, (a.total.median, b.total.median)))
}
