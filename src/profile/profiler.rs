//! The stages of a run, with time and memory at their starts and ends.

use std::sync::Arc;

use super::clock::Clock;
use super::memory::{self, Usage, usage};
use super::yaml::{self, Section};

/// A checkpoint of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its name: `Calibration Start`, `Calibration End`, or free text.
    pub step: String,
    /// Seconds since 1970.
    pub timestamp: f64,
    /// Seconds since the run began.
    pub seconds: f64,
    /// Memory and disk use. Disk counts from the start of the run.
    pub usage: Usage,
}

/// Takes checkpoints of a run on any thread.
#[derive(Clone)]
pub struct Stopwatch {
    clock: Arc<dyn Clock>,
    began: f64,
    before: Usage,
}

impl Stopwatch {
    fn start(clock: Box<dyn Clock>) -> Stopwatch {
        let (began, before) = (clock.now_ms(), usage());
        Stopwatch {
            clock: clock.into(),
            began,
            before,
        }
    }

    fn elapsed_ms(&self) -> f64 {
        self.clock.now_ms() - self.began
    }

    /// A checkpoint for [`Profiler::record_all`].
    pub fn checkpoint(&self, step: String) -> Record {
        let now = usage();
        let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        let usage = Usage {
            disk_read: since(now.disk_read, self.before.disk_read),
            disk_write: since(now.disk_write, self.before.disk_write),
            ..now
        };
        self.at(step, usage)
    }

    /// A checkpoint if the wasm memory has grown since the last call; for [`Profiler::record_all`].
    pub fn growth(&self) -> Option<Record> {
        let (before, now) = memory::growth()?;
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let step = format!("Memory grew from {:.2} to {:.2} MB", mb(before), mb(now));
        Some(self.at(step, memory::glance()))
    }

    /// A checkpoint without system calls; for [`Profiler::record_all`].
    pub fn quick_checkpoint(&self, step: String) -> Record {
        self.at(step, memory::glance())
    }

    fn at(&self, step: String, usage: Usage) -> Record {
        Record {
            step,
            timestamp: self.clock.unix_seconds(),
            seconds: self.elapsed_ms() / 1e3,
            usage,
        }
    }
}

/// Records the checkpoints of a run. The first is `Start`; stages are `X Start` and `X End`.
pub struct Profiler {
    stopwatch: Stopwatch,
    /// Open stages; true for scopes that the caller named.
    open: Vec<(String, bool)>,
    /// True if the run ended inside a scope, so that `End` is yet to be recorded.
    end_pending: bool,
    records: Vec<Record>,
}

impl Profiler {
    /// Begins a run.
    pub fn start(clock: Box<dyn Clock>) -> Profiler {
        let mut profiler = Profiler {
            stopwatch: Stopwatch::start(clock),
            open: vec![],
            end_pending: false,
            records: vec![],
        };
        // Memory that grew for the file is recorded after it.
        profiler
            .records
            .push(profiler.stopwatch.checkpoint("Start".into()));
        profiler
    }

    /// Begins a stage.
    pub fn begin(&mut self, step: &str) {
        self.open(step, false);
    }

    /// Begins a scope that the caller named. Stages of the run end inside it.
    pub fn begin_scope(&mut self, message: &str) {
        self.resume();
        self.open(message, true);
    }

    /// Ends the innermost scope, with the stages that are still open in it.
    pub fn end_scope(&mut self) {
        if self.scoped() {
            while let Some((_, scope)) = self.open.last() {
                let scope = *scope;
                self.end();
                if scope {
                    break;
                }
            }
            if self.end_pending && !self.scoped() {
                self.finish();
            }
        }
    }

    fn open(&mut self, step: &str, scope: bool) {
        self.record(format!("{step} Start"));
        self.open.push((step.into(), scope));
    }

    fn scoped(&self) -> bool {
        self.open.iter().any(|(_, scope)| *scope)
    }

    /// Ends the innermost stage.
    pub fn end(&mut self) {
        if let Some((step, _)) = self.open.pop() {
            self.record(format!("{step} End"));
        }
    }

    /// Runs `work` as a stage, which ends with any result.
    pub fn step<T>(&mut self, step: &str, work: impl FnOnce(&mut Profiler) -> T) -> T {
        self.begin(step);
        let depth = self.open.len();
        let result = work(self);
        while self.open.len() >= depth {
            self.end();
        }
        result
    }

    /// Records a checkpoint inside a stage, in the caller's words.
    pub fn checkpoint(&mut self, message: &str) {
        self.record(message.into());
    }

    /// Records checkpoints that other threads took with the [`Stopwatch`], in order of time.
    pub fn record_all(&mut self, mut checkpoints: Vec<Record>) {
        checkpoints.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        self.records.extend(checkpoints);
    }

    /// Ends the run with all open stages. Inside a scope, the run ends with the scope.
    pub fn finish(&mut self) {
        while self.open.last().is_some_and(|(_, scope)| !scope) {
            self.end();
        }
        self.end_pending = self.scoped();
        if self.end_pending {
            return;
        }
        if !self.is_finished() {
            self.record("End".into());
        }
    }

    /// Continues a run that has ended, for example with other settings.
    pub fn resume(&mut self) {
        if self.is_finished() {
            self.records.pop();
        }
    }

    /// True if the run has ended.
    pub fn is_finished(&self) -> bool {
        self.records.last().is_some_and(|r| r.step == "End")
    }

    /// All checkpoints so far, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Milliseconds since the run began.
    pub fn elapsed_ms(&self) -> f64 {
        self.stopwatch.elapsed_ms()
    }

    /// Takes checkpoints of this run on other threads.
    pub fn stopwatch(&self) -> &Stopwatch {
        &self.stopwatch
    }

    /// The report so far: Quark's part, then these sections.
    pub fn report(&self, sections: &[Section]) -> String {
        yaml::write(&self.records, sections)
    }

    fn record(&mut self, step: String) {
        self.records.extend(self.stopwatch.growth());
        self.records.push(self.stopwatch.checkpoint(step));
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake_clock::FakeClock;
    use super::*;

    #[test]
    fn steps_start_and_end_in_order_even_when_left_open() {
        let mut profiler = Profiler::start(Box::new(FakeClock::new(1000)));
        let answer = profiler.step("Pre-process", |profiler| {
            profiler.begin("Model Caching");
            7
        });
        profiler.begin("Calibration");
        profiler.checkpoint("half of the samples");
        profiler.finish();
        profiler.finish();
        let steps: Vec<&str> = profiler.records().iter().map(|r| r.step.as_str()).collect();
        let wanted = "Start,Pre-process Start,Model Caching Start,Model Caching End,Pre-process End,\
                      Calibration Start,half of the samples,Calibration End,End";
        assert_eq!((answer, steps.join(",").as_str()), (7, wanted));
        assert_eq!(profiler.records()[8].seconds, 9.0);
        profiler.resume();
        assert!(!profiler.is_finished());
    }

    #[test]
    fn a_scope_holds_the_steps_inside_it_and_the_end_comes_after() {
        let mut profiler = Profiler::start(Box::new(FakeClock::new(1000)));
        profiler.begin("Calibration");
        profiler.begin_scope("mine");
        profiler.begin("Quantization");
        profiler.finish();
        assert!(!profiler.is_finished());
        profiler.end_scope();
        profiler.end_scope();
        let steps: Vec<&str> = profiler.records().iter().map(|r| r.step.as_str()).collect();
        let wanted = "Start,Calibration Start,mine Start,Quantization Start,Quantization End,mine End,Calibration End,End";
        assert_eq!(steps.join(","), wanted);
    }
}
