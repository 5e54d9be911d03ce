//! What ends the program early: one line on the error stream, and a code that says of which kind it is.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use octet::engine::EngineError;
use octet::quantize::QuantizeError;
use octet::session::Error;

/// The codes, as `octet --help` tells them.
pub const CODES: &str = "\
Exit codes:
  0   it is done
  1   it could not be finished: a file can't be written, the disk is full
  2   the command line or a settings document is wrong
  3   a model, a sample or another file can't be used
  70  an error inside of Octet, to be reported";

/// Of which kind a failure is; its number is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It could not be finished.
    Unfinished = 1,
    /// The command line or a settings document is wrong.
    Usage = 2,
    /// A file that was given can't be used.
    Input = 3,
    /// An error of ours.
    Internal = 70,
}

/// What ended the program, as the one line it says.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    line: String,
}

impl Failure {
    /// Of the command line or of settings.
    pub fn usage(line: impl Into<String>) -> Failure {
        Failure::of(Kind::Usage, line)
    }

    /// Of a file that was given.
    pub fn input(line: impl Into<String>) -> Failure {
        Failure::of(Kind::Input, line)
    }

    /// Of what could not be finished.
    pub fn unfinished(line: impl Into<String>) -> Failure {
        Failure::of(Kind::Unfinished, line)
    }

    fn of(kind: Kind, line: impl Into<String>) -> Failure {
        Failure {
            kind,
            line: line.into(),
        }
    }

    /// The same with what it is about in front.
    pub fn about(self, what: impl Display) -> Failure {
        Failure {
            line: format!("{what}: {}", self.line),
            ..self
        }
    }

    /// Says the line, and gives the code to end with.
    pub fn end(&self) -> ExitCode {
        let line: Vec<&str> = self.line.split_whitespace().collect();
        eprintln!("octet: {}", line.join(" "));
        ExitCode::from(self.kind as u8)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::of(kind_of(&error), error.to_string())
    }
}

impl From<octet::samples::SampleError> for Failure {
    fn from(error: octet::samples::SampleError) -> Failure {
        Failure::input(error.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::of(Kind::Internal, error.to_string())
    }
}

impl From<std::fmt::Error> for Failure {
    fn from(error: std::fmt::Error) -> Failure {
        Failure::of(Kind::Internal, error.to_string())
    }
}

fn kind_of(error: &Error) -> Kind {
    match error {
        Error::Run { source, .. } | Error::Engine(source) => match source {
            EngineError::Panicked { .. } => Kind::Internal,
            _ => Kind::Input,
        },
        Error::Quantize(cause) => quantizing(cause),
        Error::Write(_) | Error::Stopped => Kind::Unfinished,
        // Of the order of things a person decides by options.
        _ if error.kind() == "order" => Kind::Usage,
        _ => Kind::Input,
    }
}

fn quantizing(cause: &QuantizeError) -> Kind {
    match cause {
        QuantizeError::UnknownNode { .. }
        | QuantizeError::UnknownTensor { .. }
        | QuantizeError::UnknownOperator { .. }
        | QuantizeError::ZeroPoint { .. }
        | QuantizeError::Setting { .. }
        | QuantizeError::GramMatricesMissing => Kind::Usage,
        QuantizeError::OfNode { error, .. } => quantizing(error),
        _ => Kind::Input,
    }
}

/// Where and why a panic began, for the one line.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Does the work; a panic in it is a failure of ours, told in one line.
pub fn guarded(work: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    set_hook(Box::new(|panic| {
        let text = panic.to_string();
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let text = PANIC.lock().unwrap_or_else(PoisonError::into_inner);
        Err(Failure::of(
            Kind::Internal,
            format!(
                "an error inside of Octet, {text}; no file was replaced: please report it with this line and the model's name"
            ),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_one_line_and_code_70() {
        let failed = guarded(|| panic!("it broke")).unwrap_err();
        assert_eq!(failed.kind, Kind::Internal);
        assert!(
            failed.line.contains("it broke") && failed.line.contains("failure.rs"),
            "{}",
            failed.line
        );
        assert_eq!(Kind::Internal as u8, 70);
        assert!(guarded(|| Ok(())).is_ok());
        let _ = std::panic::take_hook();
    }

    #[test]
    fn errors_have_the_kind_of_their_cause() {
        let unknown = QuantizeError::UnknownNode {
            name: "n".into(),
            hint: String::new(),
        };
        assert_eq!(kind_of(&Error::Quantize(unknown)), Kind::Usage);
        assert_eq!(kind_of(&Error::NoSamples), Kind::Input);
        assert_eq!(kind_of(&Error::Stopped), Kind::Unfinished);
        assert_eq!(kind_of(&Error::NotCalibrated), Kind::Usage);
    }
}
