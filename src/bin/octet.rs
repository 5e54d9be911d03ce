//! The command line: files in, files out, everything between done by [`octet::session`].
//!
//! Whatever is wrong with the input ends the program with code 2 and one line on the error stream
//! that says what, where, why and what to do next. What was asked for goes to the output stream,
//! progress to the error stream, and only where a person watches it.
#![allow(clippy::result_large_err)]

#[path = "octet/compare.rs"]
mod compare;
#[path = "octet/files.rs"]
mod files;
#[path = "octet/images.rs"]
mod images;
#[path = "octet/inspect.rs"]
mod inspect;
#[path = "octet/open.rs"]
mod open;
#[path = "octet/progress.rs"]
mod progress;
#[path = "octet/quantize.rs"]
mod quantize;
#[path = "octet/ranges.rs"]
mod ranges;
#[path = "octet/reports.rs"]
mod reports;
#[path = "octet/run.rs"]
mod run;
#[path = "octet/samples.rs"]
mod samples;
#[path = "octet/settings.rs"]
mod settings;
#[path = "octet/threads.rs"]
mod threads;

use std::fmt::Display;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

/// Quantize ONNX models with your own data.
#[derive(Parser)]
#[command(name = "octet", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Turn a float model into an 8-bit one
    Quantize(Box<quantize::Options>),
    /// Tell what is in a model and what of it can be quantized
    Inspect(inspect::Options),
    /// Run a model on a sample; with --profile, tell what each layer took
    Run(Box<run::Options>),
    /// Hold a quantized model against the float model: error of each output and layer, and where it comes from
    Compare(Box<compare::Options>),
}

/// What ended the program, as the one line it says.
pub struct Failure(String);

impl<E: Display> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure(error.to_string())
    }
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return misused(&error),
    };
    let result = match arguments.command {
        Command::Quantize(options) => quantize::run(&options),
        Command::Inspect(options) => inspect::run(&options),
        Command::Run(options) => run::run(&options),
        Command::Compare(options) => compare::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(line)) => fail(&line),
    }
}

/// Help and version as clap prints them; what is wrong with the arguments in one line.
fn misused(error: &clap::Error) -> ExitCode {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    match error.kind() {
        DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            if error.use_stderr() {
                ExitCode::from(2)
            } else {
                ExitCode::SUCCESS
            }
        }
        _ => {
            let text = error.to_string();
            let said = text.split("\n\n").next().unwrap_or_default();
            fail(&format!(
                "{}; see octet --help",
                said.trim_start_matches("error: ")
            ))
        }
    }
}

fn fail(message: &str) -> ExitCode {
    let line: Vec<&str> = message.split_whitespace().collect();
    eprintln!("octet: {}", line.join(" "));
    ExitCode::from(2)
}
