//! Language models on texts: KL divergence to the float model, agreement of the most likely token,
//! and perplexity.
//!
//! A position counts if the attention mask has it. All sums are in f64, and the logits of a sample
//! are dropped after it.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::boxes::OutputTensor;
use super::evidence::Evidence;
use super::exact_total::ExactTotal;
use crate::graph::Model;
use crate::samples::{self, InputSpec};
use crate::tensor::{Tensor, Values};

/// Change of the probabilities of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenErrors {
    /// Mean KL divergence from the float model's probabilities to the quantized model's, in nats a
    /// position.
    pub kl: f64,
    /// Perplexity of the next token on these texts, float and quantized; `None` for a model that
    /// sees the whole text, or if no text has two tokens.
    pub perplexity: Option<(f64, f64)>,
    /// Number of positions.
    pub positions: u64,
}

/// The inputs of a model that hold a text.
#[derive(Clone, Debug)]
pub(super) struct TextPlaces {
    ids: usize,
    mask: Option<usize>,
    /// True if the model has caches, so that each token sees only those before it.
    pub(super) caches: bool,
}

/// The tokens of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SampleText {
    /// Shape of the input: texts, and tokens of each.
    shape: [usize; 2],
    ids: Vec<usize>,
    /// False for padding.
    attended: Vec<bool>,
}

impl TextPlaces {
    /// The places among the inputs of a prepared model; `None` if it takes no texts.
    pub(super) fn new(model: &Model) -> Option<TextPlaces> {
        let inputs = InputSpec::all(model);
        Some(TextPlaces {
            ids: samples::ids_input(&inputs)?,
            mask: samples::mask_input(&inputs),
            caches: inputs.iter().any(|input| input.name.starts_with("past")),
        })
    }

    /// The text of a sample.
    pub(super) fn text(&self, inputs: &[Tensor]) -> Option<SampleText> {
        let ids = inputs.get(self.ids)?;
        let &[texts, length] = ids.shape() else {
            return None;
        };
        let numbers = |values: &Values| -> Option<Vec<usize>> {
            Some(match values {
                Values::I64(v) => v
                    .iter()
                    .map(|&x| usize::try_from(x).unwrap_or(usize::MAX))
                    .collect(),
                Values::I32(v) => v
                    .iter()
                    .map(|&x| usize::try_from(x).unwrap_or(usize::MAX))
                    .collect(),
                _ => return None,
            })
        };
        let mask = self.mask.and_then(|place| inputs.get(place));
        let attended = match mask.map(|mask| (mask.shape(), super::outputs::floats(mask))) {
            // The mask of a cache of fixed size comes before that of the text.
            Some((&[rows, width], mask)) if rows == texts && width >= length => mask
                .chunks(width.max(1))
                .flat_map(|row| row[width - length..].iter().map(|&x| x != 0.0))
                .collect(),
            _ => vec![true; texts * length],
        };
        Some(SampleText {
            shape: [texts, length],
            ids: numbers(ids.values())?,
            attended,
        })
    }
}

impl SampleText {
    /// True for an output with a score for each token of a vocabulary at each position.
    pub(super) fn is_scored_by(&self, shape: &[usize]) -> bool {
        let [texts, length] = self.shape;
        let largest = self.ids.iter().max();
        matches!(*shape, [a, b, classes] if a == texts && b == length && largest.is_some_and(|&id| id < classes))
    }
}

/// Sums over the positions of all texts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct TokenSums {
    positions: u64,
    same: u64,
    among: u64,
    kl: ExactTotal,
    /// Positions whose next token is known.
    followed: u64,
    /// Negative log-probabilities of the next token.
    float: ExactTotal,
    quantized: ExactTotal,
    /// Those of the float model for the token at the position itself.
    own: ExactTotal,
}

/// Figures of one position.
struct PositionFigures {
    same: bool,
    among: bool,
    kl: f64,
    /// For a known next token: the negative log-probabilities as in the sums.
    next: Option<[f64; 3]>,
}

