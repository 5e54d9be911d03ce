//! Errors of a calibration.

use crate::broken_invariant::BrokenInvariant;
use crate::runtime::EngineError;
use crate::samples::SampleError;
use crate::stats::OtherStatistics;

/// Reason for which a sample could not be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum FeedError {
    #[error(transparent)]
    Sample(#[from] SampleError),
    #[error("sample `{sample}`: {source}")]
    Run { sample: String, source: EngineError },
    #[error("stopped on request")]
    Stopped,
    #[error("{0} samples are still running: wait until they end")]
    UnderWay(usize),
    #[error(
        "the second pass over the samples counted {again} values of `{tensor}` and the first {first}: use the same \
         samples in both passes"
    )]
    OtherSamples {
        tensor: String,
        first: u64,
        again: u64,
    },
    #[error(
        "the second pass completed {again} samples and the first {first}: use the same samples in both passes, or \
         restart the calibration if a sample failed"
    )]
    OtherCount { first: usize, again: usize },
    #[error(
        "the statistics of other runs do not belong to this calibration: {0}; observe the samples again with this \
         model and these settings"
    )]
    OtherStatistics(#[from] OtherStatistics),
    #[error(transparent)]
    Broken(#[from] BrokenInvariant),
}

impl FeedError {
    /// Returns true if the error concerns this sample alone, so that others may still run.
    pub(super) fn is_of_sample(&self) -> bool {
        matches!(self, FeedError::Sample(_) | FeedError::Run { .. })
    }
}
