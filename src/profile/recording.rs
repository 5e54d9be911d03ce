//! Recording of repeated runs of a plan: time and live memory of each step.

use super::clock::Clock;
use crate::allocator;
use crate::runtime::Timing;

/// One execution of a step. Memory counts from the live bytes at the start of the recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepRecord {
    /// Index of the step.
    pub step: usize,
    /// Its start, in milliseconds since the recording began.
    pub begin_ms: f64,
    /// Its duration in milliseconds.
    pub ms: f64,
    /// Peak of live memory while it ran, in bytes.
    pub peak: u64,
    /// Live memory after it, once values that nothing reads any more were freed.
    pub live: u64,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct RunRecord {
    /// Its start, in milliseconds since the recording began.
    pub begin_ms: f64,
    /// Its duration in milliseconds.
    pub ms: f64,
    /// Number of threads it used.
    pub threads: usize,
    /// Its steps in the order they ran.
    pub steps: Vec<StepRecord>,
}

/// Numbers of runs for a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// Number of measured runs.
    pub runs: usize,
    /// Number of warm-up runs before them. The first runs have cold caches and, in a browser,
    /// unoptimized code.
    pub warm_up: usize,
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats {
            runs: 10,
            warm_up: 2,
        }
    }
}

/// Maximum number of trials that a recording leaves out.
const MAX_TRIALS: usize = 100;

/// Records runs. Memory is that of the whole process, so nothing else should run at the same time.
pub struct Recording<'a> {
    clock: &'a dyn Clock,
    began: f64,
    /// Live memory before the runs: weights, plan and file.
    resident: usize,
    repeats: Repeats,
    warmed: usize,
    /// The current run compares numbers of threads, so it does not count.
    trial: bool,
    /// Number of trials so far.
    trials: usize,
    current: RunRecord,
    /// Peak outside this recording, to be restored after it.
    outer_peak: usize,
    runs: Vec<RunRecord>,
}

impl<'a> Recording<'a> {
    /// Begins a recording. Space for the records of `steps` steps is allocated now, so that it
    /// isn't counted.
    pub fn start(clock: &'a dyn Clock, steps: usize, repeats: Repeats) -> Recording<'a> {
        let mut recording = Recording {
            clock,
            began: 0.0,
            resident: 0,
            repeats,
            warmed: 0,
            trial: false,
            trials: 0,
            current: RunRecord {
                steps: Vec::with_capacity(steps),
                ..RunRecord::default()
            },
            outer_peak: allocator::peak(),
            runs: Vec::with_capacity(repeats.runs),
        };
        recording.began = clock.now_ms();
        recording.resident = allocator::live();
        recording
    }

    /// Ends a run. Returns true if another is needed.
    pub fn again(&mut self) -> bool {
        self.current.ms = self.clock.now_ms() - self.began - self.current.begin_ms;
        self.outer_peak = self.outer_peak.max(allocator::peak());
        let trial = std::mem::take(&mut self.trial) && self.trials < MAX_TRIALS;
        if trial || self.warmed < self.repeats.warm_up {
            self.trials += usize::from(trial);
            self.warmed += 1;
            self.current.steps.clear();
            self.current.threads = 0;
        } else {
            let next = RunRecord {
                steps: Vec::with_capacity(self.current.steps.len()),
                ..RunRecord::default()
            };
            // The records of the next run don't count as memory of the model.
            self.resident += next.steps.capacity() * size_of::<StepRecord>();
            self.runs.push(std::mem::replace(&mut self.current, next));
        }
        self.current.begin_ms = self.clock.now_ms() - self.began;
        self.runs.len() < self.repeats.runs.max(1)
    }

    /// The measured runs, and the live bytes before the first.
    pub fn finish(self) -> (Vec<RunRecord>, u64) {
        allocator::raise_peak(self.outer_peak);
        (self.runs, self.resident as u64)
    }
}

impl Timing for Recording<'_> {
    fn threads(&mut self, threads: usize, trial: bool) {
        self.current.threads = self.current.threads.max(threads);
        self.trial |= trial;
    }

    fn begin(&mut self, step: usize) {
        self.outer_peak = self.outer_peak.max(allocator::peak());
        allocator::restart_peak();
        self.current.steps.push(StepRecord {
            step,
            begin_ms: 0.0,
            ms: 0.0,
            peak: 0,
            live: 0,
        });
        if let Some(record) = self.current.steps.last_mut() {
            record.begin_ms = self.clock.now_ms() - self.began;
        }
    }

    fn end(&mut self, step: usize) {
        let now = self.clock.now_ms() - self.began;
        if let Some(record) = self.current.steps.last_mut() {
            record.step = step;
            record.ms = now - record.begin_ms;
            record.peak = allocator::peak().saturating_sub(self.resident) as u64;
            record.live = allocator::live().saturating_sub(self.resident) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake_clock::FakeClock;
    use super::*;

    #[test]
    fn warm_up_runs_are_left_out_and_each_step_has_its_time() {
        let clock = FakeClock::new(1);
        let repeats = Repeats {
            runs: 2,
            warm_up: 1,
        };
        let mut recording = Recording::start(&clock, 2, repeats);
        let mut rounds = 0;
        loop {
            for step in 0..2 {
                recording.begin(step);
                recording.end(step);
            }
            rounds += 1;
            if !recording.again() {
                break;
            }
        }
        let (runs, _) = recording.finish();
        assert_eq!((rounds, runs.len()), (3, 2));
        for run in &runs {
            let steps: Vec<_> = run.steps.iter().map(|m| (m.step, m.ms)).collect();
            assert_eq!(steps, [(0, 1.0), (1, 1.0)]);
            assert_eq!(run.ms, 5.0);
        }
    }

    #[test]
    fn trials_of_other_numbers_of_threads_are_left_out() {
        let clock = FakeClock::new(1);
        let repeats = Repeats {
            runs: 3,
            warm_up: 1,
        };
        let mut recording = Recording::start(&clock, 1, repeats);
        let mut rounds = 0;
        loop {
            let trial = rounds == 2;
            recording.threads(if trial { 1 } else { 2 }, trial);
            recording.begin(0);
            recording.end(0);
            rounds += 1;
            if !recording.again() {
                break;
            }
        }
        let (runs, _) = recording.finish();
        assert_eq!((rounds, runs.len()), (5, 3));
        assert!(
            runs.iter()
                .all(|run| run.threads == 2 && run.steps.len() == 1)
        );
    }
}
