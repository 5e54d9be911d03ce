//! The command line: files in, files out, everything between done by [`octet::session`].
//!
//! Whatever goes wrong ends the program with one line on the error stream that says what, where, why and what to do
//! next, and with a code of its kind ([`failure`]). What was asked for goes to the output stream, progress to the
//! error stream, and only where a person watches it.
#![allow(clippy::result_large_err)]

#[path = "octet/compare.rs"]
mod compare;
#[path = "octet/failure.rs"]
mod failure;
#[path = "octet/files.rs"]
mod files;
#[path = "octet/images.rs"]
mod images;
#[path = "octet/inspect.rs"]
mod inspect;
#[path = "octet/notes.rs"]
mod notes;
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
#[path = "octet/targets.rs"]
mod targets;
#[path = "octet/threads.rs"]
mod threads;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};
use failure::Failure;

/// Quantize ONNX models with your own data.
#[derive(Parser)]
#[command(name = "octet", version, after_help = failure::CODES)]
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

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return misused(&error),
    };
    let done = failure::guarded(|| match arguments.command {
        Command::Quantize(options) => quantize::run(&options),
        Command::Inspect(options) => inspect::run(&options),
        Command::Run(options) => run::run(&options),
        Command::Compare(options) => compare::run(&options),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.end(),
    }
}

/// Help and version as clap prints them; what is wrong with the arguments in one line, with what may have been meant.
fn misused(error: &clap::Error) -> ExitCode {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    match error.kind() {
        DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            if error.use_stderr() {
                ExitCode::from(failure::Kind::Usage as u8)
            } else {
                ExitCode::SUCCESS
            }
        }
        _ => {
            let text = error.to_string();
            let said = text.split("\n\n").next().unwrap_or_default();
            let said = said.trim_start_matches("error: ");
            let meant =
                meant(error).map_or(String::new(), |name| format!(": did you mean {name}?"));
            Failure::usage(format!("{said}{meant}; see octet --help")).end()
        }
    }
}

/// The name that is close to the one that was written.
fn meant(error: &clap::Error) -> Option<&str> {
    let kinds = [
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
    ];
    kinds.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(name) => Some(name.as_str()),
        ContextValue::Strings(names) => names.first().map(String::as_str),
        _ => None,
    })
}
