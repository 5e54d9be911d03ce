//! A checkpoint of a run.

use super::memory::Usage;
use super::run_step::Moment;

/// A checkpoint of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The moment that it records.
    pub moment: Moment,
    /// Seconds since 1970.
    pub timestamp: f64,
    /// Seconds since the run began.
    pub seconds: f64,
    /// Memory and disk use. Disk counts from the start of the run.
    pub usage: Usage,
}
