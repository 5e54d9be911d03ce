//! `octet inspect`: the contents of a model and how much of it can be quantized.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use octet::samples::{SampleSettings, TokenPreview};
use octet::session::{ModelSummary, Session};

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
    /// Texts (.txt, .jsonl, .csv), to show how the first one is tokenized
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with = "json")]
    samples: Vec<PathBuf>,
    #[command(flatten)]
    texts: TextOptions,
}

/// Runs the command.
pub fn run(options: &InspectOptions) -> Result<(), Failure> {
    let session = open::open(&options.model)?;
    let card = session.summary();
    let text = if options.json {
        serde_json::to_string_pretty(card)? + "\n"
    } else {
        text(card)?
    };
    files::print(&(text + &tokens(options, &session)?))
}

/// The first text as the model receives it, if there are texts.
fn tokens(options: &InspectOptions, session: &Session) -> Result<String, Failure> {
    let samples = Samples::new(&options.samples, None)?;
    let samples = samples.tokenized(session, &options.model, &options.texts)?;
    let Some(sample) = samples.each(session).next().transpose()? else {
        return Ok(String::new());
    };
    let inputs = session.preview(&sample, &SampleSettings::default())?;
    let mut out = format!("  sample {}:\n", sample.name);
    for input in &inputs {
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
