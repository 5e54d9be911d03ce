//! Reasons for which files of shards are refused.

use crate::compare::OtherSums;
use crate::stats::DamagedStatistics;

/// A file of shards can't be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ShardError {
    #[error(
        "this is no file of statistics; name a file that `octet observe` or `octet merge` wrote"
    )]
    NotStats,
    #[error(
        "the file has format {found} and this Octet reads format {known}; observe again with this Octet, or use the \
         one that wrote the file"
    )]
    Format { found: u32, known: u32 },
    #[error("the file is cut off or damaged: {0}; copy it again, or observe the shard again")]
    Cut(&'static str),
    #[error(
        "the checksum does not fit the content; copy the file again, or observe the shard again"
    )]
    Checksum,
    #[error("the header is not understood: {0}; observe the shard again")]
    Header(String),
    #[error("{0}; observe the shard again")]
    Damaged(#[from] DamagedStatistics),
    #[error(
        "{other} has another {what} than {first}: {found}, not {wanted}; merge only files that agree in it"
    )]
    Other {
        what: &'static str,
        first: String,
        other: String,
        found: String,
        wanted: String,
    },
    #[error(
        "{first} and {other} both hold shard {shard} of {source_name}; each shard counts once: leave one out"
    )]
    Overlap {
        shard: String,
        source_name: String,
        first: String,
        other: String,
    },
    #[error(
        "{first} divides {source_name} into {wanted} shards and {other} into {found}; merge shards of one division"
    )]
    Division {
        source_name: String,
        first: String,
        other: String,
        wanted: u32,
        found: u32,
    },
    #[error("{missing} of {source_name} are missing; observe them and merge all shards")]
    Missing {
        source_name: String,
        missing: String,
    },
    #[error("{0}; observe the shard again")]
    Sums(#[from] OtherSums),
    #[error("{other} does not fit {first}: {cause}")]
    Statistics {
        first: String,
        other: String,
        cause: String,
    },
    #[error("these are no statistics of a calibration; name files of octet observe")]
    NotCalibration,
    #[error(
        "its {found} samples are not the {wanted} of the first pass; observe the same samples in every pass"
    )]
    OtherSamples { found: u64, wanted: u64 },
    #[error("the shards hold too many samples to merge; at most {0} in all")]
    TooMany(u64),
    #[error(
        "--shard {0} is no shard: give its number and the count of all, from 1/1 to 100000/100000"
    )]
    Shard(String),
}
