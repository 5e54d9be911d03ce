//! Shards of `octet search`: each measures a part of the pass that comes next, and the result of
//! merged passes is that of one run.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use octet::samples::{Encoded, SampleSettings, Skipped};
use octet::search::{BudgetSearch, DividedSamples, Half, Measurements, PendingPass, SearchSample};
use octet::session::{Checksum, PassNeeds};
use octet::shards::{FileIdentity, Shard, ShardSamples, SharedWork, StatsHeader, processor};
use serde_json::json;

use super::observe::{CalibrationShard, bound};
use super::search::{SearchCommand, SearchJob, named};
use super::search_passes::SearchPasses;
use super::shard_samples::{divide, list_identity};
use super::stats_files::{self, model_files};
use super::{Failure, calibration, files};

/// Options of a search in shards.
#[derive(Args)]
pub struct SearchShardOptions {
    /// Measure a shard of the next pass: its number and the count of all
    #[arg(long, value_name = "NUMBER/COUNT", requires = "save_stats")]
    shard: Option<String>,
    /// File of what the shard measured, for `octet merge`
    #[arg(long, value_name = "OUT.stats")]
    save_stats: Option<PathBuf>,
    /// Print the pass that comes next as JSON, and measure nothing
    #[arg(long, conflicts_with = "save_stats")]
    plan: bool,
    /// Merged files of the passes so far, in their order; after the last, the search has its result
    #[arg(long, value_name = "PASS.stats", num_args = 1..)]
    stats: Vec<PathBuf>,
}

impl SearchShardOptions {
    /// True if shards share the search.
    pub fn are_used(&self) -> bool {
        self.plan || self.save_stats.is_some() || !self.stats.is_empty()
    }

    /// The file of this shard.
    pub fn save_stats(&self) -> &Option<PathBuf> {
        &self.save_stats
    }

    fn shard(&self) -> Result<Shard, Failure> {
        let parsed = self.shard.as_deref().map_or(Ok(Shard::WHOLE), str::parse);
        parsed.map_err(|error: octet::shards::ShardError| Failure::usage(error.to_string()))
    }

    /// Fails if the options don't fit those of the search.
    pub fn check(&self, command: &SearchCommand) -> Result<(), Failure> {
        self.shard()?;
        match self.are_used() && command.profile {
            true => Err(Failure::usage(
                "--profile measures times on one machine, but shards must know the same times: leave --profile out, \
                 or search without shards",
            )),
            false => Ok(()),
        }
    }
}

/// Runs the part of the search that the options name.
pub fn run(job: SearchJob<'_>) -> Result<(), Failure> {
    let model = model_files(&job.command.model, &job.session)?;
    let bound = BoundSettings::new(&job)?;
    let passes = SearchPasses::read(&job.command.shards.stats, &model, &bound)?;
    let mut run = ShardRun {
        shard: job.command.shards.shard()?,
        job,
        model,
        bound,
        passes,
    };
    match run.calibrated()? {
        false => run.calibration_pass(),
        true => run.search_pass(),
    }
}

/// The settings that the passes depend on.
pub struct BoundSettings {
    /// Those of the calibration's passes.
    pub calibration: serde_json::Value,
    /// Those of the search's.
    pub search: serde_json::Value,
}

impl BoundSettings {
    fn new(job: &SearchJob<'_>) -> Result<BoundSettings, Failure> {
        let (command, options) = (job.command, &job.options);
        let checksum = |path: &Option<PathBuf>, what: &str| -> Result<Option<String>, Failure> {
            let Some(path) = path else { return Ok(None) };
            let mut checksum = Checksum::new();
            checksum.add(&files::read(path, what)?);
            Ok(Some(checksum.finish()))
        };
        let words = |all: &[octet::search::Bits]| -> Vec<String> {
            all.iter().map(ToString::to_string).collect()
        };
        let calibration = bound(&job.settings, &job.samples.reading)?;
        let mut search = calibration.clone();
        search["search"] = json!({
            "budget": options.budget.to_string(),
            "metric": options.metric,
            "weightBits": words(&options.weights),
            "activationBits": words(&options.activations),
            "exact": options.exact.min(u32::MAX as usize),
            "measure": options.measured,
            "prefer": format!("{:?}", options.prefer),
            "labels": checksum(&command.labels, "labels")?,
            "sensitivities": checksum(&command.sensitivities, "sensitivities")?,
        });
        search["settings"] = serde_json::to_value(&job.settings)?;
        Ok(BoundSettings {
            calibration,
            search,
        })
    }
}

