//! The samples of a shard: their division, and the bookkeeping by which shards fit together.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use octet::samples;
use octet::session::Checksum;
use octet::shards::{Shard, ShardError, SkippedSample, SourceShards, StatsHeader};

use super::Failure;
use super::samples::Samples;

/// Options of a shard.
#[derive(Args)]
pub struct ShardOptions {
    /// Shard to run: its number and the count of all. The shard has every COUNT-th sample
    #[arg(long, value_name = "NUMBER/COUNT", default_value = "1/1")]
    shard: String,
    /// Name of the samples, if --samples are those of this shard only: shards of one name are
    /// divisions of the same samples, and those of different names add up
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
}

impl ShardOptions {
    /// The shard.
    pub fn shard(&self) -> Result<Shard, Failure> {
        let parsed = self.shard.parse();
        parsed.map_err(|error: ShardError| Failure::usage(error.to_string()))
    }

    /// Bookkeeping for these samples, which are all samples or, with a source, those of the shard.
    pub fn begin(&self, demo: Option<u64>, samples: &Samples) -> Result<ShardSamples, Failure> {
        Ok(ShardSamples {
            source: match &self.source {
                Some(name) => name.clone(),
                None => list_identity(demo, samples),
            },
            shard: self.shard()?,
            own: self.source.is_some(),
            names: Vec::new(),
            digests: Vec::new(),
            earlier: Vec::new(),
        })
    }
}

/// Identity of a list of samples: their names below their common folder.
fn list_identity(demo: Option<u64>, samples: &Samples) -> String {
    if let Some(count) = demo {
        return format!("{count} random samples");
    }
    let names = samples.names();
    let folder = |name: &str| name.rfind(['/', '\\']).map_or(0, |at| at + 1);
    let first = names.first().map_or("", String::as_str);
    let mut common = folder(first);
    for name in &names {
        while common > 0 && !name.as_bytes().starts_with(&first.as_bytes()[..common]) {
            common = folder(&first[..common - 1]);
        }
    }
    let mut checksum = Checksum::new();
    for name in &names {
        checksum.add(&name.as_bytes()[common..]);
        checksum.add(&[0]);
    }
    format!("{} files {}", names.len(), &checksum.finish()[..16])
}

/// Bookkeeping of a shard's samples.
pub struct ShardSamples {
    source: String,
    shard: Shard,
    /// True if the samples are those of the shard only.
    own: bool,
    /// Names of the shard's samples, in order.
    names: Vec<String>,
    /// Name and checksum of each sample that was read.
    digests: Vec<(String, u128)>,
    /// Samples that the first pass skipped.
    earlier: Vec<SkippedSample>,
}

impl ShardSamples {
    /// The samples of the shard.
    pub fn divide(&mut self, mut samples: Samples) -> Samples {
        if !self.own {
            samples.retain(|place| self.shard.holds(place));
        }
        self.names = samples.names();
        samples
    }

    /// The samples that the first pass did not skip.
    pub fn without_skipped(&mut self, mut samples: Samples, first: &StatsHeader) -> Samples {
        let here = first.skipped.iter().filter(|one| one.source == self.source);
        let here: BTreeMap<u64, &SkippedSample> = here.map(|one| (one.place, one)).collect();
        samples.retain(|sample| !here.contains_key(&self.shard.place(sample)));
        let own = (0..self.names.len()).filter_map(|sample| here.get(&self.shard.place(sample)));
        self.earlier = own.map(|one| (*one).clone()).collect();
        samples
    }

    /// Adds a sample that was read.
    pub fn add(&mut self, sample: &samples::Encoded) {
        let mut checksum = Checksum::new();
        for (_, content) in &sample.parts {
            checksum.add(&(content.len() as u64).to_le_bytes());
            checksum.add(content);
        }
        let mut first = [0; 16];
        first.copy_from_slice(&checksum.bytes()[..16]);
        self.digests
            .push((sample.name.clone(), u128::from_le_bytes(first)));
    }

    /// The skipped samples of this pass and of the first.
    pub fn skipped(&self, skipped: &[samples::Skipped]) -> Vec<SkippedSample> {
        let place = |name: &str| self.names.iter().position(|one| one == name).unwrap_or(0);
        let new = skipped.iter().map(|one| SkippedSample {
            source: self.source.clone(),
            place: self.shard.place(place(&one.sample)),
            sample: one.sample.clone(),
            reason: one.reason.clone(),
        });
        let mut all: Vec<SkippedSample> = new.chain(self.earlier.iter().cloned()).collect();
        all.sort();
        all
    }

    /// Sum of the checksums of the samples that were read and not skipped, in hexadecimal.
    pub fn digest(&self, skipped: &[samples::Skipped]) -> String {
        let skipped: BTreeSet<&str> = skipped.iter().map(|one| one.sample.as_str()).collect();
        let used = self.digests.iter();
        let used = used.filter(|(name, _)| !skipped.contains(name.as_str()));
        let sum = used.fold(0u128, |sum, (_, one)| sum.wrapping_add(*one));
        format!("{sum:032x}")
    }

    /// The shard by the name of its source.
    pub fn sources(&self) -> BTreeMap<String, SourceShards> {
        BTreeMap::from([(self.source.clone(), SourceShards::of(self.shard))])
    }
}
