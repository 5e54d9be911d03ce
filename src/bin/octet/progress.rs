//! Progress on the error stream, if that is a terminal.

use octet::session::{Event, ProgressMonitor};

use super::bar::{ProgressBar, ProgressStyle};
use super::messages;

/// A bar of a length, which `--quiet` hides.
pub fn bar(length: u64) -> ProgressBar {
    match messages::are_off() {
        true => ProgressBar::hidden(),
        false => ProgressBar::new(length),
    }
}

/// A progress bar over the samples, with the name of the stage.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for a number of samples.
    pub fn new(samples: usize) -> Progress {
        let bar = bar(samples as u64);
        let style = ProgressStyle::with_template("{msg:14} {wide_bar} {pos}/{len}, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress { bar }
    }

    /// Shows the name of the current stage.
    pub fn stage(&self, name: &str) {
        self.bar.set_message(name.to_string());
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

impl Drop for Progress {
    fn drop(&mut self) {
        // Errors are printed on a clean line.
        self.clear();
    }
}

impl ProgressMonitor for Progress {
    fn event(&self, event: &Event) {
        match event {
            Event::Sample { done, .. } => self.bar.set_position(*done as u64),
            Event::Layer { done, of, report } => {
                self.bar.set_length(*of as u64);
                self.bar.set_position(*done as u64);
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
