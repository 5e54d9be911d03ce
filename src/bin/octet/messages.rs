//! Notes on the error stream, which `--quiet` turns off. Errors are not among them.

use std::sync::atomic::{AtomicBool, Ordering};

use octet_host::error_line;

static QUIET: AtomicBool = AtomicBool::new(false);

/// Turns all notes and progress off, or on.
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// True if neither notes nor progress are to be printed.
pub fn are_off() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a line.
pub fn line(text: &str) {
    if !are_off() {
        error_line!("octet: {text}");
    }
}

/// Prints a note.
pub fn note(text: &str) {
    line(&format!("note: {text}"));
}
