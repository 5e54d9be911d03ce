//! The verdict: ship the quantized model, look at it, or don't, by the samples that were compared.
//!
//! Each output is judged by the measure of its kind, with a confidence interval of 95 %. The worse
//! end of the interval decides for `ship`, the better end for `dont`; all else is `look`. The limits
//! of each measure are fixed ([`QualityMeasure::limits`]) and were not fitted to any model.

use serde::Serialize;

use super::LayerError;
use super::evidence::Evidence;
use super::next_step::{NextStep, next_steps};
use super::outputs::OutputError;

/// The advice of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    /// The quantized model is as good as required.
    Ship,
    /// It is between the limits, or the samples are too few to decide.
    Look,
    /// It is worse than acceptable.
    Dont,
}

impl std::fmt::Display for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Decision::Ship => "ship",
            Decision::Look => "look before you ship",
            Decision::Dont => "don't ship",
        })
    }
}

/// The measure that judges an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum QualityMeasure {
    /// Change of the share of right answers, of samples with labels.
    AccuracyChange,
    /// Share of answers that equal the float model's.
    Agreement,
    /// Share of confident boxes, of both models, that match.
    Boxes,
    /// Perplexity of the next token, relative to the float model's.
    PerplexityRatio,
    /// Cosine to the float model's vector, mean over the samples.
    Cosine,
    /// SQNR in decibels, mean over the samples.
    Sqnr,
}

impl QualityMeasure {
    /// The value that is required to ship, and the value below which a model should not ship.
    /// Lower values are better for the perplexity, higher ones for all others.
    pub fn limits(self) -> (f64, f64) {
        match self {
            QualityMeasure::AccuracyChange => (-0.01, -0.03),
            QualityMeasure::Agreement => (0.95, 0.9),
            QualityMeasure::Boxes => (0.9, 0.75),
            QualityMeasure::PerplexityRatio => (1.02, 1.1),
            QualityMeasure::Cosine => (0.99, 0.95),
            QualityMeasure::Sqnr => (20.0, 10.0),
        }
    }

    /// True if this measure is of answers, which count more than the values of other outputs.
    fn is_of_answers(self) -> bool {
        !matches!(self, QualityMeasure::Cosine | QualityMeasure::Sqnr)
    }

    fn name(self) -> &'static str {
        match self {
            QualityMeasure::AccuracyChange => "change of accuracy",
            QualityMeasure::Agreement => "answers equal to the float model's",
            QualityMeasure::Boxes => "confident boxes that match",
            QualityMeasure::PerplexityRatio => "perplexity relative to the float model's",
            QualityMeasure::Cosine => "cosine to the float model's vector",
            QualityMeasure::Sqnr => "SQNR",
        }
    }

    fn text(self, value: f64) -> String {
        match self {
            QualityMeasure::AccuracyChange => format!("{:+.1} points", value * 100.0),
            QualityMeasure::Agreement | QualityMeasure::Boxes => format!("{:.1} %", value * 100.0),
            QualityMeasure::PerplexityRatio => format!("{value:.3}"),
            QualityMeasure::Cosine => format!("{value:.4}"),
            QualityMeasure::Sqnr => format!("{value:.1} dB"),
        }
    }
}

/// A measure of one output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    pub(super) measure: QualityMeasure,
    pub(super) value: f64,
    /// The interval that holds the true value with a confidence of 95 %; `None` for one sample.
    pub(super) interval: Option<(f64, f64)>,
    pub(super) samples: usize,
}

impl Measured {
    /// Distance of a value above the required one, in units of the distance between both limits.
    pub(super) fn margin(&self, value: f64) -> f64 {
        let (required, refused) = self.measure.limits();
        (value - required) / (required - refused)
    }

    /// The margins of the worse and of the better end.
    fn ends(&self) -> Option<(f64, f64)> {
        let (low, high) = self.interval?;
        let (low, high) = (self.margin(low), self.margin(high));
        Some((low.min(high), low.max(high)))
    }

    pub(super) fn decision(&self) -> Decision {
        match self.ends() {
            Some((worse, _)) if worse >= 0.0 => Decision::Ship,
            Some((_, better)) if better < -1.0 => Decision::Dont,
            _ => Decision::Look,
        }
    }
}

/// The answer to the question whether the quantized model can replace the float model.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Its advice.
    pub decision: Decision,
    /// The output that decides.
    pub output: String,
    /// The measure of that output.
    pub measure: QualityMeasure,
    /// The value that was measured.
    pub value: f64,
    /// The interval that holds the true value with a confidence of 95 %; `None` for one sample.
    pub interval: Option<(f64, f64)>,
    /// The value that is required to ship.
    pub required: f64,
    /// The value that is not acceptable.
    pub refused: f64,
    /// Number of samples that show this measure.
    pub samples: usize,
    /// The reason in words.
    pub reason: String,
    /// Steps to try next, the best first.
    pub next: Vec<NextStep>,
}

