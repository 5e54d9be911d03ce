//! Progress of a long call: events for its caller, and cancellation.

use crate::tune::LayerReport;

/// Event during a call.
#[derive(Clone, Debug)]
pub enum Event {
    /// A sample is done.
    Sample {
        /// Number of samples done since calibration began.
        done: usize,
        /// Name of the sample.
        name: String,
    },
    /// A layer has learned its constants.
    Layer {
        /// Number of layers done.
        done: usize,
        /// Number of all layers.
        of: usize,
        /// The layer, with its error before and after.
        report: LayerReport,
    },
}

/// Follows a call. Several threads may call its methods at once.
pub trait ProgressMonitor: Sync {
    /// Receives each event. The order between threads is not fixed.
    fn event(&self, event: &Event);

    /// Returns true to stop the call. It is asked often, so it must be fast.
    fn cancelled(&self) -> bool {
        false
    }

    /// Receives the record of each part that has learned, for the run's journal
    /// ([`TuningRun::journal`](super::TuningRun::journal)).
    fn learned(&self, _record: &[u8]) {}

    /// Called when a started sample has ended, with or without an error.
    fn ended(&self) {}
}

/// Ignores all events.
impl ProgressMonitor for () {
    fn event(&self, _event: &Event) {}
}
