//! Files in which several runs share a calibration, a comparison or a search: each run writes what it saw of
//! its samples, and a merge of all files equals one run over all samples.
//!
//! A file has a [`StatsHeader`], which names the model, the settings and the shards, the statistics in
//! binary form, and a SHA-256 over both. Files of different models, settings or versions, and shards
//! that overlap or are missing, are refused by name.

mod error;
mod file;
mod header;
mod merge;
mod passes;
mod seen;

pub use error::ShardError;
pub use file::{FORMAT, StatsFile, read_header};
pub use header::{FileIdentity, Shard, SharedWork, SkippedSample, SourceShards, StatsHeader};
pub use merge::{Payload, check_together, merged};
pub use passes::{CompletePasses, SharedStatistics, bound_settings, processor};
pub use seen::ShardSamples;
