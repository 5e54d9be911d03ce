//! The card of a folder for transformers.js: size and error of each form.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use octet::samples::SampleSettings;
use octet::session::compare_sample;

use super::samples::Samples;
use super::texts::TextOptions;
use super::{Failure, open};

/// Larger models are not run.
const LARGEST: u64 = 1 << 30;

/// Random samples, if none are given.
const RANDOM: u64 = 2;

/// A row of the card.
pub struct CardRow {
    /// The value of `dtype`.
    pub form: &'static str,
    /// Path of the model in the folder.
    pub file: String,
    /// Bytes of the model and its files of weights.
    pub bytes: u64,
    pub bytes_before: u64,
    pub error: MeasuredError,
}

/// The error of the tokens that a form predicts.
#[derive(Clone, Copy)]
pub struct TokenError {
    /// Mean KL divergence from the float model, in nats a position.
    kl: f64,
    /// Share of the positions with the same most likely token.
    top1: f64,
    positions: u64,
}

/// The error of a form.
pub enum MeasuredError {
    /// The lowest ratio of signal to noise of all outputs, in decibels, and the number of samples.
    Decibels {
        sqnr: f64,
        samples: usize,
        random: bool,
        /// For texts.
        tokens: Option<TokenError>,
    },
    /// The reason why it was not measured.
    NotMeasured(String),
}

/// Runs a float model and one of its forms on samples, or on random numbers if there are none.
pub fn measured_error(
    float: &Path,
    form: &Path,
    samples: &[PathBuf],
    texts: &TextOptions,
    bytes: u64,
) -> MeasuredError {
    if bytes > LARGEST {
        return MeasuredError::NotMeasured("the model has more than 1 GiB".into());
    }
    match compare(float, form, samples, texts) {
        Ok(measured) => measured,
        Err(failure) => MeasuredError::NotMeasured(failure.line),
    }
}

fn compare(
    path: &Path,
    form: &Path,
    paths: &[PathBuf],
    texts: &TextOptions,
) -> Result<MeasuredError, Failure> {
    let random = paths.is_empty();
    let mut float = open::open(path)?;
    let quantized = open::open(form)?;
    let runner = quantized.runner()?;
    let mut comparing = float.begin_comparison(&runner)?;
    let samples = Samples::new(paths, random.then_some(RANDOM))?;
    let samples = samples.tokenized(&float, path, texts)?;
    let settings = SampleSettings {
        demo: random,
        ..SampleSettings::default()
    };
    for sample in samples.each(&float) {
        let inputs = float.decode(&sample?, &settings)?;
        compare_sample(&mut comparing, &inputs, None, &())?;
    }
    let compared = comparing.finish();
    let tokens = compared.outputs.iter().find_map(|output| {
        let tokens = output.tokens.as_ref()?;
        Some(TokenError {
            kl: tokens.kl,
            top1: output.top1?,
            positions: tokens.positions,
        })
    });
    let lowest = compared.outputs.iter().map(|output| output.apart.sqnr);
    match lowest.reduce(f64::min) {
        Some(sqnr) => Ok(MeasuredError::Decibels {
            sqnr,
            samples: compared.samples,
            random,
            // Random tokens are no text.
            tokens: tokens.filter(|_| !random),
        }),
        None => Ok(MeasuredError::NotMeasured(
            "it has no output of floats".into(),
        )),
    }
}

/// Bytes in words.
fn megabytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

fn share(row: &CardRow) -> f64 {
    100.0 * row.bytes as f64 / row.bytes_before.max(1) as f64
}

/// The card in Markdown.
pub fn text(name: &str, rows: &[CardRow]) -> String {
    let tokens = |row: &CardRow| match &row.error {
        MeasuredError::Decibels { tokens, .. } => *tokens,
        MeasuredError::NotMeasured(_) => None,
    };
    let judged = rows.iter().find_map(tokens);
    let [names, lines] = match judged {
        Some(_) => [" KL divergence | same first token |", "---|---|"],
        None => ["", ""],
    };
    let mut card = format!(
        "---\nlibrary_name: transformers.js\ntags:\n- onnx\n---\n\n# {name} for transformers.js\n\n\
         | dtype | model | size | of the float model | error |{names}\n|---|---|---|---|---|{lines}\n"
    );
    let mut reasons: Vec<&str> = Vec::new();
    let mut measured = None;
    for row in rows {
        let error = match &row.error {
            MeasuredError::Decibels {
                sqnr,
                samples,
                random,
                ..
            } => {
                measured = Some((*samples, *random));
                format!("{sqnr:.1} dB")
            }
            MeasuredError::NotMeasured(why) => {
                if !reasons.contains(&why.as_str()) {
                    reasons.push(why);
                }
                "not measured".to_owned()
            }
        };
        let more = match (judged, tokens(row)) {
            (None, _) => String::new(),
            (_, None) => " | |".to_owned(),
            (_, Some(error)) => format!(" {:.4} | {:.1} % |", error.kl, 100.0 * error.top1),
        };
        let (size, share) = (megabytes(row.bytes), share(row));
        // Writing to a string never fails.
        let _ = writeln!(
            card,
            "| `{}` | `{}` | {size} | {share:.0} % | {error} |{more}",
            row.form, row.file
        );
    }
    if let Some((samples, random)) = measured {
        let whose = if random { "random" } else { "given" };
        let _ = writeln!(
            card,
            "\nThe error is the ratio of signal to noise of the worst output against the float model, \
             on {samples} {whose} samples. More is better."
        );
    }
    if let Some(TokenError { positions, .. }) = judged {
        let _ = writeln!(
            card,
            "\nThe KL divergence is from the probabilities of the float model, in nats, over {positions} \
             tokens of texts. The last column is the share of them after which both models find the same token \
             most likely."
        );
    }
    for why in reasons {
        let _ = writeln!(card, "\nAn error was not measured: {why}.");
    }
    card.push_str(&usage(name, rows));
    let version = env!("CARGO_PKG_VERSION");
    let _ = writeln!(card, "\nMade by Octet {version}.");
    card
}

/// The part of the card on loading the folder.
fn usage(name: &str, rows: &[CardRow]) -> String {
    let Some(row) = rows.last() else {
        return String::new();
    };
    // JSON strings are those of JavaScript.
    let name = serde_json::json!(name);
    format!(
        "\n## Use\n\n```js\nimport {{ AutoModel }} from '@huggingface/transformers';\n\n\
         const model = await AutoModel.from_pretrained({name}, {{ dtype: '{form}' }});\n```\n\n\
         `dtype` is one of the table. A class for the task, such as `AutoModelForCausalLM`, does more. \
         `octet inspect {file} --snippet transformers.js` prints code with all inputs of a file; other kinds of \
         `--snippet` are onnxruntime and onnxruntime-web.\n",
        form = row.form,
        file = row.file
    )
}

/// The lines that are printed.
pub fn lines(out: &Path, rows: &[CardRow]) -> String {
    let each = rows.iter().map(|row| {
        let path = out.join(&row.file);
        format!(
            "{}: {} bytes, {:.0} % of {}\n",
            path.display(),
            row.bytes,
            share(row),
            row.bytes_before
        )
    });
    each.collect()
}