/// Judges a model by its outputs and what each sample says of them. `None` if no output can be
/// judged.
pub(super) fn judge(outputs: &[(OutputError, Evidence)], layers: &[LayerError]) -> Option<Verdict> {
    let judged: Vec<(&OutputError, Measured)> = outputs
        .iter()
        .filter_map(|(output, evidence)| {
            let measures = measures(output);
            let measured = measures.iter().find_map(|&one| evidence.measured(one))?;
            Some((output, measured))
        })
        .collect();
    let answers = judged.iter().any(|(_, one)| one.measure.is_of_answers());
    let labels = judged
        .iter()
        .any(|(_, one)| one.measure == QualityMeasure::AccuracyChange);
    let decides = |one: &Measured| match (labels, answers) {
        (true, _) => one.measure == QualityMeasure::AccuracyChange,
        (false, true) => one.measure.is_of_answers(),
        (false, false) => true,
    };
    let worst = |of: &dyn Fn(&Measured) -> bool| {
        let all = judged.iter().filter(|(_, one)| of(one));
        all.max_by(|(_, a), (_, b)| {
            let margin = |one: &Measured| one.margin(one.value);
            let order = a.decision().cmp(&b.decision());
            order.then(margin(b).total_cmp(&margin(a)))
        })
    };
    let (output, measured) = worst(&decides)?;
    let mut decision = measured.decision();
    let mut reason = reason(measured, decision);
    // Another output that is unacceptable deserves a look, although its values are no answers.
    let other = worst(&|one| !decides(one) && one.decision() == Decision::Dont);
    if let (Some((other, bad)), Decision::Ship) = (other, decision) {
        decision = Decision::Look;
        reason = format!(
            "{reason}; but the output `{}` has a {} of {}",
            other.name,
            bad.measure.name(),
            bad.measure.text(bad.value)
        );
    }
    let (required, refused) = measured.measure.limits();
    Some(Verdict {
        decision,
        output: output.name.clone(),
        measure: measured.measure,
        value: measured.value,
        interval: measured.interval,
        required,
        refused,
        samples: measured.samples,
        next: next_steps(measured, decision, layers),
        reason,
    })
}

/// The measures of an output, the most telling first.
fn measures(output: &OutputError) -> &'static [QualityMeasure] {
    use super::OutputKind::{
        Boxes, Classes, Embedding, Integers, Passed, Scores, Steps, Tokens, Values,
    };
    match output.kind {
        Classes => &[
            QualityMeasure::AccuracyChange,
            QualityMeasure::Agreement,
            QualityMeasure::Sqnr,
        ],
        Steps => &[QualityMeasure::Agreement, QualityMeasure::Sqnr],
        Tokens => match output.tokens.and_then(|tokens| tokens.perplexity) {
            Some(_) => &[QualityMeasure::PerplexityRatio, QualityMeasure::Agreement],
            None => &[QualityMeasure::Agreement],
        },
        Boxes => &[QualityMeasure::Boxes, QualityMeasure::Sqnr],
        Embedding => &[QualityMeasure::Cosine],
        Values => &[QualityMeasure::Sqnr],
        // The boxes judge their scores, too.
        Scores | Integers | Passed => &[],
    }
}

fn reason(measured: &Measured, decision: Decision) -> String {
    let Measured {
        measure,
        value,
        interval,
        samples,
    } = *measured;
    let (required, refused) = measure.limits();
    let text = |value| measure.text(value);
    let found = format!("{}: {}", measure.name(), text(value));
    let Some((low, high)) = interval else {
        return format!("{found} on one sample, which shows no more than itself");
    };
    let found = format!("{found} (95 % interval {} to {})", text(low), text(high));
    let bound = match measure {
        QualityMeasure::PerplexityRatio => "at most",
        _ => "at least",
    };
    match decision {
        Decision::Ship => format!("{found}; {bound} {} is required", text(required)),
        Decision::Dont => format!("{found}; {} is not acceptable", text(refused)),
        Decision::Look if measured.margin(value) >= 0.0 => {
            let few = if samples == 1 {
                "one sample is".into()
            } else {
                format!("{samples} samples are")
            };
            format!("{found}; {few} too few to show {bound} {}", text(required))
        }
        Decision::Look => format!(
            "{found}; {bound} {} is required, and {} is not acceptable",
            text(required),
            text(refused)
        ),
    }
}

#[cfg(test)]
mod tests;
