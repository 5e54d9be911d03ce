//! Merging of shards: the headers first, by name, then the statistics.

use std::collections::BTreeMap;

use super::error::ShardError;
use super::file::StatsFile;
use super::header::{MOST_SAMPLES, Shard, SharedWork, StatsHeader, described};
use crate::compare::ComparisonSums;
use crate::stats::PassStatistics;

/// Statistics of some shards.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Of a calibration.
    Calibration(PassStatistics),
    /// Of a comparison.
    Comparison(Box<ComparisonSums>),
}

impl Payload {
    /// Reads the statistics of a file.
    pub fn of(file: &StatsFile) -> Result<Payload, ShardError> {
        Ok(match file.header.work {
            SharedWork::Calibration => {
                Payload::Calibration(PassStatistics::from_bytes(&file.payload)?)
            }
            SharedWork::Comparison => {
                Payload::Comparison(Box::new(ComparisonSums::from_bytes(&file.payload)?))
            }
        })
    }

    /// The statistics in binary form.
    pub fn bytes(&self) -> Result<Vec<u8>, ShardError> {
        match self {
            Payload::Calibration(collected) => Ok(collected.bytes()),
            Payload::Comparison(sums) => Ok(sums.bytes()?),
        }
    }

    /// Adds the statistics of other shards. `first` and `other` are the names of their files.
    pub fn merge(&mut self, first: &str, other: &str, more: &Payload) -> Result<(), ShardError> {
        let merged = match (self, more) {
            (Payload::Calibration(all), Payload::Calibration(more)) => {
                all.merge(more).map_err(|cause| cause.to_string())
            }
            (Payload::Comparison(all), Payload::Comparison(more)) => {
                all.merge(more).map_err(|cause| cause.to_string())
            }
            _ => return Err(ShardError::NotStats),
        };
        merged.map_err(|cause| ShardError::Statistics {
            first: first.into(),
            other: other.into(),
            cause,
        })
    }
}

/// Checks that all files belong to one piece of work and that no shard is in two of them, and
/// returns the header of their merge.
pub fn check_together(files: &[(String, StatsHeader)]) -> Result<StatsHeader, ShardError> {
    let Some(((first, header), rest)) = files.split_first() else {
        return Err(ShardError::NotStats);
    };
    let mut all = header.clone();
    // The file that holds each shard, and the first file of each source.
    let mut holders: BTreeMap<(&str, u32), &str> = BTreeMap::new();
    let mut divided: BTreeMap<&str, (u32, &str)> = BTreeMap::new();
    let mut digest = 0u128;
    all.samples = 0;
    all.skipped.clear();
    for (name, header) in files {
        if !std::ptr::eq(header, &files[0].1) {
            files[0].1.require_alike(first, name, header)?;
        }
        for (source, shards) in &header.sources {
            let (count, other) = *divided.entry(source).or_insert((shards.count, name));
            if count != shards.count {
                return Err(ShardError::Division {
                    source_name: described(source),
                    first: other.into(),
                    other: name.clone(),
                    wanted: count,
                    found: shards.count,
                });
            }
            for number in shards.numbers() {
                if let Some(holder) = holders.insert((source, number), name) {
                    return Err(ShardError::Overlap {
                        shard: Shard { number, count }.to_string(),
                        source_name: described(source),
                        first: holder.into(),
                        other: name.clone(),
                    });
                }
            }
        }
        digest = digest.wrapping_add(u128::from_str_radix(&header.digest, 16).unwrap_or(0));
        all.samples = all.samples.saturating_add(header.samples);
        all.skipped.extend(header.skipped.iter().cloned());
        all.processors.extend(header.processors.iter().cloned());
    }
    for (source, &(count, _)) in &divided {
        let numbers = holders.range((*source, 0)..=(*source, count));
        let numbers = numbers.map(|((_, number), _)| *number).collect();
        let entry = all.sources.entry((*source).to_string());
        let shards = entry.or_insert_with(|| super::SourceShards::of(Shard { number: 1, count }));
        shards.set(&numbers);
    }
    if all.samples > MOST_SAMPLES {
        return Err(ShardError::TooMany(MOST_SAMPLES));
    }
    // The model's name may differ between machines; the least one does not depend on the order.
    for (_, header) in rest {
        for (kept, other) in all.model.iter_mut().zip(&header.model) {
            if other.name < kept.name {
                kept.name.clone_from(&other.name);
            }
        }
    }
    all.skipped.sort();
    all.digest = format!("{digest:032x}");
    Ok(all)
}

/// Merges files that are in memory.
pub fn merged(files: &[(String, StatsFile)]) -> Result<StatsFile, ShardError> {
    let headers: Vec<(String, StatsHeader)> = files
        .iter()
        .map(|(name, file)| (name.clone(), file.header.clone()))
        .collect();
    let header = check_together(&headers)?;
    let mut all: Option<Payload> = None;
    for (name, file) in files {
        let more = Payload::of(file)?;
        match &mut all {
            None => all = Some(more),
            Some(all) => all.merge(&files[0].0, name, &more)?,
        }
    }
    Ok(StatsFile {
        header,
        payload: all.map_or(Ok(Vec::new()), |all| all.bytes())?,
    })
}
