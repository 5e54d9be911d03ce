//! The command line: it reads files, calls [`octet::session`] and writes files.
//!
//! An error ends the program with one line on the error stream and an exit code ([`failure`]). The
//! line says what is wrong, where, why and what to do next. Results go to the output stream;
//! progress goes to the error stream, as a bar on a terminal and as lines elsewhere.
#![forbid(unsafe_code)]
#![allow(clippy::result_large_err)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

#[path = "octet/bar.rs"]
mod bar;
#[path = "octet/calibration.rs"]
mod calibration;
#[path = "octet/check.rs"]
mod check;
#[path = "octet/compare.rs"]
mod compare;
#[path = "octet/comparison_text.rs"]
mod comparison_text;
#[path = "octet/completions.rs"]
mod completions;
#[path = "octet/doctor.rs"]
mod doctor;
#[path = "octet/failure.rs"]
mod failure;
#[path = "octet/files.rs"]
mod files;
#[path = "octet/images.rs"]
mod images;
#[path = "octet/inspect.rs"]
mod inspect;
#[path = "octet/interrupt.rs"]
mod interrupt;
#[path = "octet/labels.rs"]
mod labels;
#[path = "octet/making.rs"]
mod making;
#[path = "octet/merge.rs"]
mod merge;
#[path = "octet/messages.rs"]
mod messages;
#[path = "octet/model_card.rs"]
mod model_card;
#[path = "octet/notes.rs"]
mod notes;
#[path = "octet/observe.rs"]
mod observe;
#[path = "octet/open.rs"]
mod open;
#[path = "octet/progress.rs"]
mod progress;
#[path = "octet/quantize.rs"]
mod quantize;
#[path = "octet/ranges.rs"]
mod ranges;
#[path = "octet/read_ahead.rs"]
mod read_ahead;
#[path = "octet/reports.rs"]
mod reports;
#[path = "octet/run.rs"]
mod run;
#[path = "octet/samples.rs"]
mod samples;
#[path = "octet/search.rs"]
mod search;
#[path = "octet/search_passes.rs"]
mod search_passes;
#[path = "octet/search_samples.rs"]
mod search_samples;
#[path = "octet/search_shards.rs"]
mod search_shards;
#[path = "octet/search_table.rs"]
mod search_table;
#[path = "octet/settings.rs"]
mod settings;
#[path = "octet/settings_help.rs"]
mod settings_help;
#[path = "octet/shard_comparison.rs"]
mod shard_comparison;
#[path = "octet/shard_samples.rs"]
mod shard_samples;
#[path = "octet/short_form.rs"]
mod short_form;
#[path = "octet/stats_files.rs"]
mod stats_files;
#[path = "octet/stream.rs"]
mod stream;
#[path = "octet/stream_parts.rs"]
mod stream_parts;
#[path = "octet/stream_report.rs"]
mod stream_report;
#[path = "octet/stream_source.rs"]
mod stream_source;
#[path = "octet/targets.rs"]
mod targets;
#[path = "octet/texts.rs"]
mod texts;
#[path = "octet/threads.rs"]
mod threads;
#[cfg(target_family = "wasm")]
#[path = "octet/tokenizer_module.rs"]
mod tokenizer_module;
#[path = "octet/transformers_js.rs"]
mod transformers_js;
#[path = "octet/tuning.rs"]
mod tuning;
#[path = "octet/verify.rs"]
mod verify;
#[path = "octet/write_behind.rs"]
mod write_behind;

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;

/// Exit code of a command that did all it should.
const SUCCESS: u8 = 0;