impl TokenSums {
    /// The sums of one sample's scores.
    pub(super) fn of_sample(
        (float, shape): OutputTensor<'_>,
        quantized: &[f32],
        text: &SampleText,
    ) -> TokenSums {
        let mut sums = TokenSums::default();
        let (&[_, length, classes], false) = (shape, text.ids.is_empty()) else {
            return sums;
        };
        let positions: Vec<usize> = (0..text.ids.len())
            .filter(|&at| text.attended[at])
            .collect();
        let one = |&at: &usize| {
            let row = at * classes..(at + 1) * classes;
            let next = (at + 1) % length != 0 && text.attended[at + 1];
            let next = next.then(|| text.ids[at + 1]).filter(|&id| id < classes);
            PositionFigures::new(&float[row.clone()], &quantized[row], text.ids[at], next)
        };
        let each: Vec<PositionFigures> = positions.par_iter().map(one).collect();
        for one in each {
            sums.positions += 1;
            sums.same += u64::from(one.same);
            sums.among += u64::from(one.among);
            sums.kl.add(one.kl);
            if let Some([float, quantized, own]) = one.next {
                sums.followed += 1;
                sums.float.add(float);
                sums.quantized.add(quantized);
                sums.own.add(own);
            }
        }
        sums
    }

    /// Adds what these positions say as one sample.
    pub(super) fn testify(&self, evidence: &mut Evidence) {
        evidence.add_share(self.same, self.positions);
        let change = self.quantized.value() - self.float.value();
        evidence.add_loss(change, self.followed);
    }

    /// Adds the sums over other samples.
    pub(super) fn merge(&mut self, other: &TokenSums) {
        self.positions = self.positions.saturating_add(other.positions);
        self.same = self.same.saturating_add(other.same);
        self.among = self.among.saturating_add(other.among);
        self.followed = self.followed.saturating_add(other.followed);
        self.kl.merge(&other.kl);
        self.float.merge(&other.float);
        self.quantized.merge(&other.quantized);
        self.own.merge(&other.own);
    }

    /// Share of positions with the same most likely token, and share of those whose token is among
    /// the quantized model's first five.
    pub(super) fn agreement(&self) -> Option<(f64, f64)> {
        let share = |part: u64| part as f64 / self.positions as f64;
        (self.positions > 0).then(|| (share(self.same), share(self.among)))
    }

    /// The errors; `None` without positions. A model without caches counts as one that sees the
    /// whole text if it predicts the token at a position better than the next one.
    pub(super) fn finish(&self, caches: bool) -> Option<TokenErrors> {
        let causal = caches || self.float.value() < self.own.value();
        let perplexity = |sum: f64| (sum / self.followed as f64).exp();
        (self.positions > 0).then(|| TokenErrors {
            kl: self.kl.value() / self.positions as f64,
            perplexity: (causal && self.followed > 0).then(|| {
                (
                    perplexity(self.float.value()),
                    perplexity(self.quantized.value()),
                )
            }),
            positions: self.positions,
        })
    }
}

impl PositionFigures {
    fn new(float: &[f32], quantized: &[f32], own: usize, next: Option<usize>) -> PositionFigures {
        let (before, after) = (LogSum::new(float), LogSum::new(quantized));
        let kl = float.iter().zip(quantized).map(|(&p, &q)| {
            let log = before.log(p);
            let share = log.exp();
            // The limit of p·log p is 0.
            if share > 0.0 {
                share * (log - after.log(q))
            } else {
                0.0
            }
        });
        let best = super::outputs::greatest(float);
        let above = quantized
            .iter()
            .filter(|&&score| score > quantized[best])
            .count();
        PositionFigures {
            same: best == super::outputs::greatest(quantized),
            among: above < 5,
            kl: kl.sum(),
            next: next.map(|id| {
                [
                    -before.log(float[id]),
                    -after.log(quantized[id]),
                    -before.log(float[own]),
                ]
            }),
        }
    }
}

