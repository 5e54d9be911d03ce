//! Record of a session: the checkpoints of its run and the sections of its report.

use std::sync::{Arc, Mutex, PoisonError};

use super::report::Report;
use crate::profile::{Profiler, Record, SystemClock};

/// Checkpoints that samples record on other threads, until the profiler takes them.
#[derive(Clone, Default)]
pub(super) struct Checkpoints(Arc<Mutex<Vec<Record>>>);

impl Checkpoints {
    /// Adds checkpoints. Any thread may call it.
    pub(super) fn add(&self, records: impl IntoIterator<Item = Record>) {
        let mut checkpoints = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        checkpoints.extend(records);
    }

    fn take(&self) -> Vec<Record> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Record of a session.
pub(super) struct Journal {
    pub(super) profiler: Profiler,
    pub(super) report: Report,
    pub(super) checkpoints: Checkpoints,
}

impl Journal {
    /// Begins the run.
    pub(super) fn start() -> Journal {
        Journal {
            profiler: Profiler::start(Box::new(SystemClock)),
            report: Report::default(),
            checkpoints: Checkpoints::default(),
        }
    }

    /// Moves the checkpoints of other threads into the run.
    pub(super) fn record_checkpoints(&mut self) {
        self.profiler.record_all(self.checkpoints.take());
    }
}
