//! The steps of a run, each with the time and memory at its start and end.

use std::sync::Arc;

use super::clock::Clock;
use super::memory::{self, Usage, usage};
use super::yaml::{self, Section};

/// One moment of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What began, ended or was passed: `Calibration Start`, `Calibration End`, or free text.
    pub step: String,
    /// Seconds since 1970.
    pub timestamp: f64,
    /// Seconds since the run began.
    pub seconds: f64,
    /// What was used then. The disk counts from the start of the run.
    pub usage: Usage,
}

/// Tells the moments of a run from any thread.
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

    /// This moment; for [`Profiler::passed`].
    pub fn moment(&self, step: String) -> Record {
        let now = usage();
        let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        let usage = Usage {
            disk_read: since(now.disk_read, self.before.disk_read),
            disk_write: since(now.disk_write, self.before.disk_write),
            ..now
        };
        self.at(step, usage)
    }

    /// The growth of the wasm memory since this was last asked; for [`Profiler::passed`].
    pub fn growth(&self) -> Option<Record> {
        let (before, now) = memory::growth()?;
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let step = format!("Memory grew from {:.2} to {:.2} MB", mb(before), mb(now));
        Some(self.at(step, memory::glance()))
    }

    /// This moment without what the system would have to be asked for; for [`Profiler::passed`].
    pub fn glance(&self, step: String) -> Record {
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

/// Notes the moments of a run. It begins with `Start`; steps are `X Start` and `X End`.
pub struct Profiler {
    watch: Stopwatch,
    /// The steps that are open, and whether they are a person's own scopes.
    open: Vec<(String, bool)>,
    /// Whether the run ended inside a scope, so that its end is yet to be noted.
    late: bool,
    records: Vec<Record>,
}

impl Profiler {
    /// Begins a run.
    pub fn start(clock: Box<dyn Clock>) -> Profiler {
        let mut profiler = Profiler {
            watch: Stopwatch::start(clock),
            open: vec![],
            late: false,
            records: vec![],
        };
        // What the memory grew by for the file is told behind it.
        profiler.records.push(profiler.watch.moment("Start".into()));
        profiler
    }

    /// Begins a step.
    pub fn begin(&mut self, step: &str) {
        self.open(step, false);
    }

    /// Begins a scope of a person's own around whatever follows; the run's own steps end inside it.
    pub fn begin_scope(&mut self, message: &str) {
        self.resume();
        self.open(message, true);
    }

    /// Ends the scope that was begun last, and the steps that are still open in it.
    pub fn end_scope(&mut self) {
        if self.scoped() {
            while let Some((_, scope)) = self.open.last() {
                let scope = *scope;
                self.end();
                if scope {
                    break;
                }
            }
            if self.late && !self.scoped() {
                self.finish();
            }
        }
    }

    fn open(&mut self, step: &str, scope: bool) {
        self.note(format!("{step} Start"));
        self.open.push((step.into(), scope));
    }

    fn scoped(&self) -> bool {
        self.open.iter().any(|(_, scope)| *scope)
    }

    /// Ends the step that was begun last.
    pub fn end(&mut self) {
        if let Some((step, _)) = self.open.pop() {
            self.note(format!("{step} End"));
        }
    }

    /// Does something as a step, whatever comes of it.
    pub fn step<T>(&mut self, step: &str, work: impl FnOnce(&mut Profiler) -> T) -> T {
        self.begin(step);
        let depth = self.open.len();
        let result = work(self);
        while self.open.len() >= depth {
            self.end();
        }
        result
    }

    /// Notes a moment inside a step, in the caller's words.
    pub fn checkpoint(&mut self, message: &str) {
        self.note(message.into());
    }

    /// Notes moments that other threads took with the [`Stopwatch`], in the order of their time.
    pub fn passed(&mut self, mut moments: Vec<Record>) {
        moments.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        self.records.extend(moments);
    }

    /// Ends the run, and with it all steps still open. Inside a person's scope it ends with that.
    pub fn finish(&mut self) {
        while self.open.last().is_some_and(|(_, scope)| !scope) {
            self.end();
        }
        self.late = self.scoped();
        if self.late {
            return;
        }
        if !self.is_finished() {
            self.note("End".into());
        }
    }

    /// Goes on with a run that was ended, as when settings are changed and tried again.
    pub fn resume(&mut self) {
        if self.is_finished() {
            self.records.pop();
        }
    }

    /// Whether the run has ended.
    pub fn is_finished(&self) -> bool {
        self.records.last().is_some_and(|r| r.step == "End")
    }

    /// All moments so far, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Milliseconds since the run began.
    pub fn elapsed_ms(&self) -> f64 {
        self.watch.elapsed_ms()
    }

    /// What tells the moments of this run to other threads.
    pub fn stopwatch(&self) -> &Stopwatch {
        &self.watch
    }

    /// The report as it stands: Quark's part, then the sections.
    pub fn report(&self, sections: &[Section]) -> String {
        yaml::write(&self.records, sections)
    }

    fn note(&mut self, step: String) {
        self.records.extend(self.watch.growth());
        self.records.push(self.watch.moment(step));
    }
}

#[cfg(test)]
mod tests {
    use super::super::ticking::Ticking;
    use super::*;

    #[test]
    fn steps_start_and_end_in_order_even_when_left_open() {
        let mut profiler = Profiler::start(Box::new(Ticking::by(1000)));
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
        let mut profiler = Profiler::start(Box::new(Ticking::by(1000)));
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
