//! `octet observe`: runs a shard of the samples and writes what it saw, for `octet merge`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use octet::quantize::Settings;
use octet::samples::{self, SampleSettings};
use octet::session::{PassNeeds, Session};
use octet::shards::{
    CompletePasses, FileIdentity, ShardSamples, SharedWork, StatsHeader, bound_settings, processor,
};
use octet::stats::PassStatistics;

use super::calibration::feed;
use super::images::ImageOptions;
use super::progress::Progress;
use super::samples::{BadSampleOptions, Samples, left_out};
use super::settings::SettingsOptions;
use super::shard_samples::ShardOptions;
use super::stats_files::{self, complete_passes, model_files, require_settings};
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
    options.shard.shard()?;
    let target: Vec<_> = options
        .out
        .iter()
        .map(|out| (out.as_path(), "--out"))
        .collect();
    targets::check(&target, &options.model, &[])?;
    let threads = threads::start(options.threads)?;
    let progress = Progress::reading(&options.model);
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
    let complete = complete_passes(&options.after, &model)?;
    let bound = bound(&settings, &reading)?;
    require_settings(&complete, &bound)?;
    let needs = PassNeeds::of(&settings);
    let another = complete.enter(&mut session, reading.clone(), &needs);
    let another = another.map_err(named)?;
    let pass = complete.count() + 1;
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
    let samples = options.shard.divide(&mut seen, samples);
    let shard = CalibrationShard {
        complete: &complete,
        model,
        bound,
        threads,
        progress: &progress,
        named: &named,
    };
    let (header, collected) = shard.observe(&mut session, samples, seen, &mut reading)?;
    match &options.out {
        Some(out) => stats_files::write(out, "--out", header, collected.bytes()),
        None => Ok(()),
    }
}

/// A shard of a calibration's next pass.
pub struct CalibrationShard<'a> {
    /// The passes before.
    pub complete: &'a CompletePasses,
    /// The model's files.
    pub model: Vec<FileIdentity>,
    /// The settings that the statistics depend on.
    pub bound: serde_json::Value,
    pub threads: usize,
    pub progress: &'a Progress,
    /// The failure of an error that is not about a sample.
    pub named: &'a dyn Fn(octet::session::Error) -> Failure,
}

impl CalibrationShard<'_> {
    /// Observes the samples of the shard `seen`, in a session that has entered the passes before.
    pub fn observe(
        self,
        session: &mut Session,
        mut samples: Samples,
        mut seen: ShardSamples,
        reading: &mut SampleSettings,
    ) -> Result<(StatsHeader, PassStatistics), Failure> {
        if let Some(first) = self.complete.first() {
            let skipped = seen.skipped_before(first);
            samples.retain(|place| skipped.binary_search(&place).is_err());
        }
        // Without samples, the shard is empty.
        let samples = match samples.count() {
            0 => samples,
            _ => match samples.usable(session, reading) {
                Ok(samples) => samples,
                Err(failure) if reading.bad_samples == samples::BadSamples::Stop => {
                    return Err(failure);
                }
                // All of this shard's samples are skipped; other shards may have better ones.
                Err(_) => Samples::Demo(Vec::new()),
            },
        };
        let content = session.collected().map_err(self.named)?.content();
        let progress = self.progress;
        progress.set_length(samples.count() as u64);
        progress.stage(&format!("Shard {}", seen.shard()));
        feed(
            session,
            &samples,
            self.threads,
            progress,
            |error| match error.kind() {
                octet::session::ErrorKind::Sample => Failure::from(error),
                _ => (self.named)(error),
            },
            |sample| seen.add(sample),
            |_, _| Ok(()),
        )?;
        let counted = session.samples_done();
        let collected = session.collected().map_err(self.named)?;
        let skipped = [reading.skipped.as_slice(), &session.samples_skipped()].concat();
        progress.clear();
        if let Some(texts) = left_out(&skipped, counted) {
            progress.note(&texts);
        }
        let header = StatsHeader {
            work: SharedWork::Calibration,
            octet: env!("CARGO_PKG_VERSION").into(),
            model: self.model,
            settings: self.bound,
            pass: self.complete.count() as u32 + 1,
            content: content.to_string(),
            after: self.complete.identities().to_vec(),
            sources: seen.sources(),
            samples: counted as u64,
            skipped: seen.skipped(&skipped),
            digest: seen.digest(&skipped),
            processors: BTreeSet::from([processor()]),
        };
        Ok((header, collected))
    }
}

fn passes(count: usize) -> String {
    match count {
        1 => "one pass".into(),
        more => format!("{more} passes"),
    }
}

/// The settings that the statistics depend on.
pub fn bound(settings: &Settings, reading: &SampleSettings) -> Result<serde_json::Value, Failure> {
    bound_settings(settings, reading).map_err(|error| Failure::unfinished(error.to_string()))
}
