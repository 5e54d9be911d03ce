//! The stages of a run, with time and memory at their starts and ends.

use std::sync::Arc;

use super::clock::Clock;
use super::memory::{self, Usage, usage};
use super::record::Record;
use super::run_step::{Moment, RunScope, RunStep};
use super::yaml::{self, Section};

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

    /// A checkpoint with these words, for [`Profiler::record_all`].
    pub fn checkpoint(&self, text: String) -> Record {
        self.record(Moment::Note(text))
    }

    fn record(&self, moment: Moment) -> Record {
        let now = usage();
        let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        let usage = Usage {
            disk_read: since(now.disk_read, self.before.disk_read),
            disk_write: since(now.disk_write, self.before.disk_write),
            ..now
        };
        self.at(moment, usage)
    }

    /// A checkpoint if the wasm memory has grown since the last call; for [`Profiler::record_all`].
    pub fn growth(&self) -> Option<Record> {
        let (before, now) = memory::growth()?;
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let text = format!("Memory grew from {:.2} to {:.2} MB", mb(before), mb(now));
        Some(self.at(Moment::Note(text), memory::glance()))
    }

    /// A checkpoint without system calls; for [`Profiler::record_all`].
    pub fn quick_checkpoint(&self, text: String) -> Record {
        self.at(Moment::Note(text), memory::glance())
    }

    fn at(&self, moment: Moment, usage: Usage) -> Record {
        Record {
            moment,
            timestamp: self.clock.unix_seconds(),
            seconds: self.elapsed_ms() / 1e3,
            usage,
        }
    }
}

/// Records the checkpoints of a run, from its start to its end.
pub struct Profiler {
    stopwatch: Stopwatch,
    /// Parts of the run that have begun and not ended.
    open: Vec<RunScope>,
    /// True if the run ended inside a scope, so that its end is yet to be recorded.
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
            .push(profiler.stopwatch.record(Moment::Start));
        profiler
    }

    /// Begins a stage.
    pub fn begin(&mut self, step: RunStep) {
        self.open(RunScope::Step(step));
    }

    /// Begins a scope that the caller named. Stages of the run end inside it.
    pub fn begin_scope(&mut self, message: &str) {
        self.resume();
        self.open(RunScope::Named(message.into()));
    }

    /// Ends the innermost scope, with the stages that are still open in it.
    pub fn end_scope(&mut self) {
        if self.is_scoped() {
            while let Some(open) = self.open.last() {
                let is_scope = matches!(open, RunScope::Named(_));
                self.end();
                if is_scope {
                    break;
                }
            }
            if self.end_pending && !self.is_scoped() {
                self.finish();
            }
        }
    }

    fn open(&mut self, scope: RunScope) {
        self.record(Moment::Begins(scope.clone()));
        self.open.push(scope);
    }

    fn is_scoped(&self) -> bool {
        let is_scope = |open: &RunScope| matches!(open, RunScope::Named(_));
        self.open.iter().any(is_scope)
    }

    /// Ends the innermost stage.
    pub fn end(&mut self) {
        if let Some(scope) = self.open.pop() {
            self.record(Moment::Ends(scope));
        }
    }

    /// Records checkpoints that other threads took with the [`Stopwatch`], in order of time.
    pub fn record_all(&mut self, mut checkpoints: Vec<Record>) {
        checkpoints.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        self.records.extend(checkpoints);
    }

    /// Ends the run with all open stages. Inside a scope, the run ends with the scope.
    pub fn finish(&mut self) {
        while let Some(RunScope::Step(_)) = self.open.last() {
            self.end();
        }
        self.end_pending = self.is_scoped();
        if self.end_pending {
            return;
        }
        if !self.is_finished() {
            self.record(Moment::End);
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
        self.records.last().is_some_and(|r| r.moment == Moment::End)
    }

    /// All checkpoints so far, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Takes checkpoints of this run on other threads.
    pub fn stopwatch(&self) -> &Stopwatch {
        &self.stopwatch
    }

    /// The report so far: Quark's part, then these sections.
    pub fn report(&self, sections: &[Section]) -> String {
        yaml::write(&self.records, sections)
    }

    fn record(&mut self, moment: Moment) {
        self.records.extend(self.stopwatch.growth());
        self.records.push(self.stopwatch.record(moment));
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake_clock::FakeClock;
    use super::*;
    use crate::quantize::Scheme;

    fn steps(profiler: &Profiler) -> String {
        let records = profiler.records().iter();
        let steps: Vec<String> = records.map(|r| r.moment.to_string()).collect();
        steps.join(",")
    }

    #[test]
    fn steps_start_and_end_in_order_even_when_left_open() {
        let mut profiler = Profiler::start(Box::new(FakeClock::new(1000)));
        profiler.begin(RunStep::Preparation);
        profiler.begin(RunStep::Forecast);
        profiler.end();
        profiler.end();
        profiler.begin(RunStep::Calibration);
        let checkpoint = profiler
            .stopwatch()
            .checkpoint("half of the samples".into());
        profiler.record_all(vec![checkpoint]);
        profiler.finish();
        profiler.finish();
        let wanted = "Start,Pre-process Start,Forecast Start,Forecast End,Pre-process End,\
                      Calibration Start,half of the samples,Calibration End,End";
        assert_eq!(steps(&profiler), wanted);
        assert_eq!(profiler.records()[8].seconds, 9.0);
        profiler.resume();
        assert!(!profiler.is_finished());
    }

    #[test]
    fn a_scope_holds_the_steps_inside_it_and_the_end_comes_after() {
        let mut profiler = Profiler::start(Box::new(FakeClock::new(1000)));
        profiler.begin(RunStep::Calibration);
        profiler.begin_scope("mine");
        profiler.begin(RunStep::Quantization(Scheme::Float16));
        profiler.finish();
        assert!(!profiler.is_finished());
        profiler.end_scope();
        profiler.end_scope();
        let wanted = "Start,Calibration Start,mine Start,Conversion (Float16) Start,Conversion (Float16) End,\
                      mine End,Calibration End,End";
        assert_eq!(steps(&profiler), wanted);
    }
}
