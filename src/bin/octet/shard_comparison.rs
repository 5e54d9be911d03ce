//! Shards of `octet compare`: their sums in files, and the result of merged ones.

use std::collections::BTreeSet;
use std::path::Path;

use octet::compare::Comparing;
use octet::samples::{SampleSettings, Skipped};
use octet::session::{Checksum, Session};
use octet::shards::{Payload, Shard, ShardSamples, SharedWork, StatsHeader, processor};

use super::compare::CompareOptions;
use super::stats_files::{self, model_files, refused};
use super::{Failure, files, targets};

/// Fails if the options of shards don't fit the others.
pub fn check(options: &CompareOptions) -> Result<(), Failure> {
    let divided = options.shard.shard()? != Shard::WHOLE;
    if divided && options.save_stats.is_none() {
        return Err(Failure::usage(
            "--shard compares a part of the samples: name a file for its sums with --save-stats",
        ));
    }
    let out = options.save_stats.iter();
    let targets: Vec<_> = out.map(|out| (out.as_path(), "--save-stats")).collect();
    targets::check(&targets, &options.float, &[])?;
    targets::check(&targets, &options.quantized, &[])
}

/// The header of a comparison's sums, without its samples.
pub struct Bound(StatsHeader);

impl Bound {
    /// Binds sums to both models and to the settings.
    pub fn new(
        options: &CompareOptions,
        float: &Session,
        quantized: &Session,
        reading: &SampleSettings,
    ) -> Result<Bound, Failure> {
        let mut model = model_files(&options.float, float)?;
        model.extend(model_files(&options.quantized, quantized)?);
        let labels = match &options.labels {
            Some(path) => {
                let mut checksum = Checksum::new();
                checksum.add(&files::read(path, "labels")?);
                Some(checksum.finish())
            }
            None => None,
        };
        Ok(Bound(StatsHeader {
            work: SharedWork::Comparison,
            octet: env!("CARGO_PKG_VERSION").into(),
            model,
            settings: serde_json::json!({
                "image": serde_json::to_value(&reading.image)?,
                "demo": reading.demo,
                "labels": labels,
                "split": options.split,
            }),
            pass: 1,
            content: "comparison".into(),
            after: Vec::new(),
            sources: Default::default(),
            samples: 0,
            skipped: Vec::new(),
            digest: "0".into(),
            processors: BTreeSet::from([processor()]),
        }))
    }

    /// Writes the sums of a shard.
    pub fn save(
        self,
        out: &Path,
        comparing: &Comparing,
        shard: &ShardSamples,
        skipped: &[Skipped],
    ) -> Result<(), Failure> {
        let sums = comparing.sums();
        let header = StatsHeader {
            sources: shard.sources(),
            samples: sums.samples(),
            skipped: shard.skipped(skipped),
            digest: shard.digest(skipped),
            ..self.0
        };
        let bytes = sums.bytes();
        let bytes = bytes.map_err(|error| Failure::unfinished(error.to_string()))?;
        stats_files::write(out, "--save-stats", header, bytes)
    }

    /// Enters merged sums into a comparison. Their settings of samples may be any.
    pub fn replace(mut self, path: &Path, comparing: &mut Comparing) -> Result<(), Failure> {
        let file = stats_files::read(path)?;
        let refuse = |error| refused(path, &error);
        file.header.require_complete().map_err(refuse)?;
        for key in ["image", "demo", "labels"] {
            self.0.settings[key] = file.header.settings[key].clone();
        }
        let name = path.display().to_string();
        self.0
            .require_alike("this command", &name, &file.header)
            .map_err(|error| Failure::input(error.to_string()))?;
        let Payload::Comparison(sums) = Payload::of(&file).map_err(refuse)? else {
            return Err(Failure::input(format!(
                "{name}: these are no sums of a comparison; name a file of octet compare"
            )));
        };
        if sums.samples() == 0 {
            return Err(octet::session::Error::NoSamples.into());
        }
        let replaced = comparing.replace(*sums);
        replaced.map_err(|error| refused(path, &error.into()))
    }
}
