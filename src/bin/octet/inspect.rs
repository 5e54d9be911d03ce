//! `octet inspect`: the contents of a model and how much of it can be quantized.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use octet::samples::{Preview, SampleSettings, TokenPreview};
use octet::session::ModelSummary;
use octet::snippets::SnippetKind;
use serde::Serialize;

use super::samples::Samples;
use super::texts::TextOptions;
use super::{Failure, files, open};

#[derive(Args)]
pub struct InspectOptions {
    /// The model; external data files beside it are found automatically
    model: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Samples, such as texts (.txt, .jsonl, .csv), to show the first one as the model receives it,
    /// with its tokens; with --json, all of them
    #[arg(long, visible_alias = "calib", aliases = ["data", "input"], value_name = "PATH", num_args = 1..)]
    samples: Vec<PathBuf>,
    /// Print only a snippet of code for this model: a Python script that writes samples of its inputs
    /// (samples), or a run of the model (onnxruntime, onnxruntime-web, transformers.js)
    #[arg(long, value_name = "KIND", num_args = 0..=1, default_missing_value = "samples", conflicts_with_all = ["json", "samples"],
        value_parser = snippet_kind)]
    snippet: Option<SnippetKind>,
    #[command(flatten)]
    texts: TextOptions,
}

fn snippet_kind(name: &str) -> Result<SnippetKind, String> {
    SnippetKind::named(name).ok_or_else(|| {
        let names = SnippetKind::ALL.map(SnippetKind::name).join(", ");
        format!("there is no such snippet: choose one of {names}")
    })
}

/// A sample as the model receives it.
#[derive(Serialize)]
struct SeenSample {
    name: String,
    inputs: Vec<Preview>,
}

/// Runs the command.
pub fn run(options: &InspectOptions) -> Result<(), Failure> {
    let session = open::open(&options.model)?;
    if let Some(kind) = options.snippet {
        return files::print(&session.snippet(kind)?);
    }
    let samples = Samples::new(&options.samples, None)?;
    let samples = samples.tokenized(&session, &options.model, &options.texts)?;
    // The document has all samples, the text for people the first one.
    let shown = if options.json { usize::MAX } else { 1 };
    let mut seen = Vec::new();
    for sample in samples.each(&session).take(shown) {
        let sample = sample?;
        seen.push(SeenSample {
            inputs: session.preview(&sample, &SampleSettings::default())?,
            name: sample.name,
        });
    }
    let card = session.summary();
    files::print(&match options.json {
        true => {
            let mut document = serde_json::to_value(card)?;
            if !options.samples.is_empty() {
                document["samples"] = serde_json::to_value(&seen)?;
            }
            serde_json::to_string_pretty(&document)? + "\n"
        }
        false => {
            text(card)?
                + &seen
                    .iter()
                    .map(sample_text)
                    .collect::<Result<String, _>>()?
        }
    })
}

/// Shapes of the inputs of a sample, and the tokens of a text.
fn sample_text(sample: &SeenSample) -> Result<String, Failure> {
    let inputs = &sample.inputs;
    let mut out = format!("  sample {}:\n", sample.name);
    for input in inputs {
        let shape: Vec<String> = input.shape.iter().map(ToString::to_string).collect();
        writeln!(
            out,
            "    {}: {} {}",
            input.input,
            input.element,
            shape.join("×")
        )?;
    }
    let tokens: Vec<&TokenPreview> = inputs.iter().flat_map(|input| &input.tokens).collect();
    if tokens.is_empty() {
        return Ok(out);
    }
    writeln!(out, "      id  type  mask  token")?;
    for token in tokens {
        writeln!(
            out,
            "  {:>6}  {:>4}  {:>4}  {}",
            token.id,
            token.type_id,
            u8::from(token.attended),
            token.token
        )?;
    }
    Ok(out)
}

fn text(card: &ModelSummary) -> Result<String, Failure> {
    let mut out = String::new();
    writeln!(
        out,
        "{}: {} bytes, {} parameters",
        card.name,
        card.bytes_in_all(),
        card.parameters
    )?;
    for file in &card.data_files {
        writeln!(out, "  of these {} in {}", file.bytes, file.name)?;
    }
    writeln!(
        out,
        "  opset {}, IR version {}, producer {}",
        card.opset, card.ir_version, card.producer
    )?;
    writeln!(out, "  sha256 {}", card.sha256)?;
    writeln!(out, "  task: {} ({})", card.task.task.name(), card.task.why)?;
    for (title, values) in [("input", &card.inputs), ("output", &card.outputs)] {
        for value in values {
            writeln!(
                out,
                "  {title} {}: {} {}",
                value.name, value.element, value.shape
            )?;
        }
    }
    let operators: Vec<String> = card
        .operators
        .iter()
        .map(|(name, n)| format!("{name} {n}"))
        .collect();
    writeln!(out, "  operators: {}", operators.join(", "))?;
    if card.already_quantized {
        writeln!(out, "  it is quantized already")?;
    } else {
        let nodes: usize = card.operators.iter().map(|(_, n)| n).sum();
        writeln!(
            out,
            "  {} of {nodes} nodes can be quantized",
            card.quantizable
        )?;
    }
    for left in &card.float {
        writeln!(
            out,
            "  {} {} stay float: {}",
            left.count, left.operator, left.reason
        )?;
    }
    for warning in &card.warnings {
        writeln!(out, "  note: {warning}")?;
    }
    Ok(out)
}
