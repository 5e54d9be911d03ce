//! `octet observe`: runs a shard of the samples and writes what it saw, for `octet merge`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use octet::quantize::Settings;
use octet::samples::{self, SampleSettings};
use octet::session::PassNeeds;
use octet::shards::{SharedWork, StatsHeader};

use super::calibration::feed;
use super::images::ImageOptions;
use super::progress::Progress;
use super::samples::{BadSampleOptions, Samples, left_out};
use super::settings::SettingsOptions;
use super::shard_samples::ShardOptions;
use super::stats_files::{self, CompletePasses, model_files, processor};
use super::texts::TextOptions;
use super::{Failure, files, open, targets, threads};

#[derive(Args)]
pub struct ObserveOptions {
    /// The float model
    model: PathBuf,
    /// All samples of the calibration, as for `octet quantize`; with --source those of this shard
    #[arg(long, visible_alias = "calib", aliases = ["data", "input"], value_name = "PATH", num_args = 1..)]
    samples: Vec<PathBuf>,
    /// Use N random samples instead, to try Octet out
    #[arg(long, value_name = "N", conflicts_with = "samples", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    demo: Option<u64>,
    #[command(flatten)]
    shard: ShardOptions,
    /// Merged files of the passes before this one, in their order. Some settings need several passes
    #[arg(long, value_name = "PASS.stats", num_args = 1..)]
    after: Vec<PathBuf>,
    /// Print the pass that comes next as JSON, and observe nothing
    #[arg(long)]
    plan: bool,
    /// File of the statistics
    #[arg(long, value_name = "OUT.stats", required_unless_present = "plan")]
    out: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingsOptions,
    /// Number of samples that run in parallel [default: one per processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    #[command(flatten)]
    bad: BadSampleOptions,
    #[command(flatten)]
    images: ImageOptions,
    #[command(flatten)]
    texts: TextOptions,
}

/// Runs the command.
pub fn run(options: &ObserveOptions) -> Result<(), Failure> {
    let settings = options.settings.document()?;
    if !settings.needs_samples() {
        return Err(Failure::usage(
            "these settings need no samples: call octet quantize without statistics",
        ));
    }
    let shard = options.shard.shard()?;
    let target: Vec<_> = options
        .out
        .iter()
        .map(|out| (out.as_path(), "--out"))
        .collect();
    targets::check(&target, &options.model, &[])?;
    let threads = threads::start(options.threads)?;
    let mut session = open::open(&options.model)?;
    let named = |error: octet::session::Error| Failure::from(error).about(options.model.display());
    session.refuse_quantized().map_err(named)?;
    let reading = SampleSettings {
        demo: options.demo.is_some(),
        bad_samples: options.bad.setting(),
        ..options.images.settings()?
    };
    let (mut reading, _) = options
        .images
        .proposed(&session, settings.images.as_ref(), reading)?;
    let model = model_files(&options.model, &session)?;
    let complete = CompletePasses::read(&options.after, &model)?;
    let bound = bound_settings(&settings, &reading)?;
    complete.require_settings(&bound)?;
    let needs = PassNeeds::of(&settings);
    let another = complete.enter(&mut session, reading.clone(), &needs);
    let another = another.map_err(named)?;
    let pass = complete.passes.len() + 1;
    let content = session.collected().map_err(named)?.content().to_string();
    if options.plan {
        let plan = match another {
            true => serde_json::json!({ "pass": pass, "content": content }),
            false => serde_json::json!({ "pass": null }),
        };
        return files::print(&format!("{plan}\n"));
    }
    if !another {
        return Err(Failure::usage(format!(
            "these settings need {} over the samples, and all are complete: call octet quantize --stats with the files \
             of --after",
            passes(pass - 1)
        )));
    }

    let samples = Samples::new(&options.samples, options.demo)?;
    let samples = samples.tokenized(&session, &options.model, &options.texts)?;
    if samples.count() == 0 {
        return Err(Failure::usage(
            "no samples were given: name some with --samples",
        ));
    }
    let mut seen = options.shard.begin(options.demo, &samples)?;
    let samples = seen.divide(samples);
    let samples = match complete.passes.first() {
        Some((first, _)) => seen.without_skipped(samples, first),
        None => samples,
    };
    // Without samples, the shard is empty.
    let samples = match samples.count() {
        0 => samples,
        _ => match samples.usable(&mut session, &mut reading) {
            Ok(samples) => samples,
            Err(failure) if reading.bad_samples == samples::BadSamples::Stop => {
                return Err(failure);
            }
            // All of this shard's samples are skipped; other shards may have better ones.
            Err(_) => Samples::Demo(Vec::new()),
        },
    };
    let progress = Progress::new(samples.count());
    progress.stage(&format!("Shard {shard}"));
    feed(
        &mut session,
        &samples,
        threads,
        &progress,
        |error| match error.kind() {
            octet::session::ErrorKind::Sample => Failure::from(error),
            _ => named(error),
        },
        |sample| seen.add(sample),
        |_, _| Ok(()),
    )?;
    let counted = session.samples_done();
    let collected = session.collected().map_err(named)?;
    let skipped = [reading.skipped.as_slice(), &session.samples_skipped()].concat();
    progress.clear();
    if let Some(texts) = left_out(&skipped, counted) {
        progress.note(&texts);
    }
    let header = StatsHeader {
        work: SharedWork::Calibration,
        octet: env!("CARGO_PKG_VERSION").into(),
        model,
        settings: bound,
        pass: pass as u32,
        content,
        after: complete.identities.clone(),
        sources: seen.sources(),
        samples: counted as u64,
        skipped: seen.skipped(&skipped),
        digest: seen.digest(&skipped),
        processors: BTreeSet::from([processor()]),
    };
    match &options.out {
        Some(out) => stats_files::write(out, "--out", header, collected.bytes()),
        None => Ok(()),
    }
}

fn passes(count: usize) -> String {
    match count {
        1 => "one pass".into(),
        more => format!("{more} passes"),
    }
}

/// The settings that the statistics depend on.
fn bound_settings(
    settings: &Settings,
    reading: &SampleSettings,
) -> Result<serde_json::Value, Failure> {
    Ok(serde_json::json!({
        "image": serde_json::to_value(&reading.image)?,
        "demo": reading.demo,
        "equalize": settings.equalizes(),
    }))
}
