//! Merging of shards: the headers first, by name, then the statistics.

use super::error::ShardError;
use super::file::StatsFile;
use super::header::{MOST_SAMPLES, Shard, SharedWork, StatsHeader, described};
use crate::compare::ComparisonSums;
use crate::search::Measurements;
use crate::stats::PassStatistics;

/// Statistics of some shards.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Of a calibration.
    Calibration(PassStatistics),
    /// Of a comparison.
    Comparison(Box<ComparisonSums>),
    /// Of a search.
    Search(Measurements),
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
            SharedWork::Search => Payload::Search(Measurements::from_bytes(&file.payload)?),
        })
    }

    /// The statistics in binary form.
    pub fn bytes(&self) -> Result<Vec<u8>, ShardError> {
        match self {
            Payload::Calibration(collected) => Ok(collected.bytes()),
            Payload::Comparison(sums) => Ok(sums.bytes()?),
            Payload::Search(measured) => Ok(measured.bytes()),
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
            (Payload::Search(all), Payload::Search(more)) => {
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
    // Every shard with its source and its file.
    let mut shards: Vec<(&str, u32, &str)> = Vec::new();
    // The sources, each with its number of shards and a file that has it.
    let mut divided: Vec<(&str, u32, &str)> = Vec::new();
    let mut digest = 0u128;
    all.samples = 0;
    all.skipped.clear();
    for (name, header) in files {
        if !std::ptr::eq(header, &files[0].1) {
            files[0].1.require_alike(first, name, header)?;
        }
        for (source, own) in &header.sources {
            match divided.iter().find(|(known, ..)| known == source) {
                None => divided.push((source, own.count, name)),
                Some(&(_, count, other)) if count != own.count => {
                    return Err(ShardError::Division {
                        source_name: described(source),
                        first: other.into(),
                        other: name.clone(),
                        wanted: count,
                        found: own.count,
                    });
                }
                Some(_) => {}
            }
            let own = own.numbers();
            shards.extend(own.map(|number| (source.as_str(), number, name.as_str())));
        }
        digest = digest.wrapping_add(u128::from_str_radix(&header.digest, 16).unwrap_or(0));
        all.samples = all.samples.saturating_add(header.samples);
        all.skipped.extend(header.skipped.iter().cloned());
        all.processors.extend(header.processors.iter().cloned());
    }
    // Stable, so that of two files with one shard the earlier stays first.
    shards.sort_by_key(|&(source, number, _)| (source, number));
    for pair in shards.windows(2) {
        let [(source, number, holder), (other_source, other_number, name)] = *pair else {
            continue;
        };
        if (source, number) == (other_source, other_number) {
            let count = divided.iter().find(|(known, ..)| *known == source);
            let count = count.map_or(number, |&(_, count, _)| count);
            return Err(ShardError::Overlap {
                shard: Shard { number, count }.to_string(),
                source_name: described(source),
                first: holder.into(),
                other: name.into(),
            });
        }
    }
    for &(source, count, _) in &divided {
        let numbers = shards.iter().filter(|(known, ..)| *known == source);
        let numbers: Vec<u32> = numbers.map(|&(_, number, _)| number).collect();
        let entry = all.sources.entry(source.to_string());
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
