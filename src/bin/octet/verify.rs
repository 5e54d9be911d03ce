//! `octet verify`: makes a quantized model again and compares it with a file.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use octet::onnx::{differences, read};
use octet::quantize::Settings;
use octet::session::{ModelFile, Proof};
use serde::Deserialize;

use super::making::{MadeModel, check_data, make, reading};
use super::quantize::QuantizeOptions;
use super::{Failure, files, open, threads};

/// Number of differences that are named.
const NAMED: usize = 5;

#[derive(Args)]
pub struct VerifyOptions {
    #[command(flatten)]
    pub quantize: QuantizeOptions,
    /// The quantized model to verify
    quantized: PathBuf,
    /// The report of the run that made it: its settings are used, and its checksums are compared
    #[arg(long, value_name = "REPORT.yaml", conflicts_with = "config")]
    proof: Option<PathBuf>,
}

/// The parts of a report that verification reads.
#[derive(Deserialize)]
struct MadeBy {
    model: FloatModel,
    settings: serde_json::Value,
    proof: Proof,
}

#[derive(Deserialize)]
struct FloatModel {
    sha256: String,
}

/// Runs the command.
pub fn run(options: &VerifyOptions) -> Result<(), Failure> {
    let quantize = &options.quantize;
    refuse_outputs(quantize)?;
    let made_by = options.proof.as_deref().map(read_report).transpose()?;
    let mut settings = match &made_by {
        Some(report) => Settings::from_value(report.settings.clone()).map_err(|error| {
            Failure::input(format!(
                "the settings of the report: {error}; give --config"
            ))
        })?,
        None => quantize.settings.document()?,
    };
    let has_data = check_data(quantize, &settings)?;
    let ranges = quantize.ranges.read(&mut settings)?;
    if !has_data && quantize.stream.applies(&quantize.model, &settings) {
        return Err(Failure::usage(
            "verify makes models in memory, and this one is converted piece by piece: convert it again and compare the files",
        ));
    }
    let found = ModelFile::new("", Bytes::from(files::read(&options.quantized, "model")?));
    let about =
        |error: octet::session::Error| Failure::from(error).about(options.quantized.display());
    let found_model = read(found.bytes.clone()).map_err(|error| about(error.into()))?;
    let threads = threads::start(quantize.threads)?;
    if let Some(report) = &made_by {
        let float = open::open(&quantize.model)?;
        if float.summary().sha256 != report.model.sha256 {
            return Err(Failure::requirement(format!(
                "{} is not the float model of the report: its sha256 is {}, and the report has {}",
                quantize.model.display(),
                float.summary().sha256,
                report.model.sha256
            )));
        }
    }
    let Some(MadeModel {
        outcome, progress, ..
    }) = make(
        quantize,
        (&settings, ranges),
        reading(quantize)?,
        &[],
        threads,
    )?
    else {
        return Ok(());
    };
    drop(progress);
    let again = Bytes::from(outcome.model.as_slice().concat());
    if again == found.bytes {
        return files::print(&format!(
            "{}: equal to the model made again; {} bytes, sha256 {}\n",
            options.quantized.display(),
            again.len(),
            found.sha256
        ));
    }
    let again = read(again).map_err(|error| about(error.into()))?;
    let mut named = differences(&again, &found_model, NAMED);
    if named.is_empty() {
        named.push("tensors and nodes are equal, and the bytes differ".into());
    }
    let why = made_by.map_or(String::new(), |report| {
        let provided = quantize.ranges.ranges.is_some();
        cause(&report.proof, &outcome.proof, &found.sha256, provided)
    });
    Err(Failure::requirement(format!(
        "{} is not what these files and settings give: {}{why}",
        options.quantized.display(),
        named.join("; ")
    )))
}

/// The reason of a difference, as far as the checksums of the report tell it. `provided`: the ranges
/// came from a file.
fn cause(report: &Proof, again: &Proof, found: &str, provided: bool) -> String {
    let changed = report.result != found;
    let text = match () {
        () if report.result == again.result => {
            "the report's result was made again, so this file was changed after it"
        }
        () if report.version != again.version => {
            "the report is of another version of Octet: verify with that one"
        }
        () if report.ranges != again.ranges => {
            "the ranges are not those of the report: give the same --ranges, --stats or --samples"
        }
        () if provided && !changed => {
            "a file of ranges has no statistics of the samples, which mixed precision and bias correction use: \
             give the --samples or --stats of the run"
        }
        () if changed => "neither this file nor the model made again is the report's result",
        () => "this file is the report's result, and this build makes another",
    };
    format!("; {text}")
}

/// Refuses options that write files: this command writes none.
fn refuse_outputs(options: &QuantizeOptions) -> Result<(), Failure> {
    let given = [
        (options.out.is_some(), "--out"),
        (options.report.is_some(), "--report"),
        (options.target.is_some(), "--for"),
        (options.forecast, "--forecast"),
        (options.json, "--json"),
        (options.layer_checkpoints, "--layer-checkpoints"),
        (options.ranges.save_ranges.is_some(), "--save-ranges"),
        (options.save_prepared.is_some(), "--save-prepared"),
    ];
    match given.iter().find(|(given, _)| *given) {
        Some((_, option)) => Err(Failure::usage(format!(
            "{option} is not for verify, which writes nothing: leave it out"
        ))),
        None => Ok(()),
    }
}

fn read_report(path: &Path) -> Result<MadeBy, Failure> {
    let bytes = files::read(path, "report")?;
    serde_yaml_ng::from_slice(&bytes).map_err(|error| {
        Failure::input(format!(
            "the report {} proves nothing: {error}; give the --report of the run that made the model",
            path.display()
        ))
    })
}
