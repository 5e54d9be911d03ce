//! Errors that end the program: one line on the error stream, and an exit code by kind.

use std::fmt::Display;
#[cfg(not(target_family = "wasm"))]
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::panic::{PanicHookInfo, set_hook};
#[cfg(not(target_family = "wasm"))]
use std::sync::{Mutex, PoisonError};

use octet::quantize::QuantizeError;
use octet::runtime::EngineError;
use octet::search::SearchError;
use octet::session::Error;

/// The exit codes, as `octet --help` prints them.
pub const CODES: &str = "\
Exit codes:
  0   success
  1   not finished: a file can't be written, the disk is full
  2   an invalid command line or settings document
  3   an invalid model, sample or other input file
  4   the result is worse than required, verify found a difference, or check a broken rule
  70  an internal error; please report it";

/// The kind of a failure; its number is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The work could not be finished.
    Unfinished = 1,
    /// The command line or a settings document is wrong.
    Usage = 2,
    /// An input file can't be used.
    Input = 3,
    /// The result is worse than required.
    Requirement = 4,
    /// A bug in Octet.
    Internal = 70,
}

/// A failure, with the line to print.
#[derive(Debug)]
pub struct Failure {
    kind: FailureKind,
    pub(super) line: String,
}

impl Failure {
    /// A failure of the command line or of settings.
    pub fn usage(line: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Usage, line)
    }

    /// A failure of an input file.
    pub fn input(line: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Input, line)
    }

    /// A failure to finish the work.
    pub fn unfinished(line: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Unfinished, line)
    }

    /// A result that is worse than required.
    pub fn requirement(line: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Requirement, line)
    }

    /// A bug that was noticed without a panic.
    pub fn internal(line: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Internal, line)
    }

    fn new(kind: FailureKind, line: impl Into<String>) -> Failure {
        Failure {
            kind,
            line: line.into(),
        }
    }

    /// Prefixes the line with the file or sample that it is about.
    pub fn about(self, what: impl Display) -> Failure {
        Failure {
            line: format!("{what}: {}", self.line),
            ..self
        }
    }

    /// Prints the line and returns the exit code.
    pub fn end(&self) -> u8 {
        let line: Vec<&str> = self.line.split_whitespace().collect();
        octet_host::error_line!("octet: {}", line.join(" "));
        self.kind as u8
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(kind_of(&error), error.to_string())
    }
}

impl From<octet::samples::SampleError> for Failure {
    fn from(error: octet::samples::SampleError) -> Failure {
        Failure::input(error.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::new(FailureKind::Internal, error.to_string())
    }
}

impl From<std::fmt::Error> for Failure {
    fn from(error: std::fmt::Error) -> Failure {
        Failure::new(FailureKind::Internal, error.to_string())
    }
}

fn kind_of(error: &Error) -> FailureKind {
    match error {
        Error::Run { source, .. } | Error::Engine(source) => match source {
            EngineError::Panicked { .. } | EngineError::Broken(_) => FailureKind::Internal,
            _ => FailureKind::Input,
        },
        Error::Quantize(cause) => quantize_kind(cause),
        Error::Search(cause) => match cause {
            SearchError::Unreachable { .. } => FailureKind::Unfinished,
            SearchError::TooFewSamples(_) => FailureKind::Input,
            SearchError::Other(_) => FailureKind::Internal,
            _ => FailureKind::Usage,
        },
        Error::Write(_) | Error::Stopped => FailureKind::Unfinished,
        // The order of the steps follows from the options, so such an error is a usage error.
        Error::Order(_) => FailureKind::Usage,
        Error::Broken(_) => FailureKind::Internal,
        _ => FailureKind::Input,
    }
}

fn quantize_kind(cause: &QuantizeError) -> FailureKind {
    match cause {
        QuantizeError::UnknownNode { .. }
        | QuantizeError::UnknownTensor { .. }
        | QuantizeError::UnknownOperator { .. }
        | QuantizeError::ZeroPoint { .. }
        | QuantizeError::Setting { .. }
        | QuantizeError::SignedProducts { .. }
        | QuantizeError::GramMatricesMissing => FailureKind::Usage,
        QuantizeError::OfNode { error, .. } => quantize_kind(error),
        QuantizeError::Broken(_) => FailureKind::Internal,
        _ => FailureKind::Input,
    }
}

/// The line of a panic.
fn internal_error(text: &str) -> String {
    format!(
        "internal error, {text}; no file was replaced: please report this line and the model's name"
    )
}

/// Place and message of a panic, for the one line.
#[cfg(not(target_family = "wasm"))]
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Runs `work`; a panic becomes a failure of the internal kind.
#[cfg(not(target_family = "wasm"))]
pub fn catch_panics(work: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    set_hook(Box::new(|panic: &PanicHookInfo<'_>| {
        let text = panic.to_string();
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let text = PANIC.lock().unwrap_or_else(PoisonError::into_inner);
        Err(Failure::new(FailureKind::Internal, internal_error(&text)))
    })
}

/// Runs `work`. In wasm a panic ends the thread, so the line goes to shared memory first. Node's
/// main thread finds it there, prints it and ends the process with the code of the internal kind.
#[cfg(target_family = "wasm")]
pub fn catch_panics(work: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    set_hook(Box::new(|panic: &PanicHookInfo<'_>| {
        octet::web::record_panic(&internal_error(&panic.to_string()));
    }));
    work()
}

#[cfg(test)]
mod tests {
    use octet::session::OrderError;

    use super::*;

    #[test]
    fn a_panic_is_one_line_and_code_70() {
        let failed = catch_panics(|| panic!("it broke")).unwrap_err();
        assert_eq!(failed.kind, FailureKind::Internal);
        assert!(
            failed.line.contains("it broke") && failed.line.contains("failure.rs"),
            "{}",
            failed.line
        );
        assert_eq!(FailureKind::Internal as u8, 70);
        assert!(catch_panics(|| Ok(())).is_ok());
        let _ = std::panic::take_hook();
    }

    #[test]
    fn errors_have_the_kind_of_their_cause() {
        let unknown = QuantizeError::UnknownNode {
            name: "n".into(),
            hint: String::new(),
        };
        assert_eq!(kind_of(&Error::Quantize(unknown)), FailureKind::Usage);
        assert_eq!(kind_of(&Error::NoSamples), FailureKind::Input);
        assert_eq!(kind_of(&Error::Stopped), FailureKind::Unfinished);
        assert_eq!(
            kind_of(&OrderError::NotCalibrated.into()),
            FailureKind::Usage
        );
    }
}
