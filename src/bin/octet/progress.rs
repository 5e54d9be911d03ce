//! Progress on the error stream: a bar on a terminal. Elsewhere, as in the log of a CI run, a line
//! for each stage and one every ten seconds.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use octet::session::{Event, ProgressMonitor};
use octet_host::time::Instant;

use super::bar::{ProgressBar, ProgressStyle};
use super::messages;

/// The time between two lines of one stage.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// The progress of a run through its stages.
pub struct Progress {
    bar: ProgressBar,
    /// Set where there is no terminal.
    lines: Option<Mutex<StageLines>>,
}

/// The stage that lines were printed about.
struct StageLines {
    stage: String,
    last: Instant,
    of: u64,
    unit: Unit,
}

/// The unit of the counts.
#[derive(Clone, Copy)]
enum Unit {
    Samples,
    Layers,
    Bytes,
}

impl Progress {
    /// A bar over samples, at the stage in which the model is read.
    pub fn reading(model: &Path) -> Progress {
        let style = "{msg:14} {wide_bar} {pos}/{len}, {eta} left";
        let progress = Progress::begin(0, Unit::Samples, style);
        let name = model.file_name().unwrap_or_default();
        progress.stage(&format!("Reading {}", name.to_string_lossy()));
        progress
    }

    /// A bar over bytes.
    pub fn of_bytes(bytes: u64) -> Progress {
        let style = "{msg} {wide_bar} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";
        Progress::begin(bytes, Unit::Bytes, style)
    }

    fn begin(of: u64, unit: Unit, style: &str) -> Progress {
        let bar = match messages::are_off() {
            true => ProgressBar::hidden(),
            false => ProgressBar::new(of),
        };
        let style = ProgressStyle::with_template(style);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let lines = bar.is_hidden().then(|| {
            Mutex::new(StageLines {
                stage: String::new(),
                last: Instant::now(),
                of,
                unit,
            })
        });
        Progress { bar, lines }
    }

    /// Sets the number of all bytes, samples or layers.
    pub fn set_length(&self, length: u64) {
        self.bar.set_length(length);
        self.with_lines(|lines| lines.of = length);
    }

    /// Shows the name of the current stage.
    pub fn stage(&self, name: &str) {
        self.bar.set_message(name.to_string());
        self.with_lines(|lines| lines.begin(name));
    }

    /// Shows how many of them are done.
    pub fn set_position(&self, done: u64) {
        self.bar.set_position(done);
        self.with_lines(|lines| lines.advance(done));
    }

    fn with_lines(&self, change: impl FnOnce(&mut StageLines)) {
        if let Some(lines) = &self.lines {
            change(&mut lines.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Prints a line above the bar, only on a terminal.
    pub fn tell(&self, text: &str) {
        if !self.bar.is_hidden() {
            self.bar.suspend(|| messages::line(text));
        }
    }

    /// Prints a note above the bar.
    pub fn note(&self, text: &str) {
        self.bar.suspend(|| messages::note(text));
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl StageLines {
    fn begin(&mut self, stage: &str) {
        // A sentence goes on after the program's name.
        let mut letters = stage.chars();
        let first = letters
            .next()
            .map(|letter| letter.to_lowercase().to_string());
        self.stage = first.unwrap_or_default() + letters.as_str();
        self.last = Instant::now();
        messages::line(&self.stage);
    }

    fn advance(&mut self, done: u64) {
        if self.last.elapsed() < BETWEEN_LINES || self.stage.is_empty() {
            return;
        }
        self.last = Instant::now();
        let (stage, of) = (&self.stage, self.of);
        let millions = |bytes: u64| bytes as f64 / 1e6;
        messages::line(&match self.unit {
            Unit::Samples => format!("{stage}: {done} of {of} samples"),
            Unit::Layers => format!("{stage}: {done} of {of} layers"),
            Unit::Bytes => format!("{stage}: {:.0} of {:.0} MB", millions(done), millions(of)),
        });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // Errors are printed on a clean line.
        self.clear();
    }
}

impl ProgressMonitor for Progress {
    fn event(&self, event: &Event) {
        match event {
            Event::Sample { done, .. } => self.set_position(*done as u64),
            Event::Layer { done, of, report } => {
                self.with_lines(|lines| lines.unit = Unit::Layers);
                self.set_length(*of as u64);
                self.set_position(*done as u64);
                let gain = 10.0 * (report.before / report.after.max(f64::MIN_POSITIVE)).log10();
                let layer = &report.layer;
                self.tell(&format!(
                    "{layer}: {} ({gain:.1} dB less error)",
                    report.taken
                ));
            }
        }
    }
}