/// Normalization of scores to log-probabilities: log p = score - greatest - log Σ exp(score -
/// greatest).
struct LogSum {
    greatest: f64,
    sum: f64,
}

impl LogSum {
    fn new(scores: &[f32]) -> LogSum {
        let greatest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let greatest = f64::from(greatest);
        let sum: f64 = scores
            .iter()
            .map(|&x| (f64::from(x) - greatest).exp())
            .sum();
        LogSum {
            greatest,
            sum: sum.ln(),
        }
    }

    fn log(&self, score: f32) -> f64 {
        f64::from(score) - self.greatest - self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two texts of two tokens; the last one of the second is padding.
    fn text() -> SampleText {
        SampleText {
            shape: [2, 2],
            ids: vec![0, 1, 1, 0],
            attended: vec![true, true, true, false],
        }
    }

    /// Scores of two tokens whose probabilities are `p` and `1 - p`, at each position.
    fn scores(first: [f64; 4]) -> Vec<f32> {
        let each = first
            .iter()
            .flat_map(|p| [p.ln() as f32 + 3.0, (1.0 - p).ln() as f32 + 3.0]);
        each.collect()
    }

    fn sums(float: [f64; 4], quantized: [f64; 4]) -> TokenSums {
        TokenSums::of_sample((&scores(float), &[2, 2, 2]), &scores(quantized), &text())
    }

    #[test]
    fn divergence_and_perplexity_are_those_of_the_probabilities_without_padding() {
        let found = sums([0.25, 0.8, 0.8, 0.5], [0.5, 0.6, 0.8, 0.01]);
        let kl = |p: f64, q: f64| p * (p / q).ln() + (1.0 - p) * ((1.0 - p) / (1.0 - q)).ln();
        let errors = found.finish(false).unwrap();
        assert!((errors.kl - (kl(0.25, 0.5) + kl(0.8, 0.6)) / 3.0).abs() < 1e-6);
        assert_eq!(errors.positions, 3);
        // Only the first token of the first text has a successor: the token 1.
        let (float, quantized) = errors.perplexity.unwrap();
        assert!((float - 1.0 / 0.75).abs() < 1e-6 && (quantized - 2.0).abs() < 1e-6);
        // 0.5 against 0.5 is decided for the first of them, which float ranks second.
        assert_eq!(found.agreement(), Some((2.0 / 3.0, 1.0)));
    }

    #[test]
    fn a_model_that_sees_the_whole_text_has_no_perplexity() {
        let sees = sums([0.9, 0.1, 0.1, 0.9], [0.9, 0.1, 0.1, 0.9]);
        assert_eq!(sees.finish(false).unwrap().perplexity, None);
        assert!(sees.finish(true).unwrap().perplexity.is_some());
        assert_eq!(sees.finish(false).unwrap().kl, 0.0);
        assert_eq!(TokenSums::default().finish(true), None);
    }

    #[test]
    fn the_mask_of_a_text_is_the_end_of_one_that_covers_caches() {
        let whole =
            |shape: Vec<usize>, values: Vec<i64>| Tensor::new(shape, Values::I64(values)).unwrap();
        let places = TextPlaces {
            ids: 1,
            mask: Some(0),
            caches: true,
        };
        let mask = whole(vec![1, 4], vec![0, 0, 1, 0]);
        let read = places.text(&[mask, whole(vec![1, 2], vec![7, 9])]).unwrap();
        assert_eq!(
            (read.ids.clone(), read.attended.clone()),
            (vec![7, 9], vec![true, false])
        );
        assert!(read.is_scored_by(&[1, 2, 10]));
        assert!(!read.is_scored_by(&[1, 2, 9]) && !read.is_scored_by(&[1, 1, 10]));
    }
}