/// Quantize ONNX models with your own data. `octet MODEL SAMPLES` is `octet quantize MODEL --samples
/// SAMPLES`.
#[derive(Parser)]
#[command(name = "octet", version, after_help = failure::CODES, override_usage = USAGE)]
struct Arguments {
    /// Print no progress and no notes, only errors and results
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

const USAGE: &str = "octet MODEL.onnx SAMPLES...\n       octet COMMAND ...";

#[derive(Subcommand)]
enum Command {
    /// Quantize a float model with your own samples
    #[command(after_help = quantize::AFTERWARDS)]
    Quantize(Box<quantize::QuantizeOptions>),
    /// Observe a shard of the samples, for a calibration that several machines share
    Observe(Box<observe::ObserveOptions>),
    /// Merge the files of `octet observe`
    Merge(merge::MergeOptions),
    /// Show what a model contains and how much of it can be quantized
    Inspect(inspect::InspectOptions),
    /// Run a model on one sample; with --profile, time each layer
    Run(Box<run::RunOptions>),
    /// Choose the bits of each tensor under a budget of accuracy, bytes or time
    Search(Box<search::SearchCommand>),
    /// Check a file against the rules of the place where it will run
    Check(check::CheckOptions),
    /// Compare a quantized model with its float model: the error of each output and layer
    Compare(Box<compare::CompareOptions>),
    /// Make a quantized model again and compare: equal, or the first tensors and nodes that differ
    Verify(Box<verify::VerifyOptions>),
    /// Check this machine and this build, and tell what would become of a model
    Doctor(doctor::DoctorOptions),
    /// Print a script that completes commands and options in a shell
    Completions(completions::CompletionOptions),
}

#[cfg(not(target_family = "wasm"))]
fn main() -> std::process::ExitCode {
    command_line(std::env::args_os()).into()
}

/// Number of threads of the command in these arguments; none if it needs no pool. Node starts the
/// threads before it calls [`command_line`]; `packages/npm/src/command.js` lists what needs none.
#[cfg(target_family = "wasm")]
pub fn threads_wanted(arguments: impl IntoIterator<Item = OsString>) -> usize {
    match parsed(arguments).map(|parsed| parsed.command) {
        Err(_) | Ok(Command::Inspect(_) | Command::Check(_) | Command::Completions(_)) => 0,
        Ok(Command::Doctor(options)) => threads::wanted(options.threads),
        Ok(Command::Observe(options)) => threads::wanted(options.threads),
        Ok(Command::Merge(options)) => threads::wanted(options.threads),
        Ok(Command::Search(command)) => threads::wanted(command.threads),
        Ok(Command::Quantize(options)) => threads::wanted(options.threads),
        Ok(Command::Verify(options)) => threads::wanted(options.quantize.threads),
        Ok(Command::Run(options)) => threads::wanted(options.threads),
        Ok(Command::Compare(options)) => threads::wanted(options.threads),
    }
}

/// Runs the command in these arguments, the first of which is the program. Returns the exit code.
pub fn command_line(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = match parsed(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return usage_error(&error),
    };
    messages::set_quiet(arguments.quiet);
    if arguments.quiet && arguments.command.is_verbose() {
        return Failure::usage("--quiet and --verbose exclude each other: leave one out").end();
    }
    let done = failure::catch_panics(|| match arguments.command {
        Command::Quantize(options) => quantize::run(&options),
        Command::Observe(options) => observe::run(&options),
        Command::Merge(options) => merge::run(&options),
        Command::Inspect(options) => inspect::run(&options),
        Command::Check(options) => check::run(&options),
        Command::Run(options) => run::run(&options),
        Command::Search(command) => search::run(&command),
        Command::Compare(options) => compare::run(&options),
        Command::Verify(options) => verify::run(&options),
        Command::Doctor(options) => doctor::run(&options),
        Command::Completions(options) => completions::run(&options, Arguments::command()),
    });
    match done {
        Ok(()) => SUCCESS,
        Err(failure) => failure.end(),
    }
}

/// Reads the arguments, in their long or short form.
fn parsed(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let mut known = Arguments::command();
    known.build();
    let is_subcommand = |word: &OsStr| known.find_subcommand(word).is_some();
    Arguments::try_parse_from(short_form::expanded(arguments, is_subcommand))
}

impl Command {
    fn is_verbose(&self) -> bool {
        match self {
            Command::Quantize(options) => options.verbose,
            Command::Verify(options) => options.quantize.verbose,
            Command::Search(options) => options.verbose,
            _ => false,
        }
    }
}

/// Prints help and version as clap does. An error in the arguments becomes one line with a
/// suggestion.
fn usage_error(error: &clap::Error) -> u8 {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    match error.kind() {
        DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand => {
            print_help(error);
            if error.use_stderr() {
                failure::FailureKind::Usage as u8
            } else {
                SUCCESS
            }
        }
        _ => {
            let text = error.to_string();
            let message = match error.get(ContextKind::InvalidSubcommand) {
                Some(word) => &format!("`{word}` is neither a command nor a model"),
                None => text.split("\n\n").next().unwrap_or_default(),
            };
            let message = message.trim_start_matches("error: ");
            let suggestion =
                suggestion(error).map_or(String::new(), |name| format!(": did you mean {name}?"));
            Failure::usage(format!("{message}{suggestion}; see octet --help")).end()
        }
    }
}

/// Prints help and version, on a terminal with colours.
#[cfg(not(target_family = "wasm"))]
fn print_help(error: &clap::Error) {
    let _ = error.print();
}

/// Prints help and version.
#[cfg(target_family = "wasm")]
fn print_help(error: &clap::Error) {
    let text = error.render().to_string();
    if error.use_stderr() {
        octet_host::process::print_error(text.trim_end());
    } else {
        let _ = files::print(&text);
    }
}

/// The suggestion of clap for a misspelt name.
fn suggestion(error: &clap::Error) -> Option<&str> {
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
