//! Time.

use std::time::Duration;

use super::host;

/// A moment of Node's clock.
#[derive(Clone, Copy, Debug)]
pub struct Instant {
    ms: f64,
}

impl Instant {
    /// This moment.
    pub fn now() -> Instant {
        Instant { ms: host::now() }
    }

    /// Time since then.
    pub fn elapsed(&self) -> Duration {
        Duration::from_secs_f64((host::now() - self.ms).max(0.0) / 1e3)
    }
}
