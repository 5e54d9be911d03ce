//! Progress on the error stream, where a person watches it; nothing otherwise.

use indicatif::{ProgressBar, ProgressStyle};
use octet::session::{Event, ProgressMonitor};

/// A bar over the samples, with the stage before it.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for that many samples.
    pub fn new(samples: usize) -> Progress {
        let bar = ProgressBar::new(samples as u64);
        let style =
            ProgressStyle::with_template("{msg:14} {wide_bar} {pos}/{len} samples, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress { bar }
    }

    /// Says what is being done now.
    pub fn stage(&self, name: &str) {
        self.bar.set_message(name.to_string());
    }

    /// Says something to keep, if a person watches.
    pub fn tell(&self, text: &str) {
        if !self.bar.is_hidden() {
            self.bar.suspend(|| eprintln!("octet: {text}"));
        }
    }

    /// Says something to keep, above the bar.
    pub fn note(&self, text: &str) {
        self.bar.suspend(|| eprintln!("octet: note: {text}"));
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // An error is said on a clean line.
        self.clear();
    }
}

impl ProgressMonitor for Progress {
    fn event(&self, event: &Event) {
        match event {
            Event::Stage { name } => self.stage(name),
            Event::Sample { done, .. } => self.bar.set_position(*done as u64),
        }
    }
}
