//! How a face follows a long call and stops it.

use serde::Serialize;

/// What happens while a call runs.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Event {
    /// A stage begins.
    Stage {
        /// Its name, as in the report.
        name: String,
    },
    /// A sample was run.
    Sample {
        /// How many were run since calibration began.
        done: usize,
        /// The sample.
        name: String,
    },
}

/// Follows a call; may be asked from several threads at once.
pub trait Watch: Sync {
    /// Called for each event, in no fixed order between threads.
    fn event(&self, event: &Event);

    /// Whether the call should stop; asked often, so it must be quick.
    fn cancelled(&self) -> bool {
        false
    }

    /// Called when a sample that was begun is under way no longer, well or not.
    fn ended(&self) {}
}

/// Watches nothing.
impl Watch for () {
    fn event(&self, _event: &Event) {}
}
