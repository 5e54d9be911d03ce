//! Choice of the number of threads of a plan, by the times of its runs.
//!
//! A second thread does not always pay. If another program uses the processors, an operator waits
//! for the thread that was suspended, and two threads take longer than one. The operating system
//! doesn't tell a web page its load, so a plan measures: it runs with each number of threads in
//! turns, and continues with the fastest. Now and then a run tries another number. Results are the
//! same for any number of threads.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Rounds of a comparison.
const ROUNDS: usize = 3;

/// A number of threads leaves a comparison if it takes this many times the shortest run.
const HOPELESS: f64 = 1.3;

/// Runs are compared again if they take this many times as long as before.
const SLOWER: f64 = 1.25;

/// Runs between two trials at first, and at most. Each trial without a gain doubles their number.
const TRIAL_INTERVAL: (usize, usize) = (8, 128);

/// Number of recent runs whose median counts.
const RECENT: usize = 3;

/// A clock in milliseconds.
pub type NowMs = fn() -> f64;

/// Number of threads for one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadRun {
    pub(super) threads: usize,
    /// The run belongs to a comparison, so its time is not that of the choice.
    pub(super) trial: bool,
}

impl ThreadRun {
    /// A run that is not measured.
    pub(super) fn on_all(threads: usize) -> ThreadRun {
        let trial = false;
        ThreadRun { threads, trial }
    }
}

#[derive(Debug, Default)]
pub(super) struct ThreadChoice(Mutex<ChoiceState>);

impl ThreadChoice {
    /// The number of threads for the next run, if `most` are available.
    pub(super) fn next(&self, most: usize) -> ThreadRun {
        self.state().next(most)
    }

