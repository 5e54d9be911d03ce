//! A fake clock for tests.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::clock::Clock;

/// Advances by a fixed number of milliseconds at each reading.
pub(super) struct FakeClock {
    step: u64,
    now: AtomicU64,
}

impl FakeClock {
    pub(super) fn new(step: u64) -> FakeClock {
        FakeClock {
            step,
            now: AtomicU64::new(0),
        }
    }
}

impl Clock for FakeClock {
    fn now_ms(&self) -> f64 {
        self.now.fetch_add(self.step, Relaxed) as f64
    }

    fn unix_seconds(&self) -> f64 {
        1.5e9
    }
}