struct ShardRun<'a> {
    job: SearchJob<'a>,
    shard: Shard,
    model: Vec<FileIdentity>,
    bound: BoundSettings,
    passes: SearchPasses,
}

impl ShardRun<'_> {
    /// Enters the calibration's passes. Returns false if another is needed.
    fn calibrated(&mut self) -> Result<bool, Failure> {
        let command = self.job.command;
        let needs = PassNeeds::of(&self.job.settings);
        let session = &mut self.job.session;
        let reading = self.job.samples.reading.clone();
        let calibration = &self.passes.calibration;
        let another = calibration.enter(session, reading, &needs);
        if another.map_err(|error| named(command, error))? {
            return Ok(false);
        }
        let finished = session.finish_calibration(needs.method);
        finished.map_err(|error| named(command, error))?;
        Ok(true)
    }

    /// Prints the pass that comes next: its number, what it holds, and the number of parts that
    /// can be measured by themselves.
    fn print_plan(&self, content: &str, parts: usize) -> Result<(), Failure> {
        let pass = self.passes.count() + 1;
        files::print(&format!(
            "{}\n",
            json!({ "pass": pass, "content": content, "parts": parts })
        ))
    }

    /// The next pass of the calibration: its plan, or this shard.
    fn calibration_pass(mut self) -> Result<(), Failure> {
        let command = self.job.command;
        let failure = |error| named(command, error);
        let samples = self.job.samples.half(Half::Choosing).clone();
        let session = &mut self.job.session;
        let content = session.collected().map_err(failure)?.content().to_string();
        if command.shards.plan {
            return self.print_plan(&content, samples.count());
        }
        let Some(out) = &command.shards.save_stats else {
            return Err(self.unfinished(&content));
        };
        let mut seen = ShardSamples::new(list_identity(None, &samples), self.shard);
        let samples = divide(&mut seen, samples);
        let shard = CalibrationShard {
            complete: &self.passes.calibration,
            model: self.model,
            bound: self.bound.calibration,
            threads: self.job.threads,
            progress: &self.job.progress,
            named: &failure,
        };
        let mut reading = SampleSettings {
            skipped: Vec::new(),
            ..self.job.samples.reading.clone()
        };
        let (header, collected) = shard.observe(session, samples, seen, &mut reading)?;
        stats_files::write(out, "--save-stats", header, collected.bytes())
    }

    /// The next pass of the search: its plan, this shard, or the result.
    fn search_pass(mut self) -> Result<(), Failure> {
        let command = self.job.command;
        let failure = |error| named(command, error);
        let places = self.choosing_places();
        let held = self.job.samples.half(Half::Held).count();
        let needed = DividedSamples::needed(&self.job.options);
        let mut first = Vec::new();
        for &place in places.iter().take(needed) {
            let session = &self.job.session;
            let sample = self.job.samples.half(Half::Choosing).get(session, place)?;
            let decoded = self.job.samples.decode(session, &sample)?;
            first.push(decoded.map_err(|skipped| {
                Failure::input(format!("sample {}: {}", skipped.sample, skipped.reason))
            })?);
        }
        let samples = DividedSamples {
            first,
            count: [places.len(), held],
            labelled: self.job.samples.labelled(),
        };
        let known = std::mem::take(&mut self.passes.measured);
        let begun = self.job.session.begin_divided_search(
            &self.job.settings,
            self.job.options.clone(),
            samples,
            known,
        );
        let mut search = begun.map_err(failure)?;
        self.job.steps(&mut search, None)?;
        let Some(pending) = search.pending().cloned() else {
            return match (command.shards.plan, &command.shards.save_stats) {
                (true, _) => files::print(&format!("{}\n", json!({ "pass": null }))),
                (_, Some(_)) => Err(Failure::usage(
                    "all passes of the search are complete: call it with --stats alone for the result",
                )),
                _ => self.job.finish(&search),
            };
        };
        let content = pending.content();
        if command.shards.plan {
            let parts = match &pending {
                PendingPass::Noises { places, .. } => places.len(),
                PendingPass::Errors { half, .. } => match half {
                    Half::Choosing => places.len(),
                    Half::Held => held,
                },
            };
            return self.print_plan(&content, parts);
        }
        let Some(out) = &command.shards.save_stats else {
            return Err(self.unfinished(&content));
        };
        let (seen, measured, counted, skipped) = match &pending {
            PendingPass::Noises { places, .. } => self.noises(&search, places)?,
            PendingPass::Errors { half, .. } => self.errors(&search, *half, &places)?,
        };
        let header = StatsHeader {
            work: SharedWork::Search,
            octet: env!("CARGO_PKG_VERSION").into(),
            pass: self.passes.count() as u32 + 1,
            content,
            after: self.passes.identities(),
            sources: seen.sources(),
            samples: counted as u64,
            skipped: seen.skipped(&skipped),
            digest: seen.digest(&skipped),
            processors: BTreeSet::from([processor()]),
            model: self.model,
            settings: self.bound.search,
        };
        stats_files::write(out, "--save-stats", header, measured.bytes())
    }

    /// The places in their half of the samples that the calibration did not leave out.
    fn choosing_places(&self) -> Vec<usize> {
        let first = self.passes.calibration.first();
        let skipped = first.map_or(&[][..], |header| &header.skipped);
        let skipped: BTreeSet<u64> = skipped.iter().map(|one| one.place).collect();
        let all = 0..self.job.samples.half(Half::Choosing).count();
        all.filter(|place| !skipped.contains(&(*place as u64)))
            .collect()
    }

    fn unfinished(&self, content: &str) -> Failure {
        let pass = self.passes.count() + 1;
        Failure::usage(format!(
            "the search needs another pass ({content}) before it has a result: measure pass {pass} with --shard and \
             --save-stats, merge its shards, and add the file to --stats"
        ))
    }

    /// This shard of the tensors.
    fn noises(&self, search: &BudgetSearch, places: &[usize]) -> Result<MeasuredShard, Failure> {
        let seen = ShardSamples::new(format!("{} tensors", places.len()), self.shard);
        let mine = places.iter().enumerate();
        let mine: Vec<usize> = mine
            .filter(|(at, _)| self.shard.holds(*at))
            .map(|(_, &place)| place)
            .collect();
        let stop = || octet::session::ProgressMonitor::cancelled(&self.job.progress);
        let measured = search.measure_noises(&mine, &stop);
        let measured = measured.map_err(|error| named(self.job.command, error.into()))?;
        Ok((seen, measured, 0, Vec::new()))
    }

    /// This shard of a half of the samples.
    fn errors(
        &mut self,
        search: &BudgetSearch,
        half: Half,
        choosing: &[usize],
    ) -> Result<MeasuredShard, Failure> {
        let command = self.job.command;
        let failure = |error| named(command, error);
        let mut samples = self.job.samples.half(half).clone();
        if half == Half::Choosing {
            samples.retain(|place| choosing.binary_search(&place).is_ok());
        }
        let mut seen = ShardSamples::new(list_identity(None, &samples), self.shard);
        let samples = divide(&mut seen, samples);
        let runs = self.job.session.error_runs(search).map_err(failure)?;
        let session = &self.job.session;
        let stop = || octet::session::ProgressMonitor::cancelled(&self.job.progress);
        let mut measured = Measurements::default();
        let (mut skipped, mut counted) = (Vec::new(), 0);
        let mut waiting: Vec<(usize, SearchSample)> = Vec::new();
        let batch = calibration::read_ahead(self.job.threads);
        for at in 0..samples.count() {
            let sample: Encoded = samples.get(session, at)?;
            seen.add(&sample);
            match self.job.samples.decode(session, &sample)? {
                Ok(decoded) => waiting.push((self.shard.place(at) as usize, decoded)),
                Err(bad) => skipped.push(bad),
            }
            if waiting.len() == batch || at + 1 == samples.count() {
                let added = runs.add(&waiting, &mut measured, &stop);
                added.map_err(|error| failure(error.into()))?;
                counted += waiting.len();
                waiting.clear();
            }
        }
        Ok((seen, measured, counted, skipped))
    }
}

/// Bookkeeping of a shard, its measurements, its number of samples, and those it left out.
type MeasuredShard = (ShardSamples, Measurements, usize, Vec<Skipped>);