    /// Takes the time of a run. `parallel` is true if an operator ran on several threads.
    pub(super) fn ran(&self, run: ThreadRun, ms: f64, parallel: bool) {
        self.state().ran(run, ms, parallel);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ChoiceState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct ChoiceState {
    /// Number of threads that are available; 0 before the first run.
    most: usize,
    phase: ChoicePhase,
    chosen: usize,
    /// Last times of the choice.
    recent: VecDeque<f64>,
    /// Shortest median of `recent` since the last comparison.
    usual: f64,
    /// Runs since the last comparison or trial.
    runs: usize,
    /// Runs until the next trial.
    interval: usize,
    /// Number of trials so far.
    trials: usize,
}

#[derive(Debug, Default)]
enum ChoicePhase {
    /// The first run has cold caches, so its time doesn't count.
    #[default]
    First,
    Comparing {
        /// Runs that follow.
        queue: VecDeque<usize>,
        /// Threads and times of the runs so far.
        times: Vec<(usize, f64)>,
    },
    Chosen,
    /// A single run with another number of threads.
    Trying(usize),
    /// No operator runs in parallel.
    Sequential,
}

impl ChoiceState {
    fn next(&mut self, most: usize) -> ThreadRun {
        if most != self.most {
            *self = ChoiceState {
                most,
                chosen: most,
                ..ChoiceState::default()
            };
        }
        if let ChoicePhase::Comparing { queue, times } = &mut self.phase {
            if let Some(threads) = queue.pop_front() {
                let trial = true;
                return ThreadRun { threads, trial };
            }
            let times = std::mem::take(times);
            self.choose(&times);
        }
        if let ChoicePhase::Trying(_) = self.phase {
            // The trial was stopped or failed.
            self.phase = ChoicePhase::Chosen;
        }
        if let ChoicePhase::Chosen = self.phase {
            self.runs += 1;
            if self.runs > self.interval
                && let Some(threads) = self.other()
            {
                (self.runs, self.phase) = (0, ChoicePhase::Trying(threads));
                let trial = true;
                return ThreadRun { threads, trial };
            }
        }
        ThreadRun {
            threads: self.chosen,
            trial: false,
        }
    }

    fn ran(&mut self, run: ThreadRun, ms: f64, parallel: bool) {
        if run.threads > 1 && !parallel {
            (self.phase, self.chosen) = (ChoicePhase::Sequential, 1);
        }
        match &mut self.phase {
            ChoicePhase::First if self.most > 1 => self.compare(numbers(self.most)),
            ChoicePhase::Comparing { queue, times } if run.trial => {
                times.push((run.threads, ms));
                let shortest = times
                    .iter()
                    .map(|(_, ms)| *ms)
                    .fold(f64::INFINITY, f64::min);
                let hopeless = |threads: usize| {
                    let mut own = times.iter().filter(|(of, _)| *of == threads).peekable();
                    own.peek().is_some() && own.all(|(_, ms)| *ms > HOPELESS * shortest)
                };
                queue.retain(|&threads| !hopeless(threads));
                let one_left = queue.iter().all(|threads| Some(threads) == queue.front());
                if one_left
                    && queue
                        .front()
                        .is_some_and(|front| times.iter().any(|(of, _)| of == front))
                {
                    queue.clear();
                }
            }
            ChoicePhase::Trying(threads) if run.trial => {
                let threads = *threads;
                self.phase = ChoicePhase::Chosen;
                if ms < median(self.recent.iter().copied()) {
                    self.compare(vec![threads, self.chosen]);
                } else {
                    self.interval = (2 * self.interval).min(TRIAL_INTERVAL.1);
                }
            }
            ChoicePhase::Chosen if run.threads == self.chosen => self.observe(ms),
            _ => {}
        }
    }

    /// Begins a comparison.
    fn compare(&mut self, numbers: Vec<usize>) {
        self.phase = ChoicePhase::Comparing {
            queue: numbers.repeat(ROUNDS).into(),
            times: Vec::new(),
        };
    }

    /// Ends a comparison.
    fn choose(&mut self, times: &[(usize, f64)]) {
        let of = |threads: usize| {
            let own = times.iter().filter(move |(of, _)| *of == threads);
            median(own.map(|(_, ms)| *ms))
        };
        let mut numbers: Vec<usize> = times.iter().map(|(threads, _)| *threads).collect();
        // The sort is stable, so equal times keep the order of the comparison.
        numbers.sort_by(|&one, &other| of(one).total_cmp(&of(other)));
        if let Some(&fastest) = numbers.first() {
            if fastest != self.chosen {
                self.interval = 0;
            }
            (self.chosen, self.usual) = (fastest, of(fastest));
            let own = times.iter().filter(|(threads, _)| *threads == fastest);
            self.recent = own.map(|(_, ms)| *ms).collect();
        }
        self.interval = self.interval.max(TRIAL_INTERVAL.0);
        (self.runs, self.phase) = (0, ChoicePhase::Chosen);
    }

    /// Takes the time of a run with the chosen number.
    fn observe(&mut self, ms: f64) {
        if self.recent.len() >= RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(ms);
        let now = median(self.recent.iter().copied());
        self.usual = self.usual.min(now);
        if now > SLOWER * self.usual && self.runs >= TRIAL_INTERVAL.0 {
            self.interval = 0;
            self.compare(numbers(self.most));
        }
    }

    /// The number of threads that the next trial uses.
    fn other(&mut self) -> Option<usize> {
        let others = numbers(self.most).into_iter();
        let others: Vec<usize> = others.filter(|&number| number != self.chosen).collect();
        self.trials += 1;
        others.get(self.trials % others.len().max(1)).copied()
    }
}

/// The numbers of threads that are compared: all, a half of them, and so on down to one.
fn numbers(most: usize) -> Vec<usize> {
    std::iter::successors(Some(most), |&number| (number > 1).then_some(number / 2)).collect()
}

/// The median; infinity without values.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
        .get(values.len() / 2)
        .copied()
        .unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs that take a time by their number and threads. Returns the runs.
    fn runs(
        choice: &ThreadChoice,
        most: usize,
        count: usize,
        ms: impl Fn(usize, usize) -> f64,
    ) -> Vec<ThreadRun> {
        let run = |at: usize| {
            let run = choice.next(most);
            choice.ran(run, ms(at, run.threads), run.threads > 1);
            run
        };
        (0..count).map(run).collect()
    }

    fn share(runs: &[ThreadRun], threads: usize) -> f64 {
        let with = runs.iter().filter(|run| run.threads == threads).count();
        with as f64 / runs.len() as f64
    }

    #[test]
    fn the_fastest_number_runs_and_the_others_rarely() {
        let choice = ThreadChoice::default();
        let quiet = runs(&choice, 2, 200, |_, threads| 10.0 / threads as f64);
        assert!(share(&quiet, 2) > 0.95, "{quiet:?}");
        let choice = ThreadChoice::default();
        let busy = runs(&choice, 4, 200, |_, threads| 5.0 + threads as f64);
        assert!(share(&busy, 1) > 0.9, "{busy:?}");
    }

    #[test]
    fn the_choice_follows_the_load() {
        let choice = ThreadChoice::default();
        let busy = |_: usize, threads: usize| if threads > 1 { 16.0 } else { 10.0 };
        let quiet = |_: usize, threads: usize| if threads > 1 { 5.5 } else { 10.0 };
        runs(&choice, 2, 100, quiet);
        assert!(share(&runs(&choice, 2, 100, busy), 1) > 0.8);
        assert!(share(&runs(&choice, 2, 400, quiet), 2) > 0.6);
        assert!(share(&runs(&choice, 2, 40, quiet), 2) > 0.9);
    }

    #[test]
    fn trials_are_marked_and_end() {
        let choice = ThreadChoice::default();
        let runs = runs(&choice, 2, 100, |_, threads| 10.0 / threads as f64);
        assert_eq!((runs[0].threads, runs[0].trial), (2, false));
        assert!(runs[1].trial && runs[2].trial && !runs[3].trial);
        assert!(runs.iter().all(|run| run.trial || run.threads == 2));
        assert!(runs.iter().filter(|run| run.trial).count() < 10);
    }

    #[test]
    fn noise_does_not_keep_the_choice_busy() {
        let choice = ThreadChoice::default();
        // Both numbers take the same time but for noise of a fifth.
        let noisy = runs(&choice, 2, 1000, |at, _| {
            10.0 + (at * 7919 % 101) as f64 / 50.0
        });
        let trials = noisy.iter().filter(|run| run.trial).count();
        assert!(trials < 500, "{trials}");
    }

    #[test]
    fn a_plan_without_parallel_operators_runs_on_one_thread() {
        let choice = ThreadChoice::default();
        let first = choice.next(2);
        choice.ran(first, 1.0, false);
        let all = runs(&choice, 2, 50, |_, _| 1.0);
        assert!(all.iter().all(|run| (run.threads, run.trial) == (1, false)));
    }

    #[test]
    fn a_trial_that_fails_is_forgotten() {
        let choice = ThreadChoice::default();
        for _ in 0..100 {
            choice.next(2);
        }
        let after = runs(&choice, 2, 100, |_, threads| 10.0 / threads as f64);
        assert!(share(&after, 2) > 0.9);
    }
}
