//! What repeated runs of a plan leave: for each step and run its time, and what memory was live.

use super::clock::Clock;
use super::memory;
use crate::engine::Timing;

/// One execution of one step. Memory counts from what was live when the recording began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Which step.
    pub step: usize,
    /// When it began, in milliseconds since the recording began.
    pub begin_ms: f64,
    /// How long it took.
    pub ms: f64,
    /// The most bytes that were live while it ran.
    pub peak: u64,
    /// The bytes live once it had ended, and what it read for the last time was freed.
    pub live: u64,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// When it began, in milliseconds since the recording began.
    pub begin_ms: f64,
    /// How long it took as a whole.
    pub ms: f64,
    /// Its steps as they ran.
    pub moments: Vec<Moment>,
}

/// How often a model is run to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// So many runs are measured.
    pub runs: usize,
    /// So many run before, unmeasured: the first ones meet cold caches, and in a browser slow code.
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

/// Records runs; the memory of each step is that of the whole process, so nothing else should run beside.
pub struct Recording<'a> {
    clock: &'a dyn Clock,
    began: f64,
    /// What was live before: weights, plan, file.
    resident: usize,
    repeats: Repeats,
    warmed: usize,
    current: Run,
    /// The peak of all that was before, and is after, this recording.
    outer_peak: usize,
    runs: Vec<Run>,
}

impl<'a> Recording<'a> {
    /// Begins; room for the moments of `steps` steps is made now, so that it isn't counted later.
    pub fn start(clock: &'a dyn Clock, steps: usize, repeats: Repeats) -> Recording<'a> {
        let mut recording = Recording {
            clock,
            began: 0.0,
            resident: 0,
            repeats,
            warmed: 0,
            current: Run {
                moments: Vec::with_capacity(steps),
                ..Run::default()
            },
            outer_peak: memory::peak(),
            runs: Vec::with_capacity(repeats.runs),
        };
        recording.began = clock.now_ms();
        recording.resident = memory::live();
        recording
    }

    /// Ends a run; whether another is wanted.
    pub fn again(&mut self) -> bool {
        self.current.ms = self.clock.now_ms() - self.began - self.current.begin_ms;
        self.outer_peak = self.outer_peak.max(memory::peak());
        if self.warmed < self.repeats.warm_up {
            self.warmed += 1;
            self.current.moments.clear();
        } else {
            let next = Run {
                moments: Vec::with_capacity(self.current.moments.len()),
                ..Run::default()
            };
            // The room for the next run's moments is no memory of the model.
            self.resident += next.moments.capacity() * size_of::<Moment>();
            self.runs.push(std::mem::replace(&mut self.current, next));
        }
        self.current.begin_ms = self.clock.now_ms() - self.began;
        self.runs.len() < self.repeats.runs.max(1)
    }

    /// The measured runs, and the bytes that were live before the first.
    pub fn finish(self) -> (Vec<Run>, u64) {
        memory::raise_peak(self.outer_peak);
        (self.runs, self.resident as u64)
    }
}

impl Timing for Recording<'_> {
    fn begin(&mut self, step: usize) {
        self.outer_peak = self.outer_peak.max(memory::peak());
        memory::restart_peak();
        self.current.moments.push(Moment {
            step,
            begin_ms: 0.0,
            ms: 0.0,
            peak: 0,
            live: 0,
        });
        if let Some(moment) = self.current.moments.last_mut() {
            moment.begin_ms = self.clock.now_ms() - self.began;
        }
    }

    fn end(&mut self, step: usize) {
        let now = self.clock.now_ms() - self.began;
        if let Some(moment) = self.current.moments.last_mut() {
            moment.step = step;
            moment.ms = now - moment.begin_ms;
            moment.peak = memory::peak().saturating_sub(self.resident) as u64;
            moment.live = memory::live().saturating_sub(self.resident) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ticking::Ticking;
    use super::*;

    #[test]
    fn warm_up_runs_are_left_out_and_each_step_has_its_time() {
        let clock = Ticking::by(1);
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
            let steps: Vec<_> = run.moments.iter().map(|m| (m.step, m.ms)).collect();
            assert_eq!(steps, [(0, 1.0), (1, 1.0)]);
            assert_eq!(run.ms, 5.0);
        }
    }
}
