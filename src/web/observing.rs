//! Samples that are being observed for a file of statistics.

use crate::shards::ShardSamples;

/// The samples of an observation.
pub(super) struct Observing {
    pub(super) seen: ShardSamples,
    /// The settings that their statistics depend on.
    pub(super) settings: serde_json::Value,
}
