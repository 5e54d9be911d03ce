//! A fake clock for tests.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::clock::Clock;

/// Advances by a fixed number of milliseconds at each reading.
pub(super) struct Ticking {
    step: u64,
    now: AtomicU64,
}

impl Ticking {
    pub(super) fn by(step: u64) -> Ticking {
        Ticking {
            step,
            now: AtomicU64::new(0),
        }
    }
}

impl Clock for Ticking {
    fn now_ms(&self) -> f64 {
        self.now.fetch_add(self.step, Relaxed) as f64
    }

    fn unix_seconds(&self) -> f64 {
        1.5e9
    }
}
