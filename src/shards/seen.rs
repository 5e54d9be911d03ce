//! Bookkeeping of the samples that a shard runs, by which shards fit together.

use std::collections::BTreeMap;

use super::header::{Shard, SkippedSample, SourceShards, StatsHeader};
use crate::samples::{Encoded, Skipped};
use crate::session::Checksum;

/// Bookkeeping of a shard's samples.
pub struct ShardSamples {
    source: String,
    shard: Shard,
    /// Names of the shard's samples, in order.
    names: Vec<String>,
    /// Name and checksum of each sample that was read.
    digests: Vec<(String, u128)>,
    /// Samples that the first pass skipped.
    earlier: Vec<SkippedSample>,
}

impl ShardSamples {
    /// Bookkeeping for a shard of the samples of a source.
    pub fn new(source: String, shard: Shard) -> ShardSamples {
        ShardSamples {
            source,
            shard,
            names: Vec::new(),
            digests: Vec::new(),
            earlier: Vec::new(),
        }
    }

    /// Sets the names of the shard's samples, in order.
    pub fn name(&mut self, names: Vec<String>) {
        self.names = names;
    }

    /// The places of the samples that the first pass skipped. They count as skipped here, too.
    pub fn skipped_before(&mut self, first: &StatsHeader) -> Vec<usize> {
        let mut here: Vec<&SkippedSample> = first.skipped.iter().collect();
        here.retain(|one| one.source == self.source);
        here.sort_by_key(|one| one.place);
        let at = |sample| here.binary_search_by_key(&self.shard.place(sample), |one| one.place);
        let own = (0..self.names.len()).filter_map(|sample| Some((sample, at(sample).ok()?)));
        let own: Vec<(usize, usize)> = own.collect();
        self.earlier = own.iter().map(|&(_, at)| here[at].clone()).collect();
        own.into_iter().map(|(sample, _)| sample).collect()
    }

    /// The shard.
    pub fn shard(&self) -> Shard {
        self.shard
    }

    /// Adds a sample that was read.
    pub fn add(&mut self, sample: &Encoded) {
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
    pub fn skipped(&self, skipped: &[Skipped]) -> Vec<SkippedSample> {
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
    pub fn digest(&self, skipped: &[Skipped]) -> String {
        let mut skipped: Vec<&str> = skipped.iter().map(|one| one.sample.as_str()).collect();
        skipped.sort_unstable();
        let used = self.digests.iter();
        let used = used.filter(|(name, _)| skipped.binary_search(&name.as_str()).is_err());
        let sum = used.fold(0u128, |sum, (_, one)| sum.wrapping_add(*one));
        format!("{sum:032x}")
    }

    /// The shard by the name of its source.
    pub fn sources(&self) -> BTreeMap<String, SourceShards> {
        BTreeMap::from([(self.source.clone(), SourceShards::of(self.shard))])
    }
}
