//! Errors of the outputs and agreement of the answers.

use serde::{Deserialize, Serialize};

use super::boxes::{BoxMatches, DetectedBox, DetectionErrors, Detector, OutputTensor};
use super::difference::{Difference, DifferenceMetrics};
use super::evidence::Evidence;
use super::language::{SampleText, TokenErrors, TokenSums};
use super::output_kinds::{OutputKind, OutputTraits, shape_of_rows};
use crate::graph::Model;
use crate::tensor::{Tensor, Values};

/// The error that quantization causes in an output.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputError {
    /// Name of the output.
    pub name: String,
    /// Kind of the output, which decides its measure.
    pub kind: OutputKind,
    /// Difference between float and quantized values.
    pub apart: DifferenceMetrics,
    /// For rows of classes: the share of rows with the same top class.
    pub top1: Option<f64>,
    /// The share of rows whose top float class is among the top five quantized classes.
    pub top5: Option<f64>,
    /// For the tokens of a language model: the change of their probabilities.
    pub tokens: Option<TokenErrors>,
    /// With labels: the share of samples whose top class is the label, float and quantized.
    pub accuracy: Option<(f64, f64)>,
    /// For the boxes of a detector: confident boxes that match.
    pub boxes: Option<BoxMatches>,
    /// For boxes and scores in one output: the SQNR of each.
    pub parts: Option<DetectionErrors>,
    /// If the error is split: the SQNR with only the model's weights as integers.
    pub weights_only: Option<f64>,
    /// If the error is split: the SQNR with only the activations as integers.
    pub activations_only: Option<f64>,
}

/// The output with the lowest SQNR, among those that can be judged.
pub(super) fn headline(outputs: &[OutputError]) -> Option<String> {
    let judged = outputs.iter().filter(|output| output.kind.is_judged());
    let worst = judged.min_by(|a, b| a.least().total_cmp(&b.least()));
    worst.map(|output| output.name.clone())
}

impl OutputError {
    /// The lowest SQNR of its parts.
    fn least(&self) -> f64 {
        self.parts
            .map_or(self.apart.sqnr, |parts| parts.boxes.min(parts.scores))
    }
}

/// Statistics of all outputs.
pub(super) struct OutputAccumulators {
    all: Vec<OutputAccumulator>,
    /// True if the model has caches of earlier tokens.
    caches: bool,
    /// `None` until the first sample shows the shapes.
    detector: Option<Option<Detector>>,
}

#[derive(Default)]
struct OutputAccumulator {
    name: String,
    traits: OutputTraits,
    sums: OutputSums,
}

/// Sums of one output over some samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct OutputSums {
    /// `None` before the first sample, which decides the kind.
    kind: Option<OutputKind>,
    sum: Difference,
    rows: u64,
    same: u64,
    among: u64,
    labelled: u64,
    right: (u64, u64),
    tokens: TokenSums,
    evidence: Evidence,
}

impl OutputSums {
    /// Adds the sums over other samples. Returns false if those showed another kind of output.
    pub(super) fn merge(&mut self, other: &OutputSums) -> bool {
        let alike = self.kind.is_none() || other.kind.is_none() || self.kind == other.kind;
        self.kind = self.kind.or(other.kind);
        self.sum.merge(&other.sum);
        self.tokens.merge(&other.tokens);
        self.evidence.merge(&other.evidence);
        for (all, more) in [
            (&mut self.rows, other.rows),
            (&mut self.same, other.same),
            (&mut self.among, other.among),
            (&mut self.labelled, other.labelled),
            (&mut self.right.0, other.right.0),
            (&mut self.right.1, other.right.1),
        ] {
            *all = all.saturating_add(more);
        }
        alike
    }
}

impl OutputAccumulators {
    pub(super) fn new(model: &Model, caches: bool) -> OutputAccumulators {
        let names = model.graph.outputs().iter();
        let names = names.map(|output| output.name.clone().unwrap_or_default());
        let output = |(name, traits)| OutputAccumulator {
            name,
            traits,
            ..OutputAccumulator::default()
        };
        OutputAccumulators {
            all: names.zip(OutputTraits::all(model)).map(output).collect(),
            caches,
            detector: None,
        }
    }

    /// Adds the outputs of a sample; `picture` is its height and width, `text` its text, and `label`
    /// its class, if known. Returns the confident boxes of a detector, float and quantized.
    pub(super) fn add(
        &mut self,
        float: &[Tensor],
        quantized: &[Tensor],
        picture: Option<(usize, usize)>,
        text: Option<&SampleText>,
        label: Option<usize>,
    ) -> Option<[Vec<DetectedBox>; 2]> {
        let all = |tensors: &[Tensor]| -> Vec<Vec<f32>> { tensors.iter().map(floats).collect() };
        let (first, second) = (all(float), all(quantized));
        let first: Vec<OutputTensor<'_>> = output_tensors(&first, float);
        let second: Vec<OutputTensor<'_>> = output_tensors(&second, quantized);
        let detector = self.detector.get_or_insert_with(|| {
            let traits: Vec<OutputTraits> = self.all.iter().map(|one| one.traits.clone()).collect();
            let shapes: Vec<&[usize]> = first.iter().map(|(_, shape)| *shape).collect();
            Detector::from_outputs(&traits, &shapes)
        });
        let pairs = first.iter().zip(&second).enumerate();
        for (output, (at, (&a, &b))) in self.all.iter_mut().zip(pairs) {
            if output.sums.kind.is_none() {
                let part = detector.as_ref().and_then(|detector| detector.kind(at));
                let (kind, whole) = (output.traits.kind(a.1), shape_of_rows(a.1).len() == 2);
                // Labels imply that the output holds classes.
                let labelled = label.is_some() && whole && kind.is_judged();
                let scores = text.is_some_and(|text| text.is_scored_by(a.1));
                let kind = match (labelled, scores && output.traits.may_be_tokens(kind)) {
                    (true, _) => OutputKind::Classes,
                    (false, true) => OutputKind::Tokens,
                    (false, false) => kind,
                };
                output.sums.kind = Some(part.unwrap_or(kind));
            }
            output.add(a, b, text, label);
        }
        let detector = detector.as_mut()?;
        let (found, boxes) = detector.add(&first, &second, picture);
        let sums = self.all.iter_mut().map(|output| &mut output.sums);
        for sums in sums.filter(|sums| sums.kind == Some(OutputKind::Boxes)) {
            let (matched, either) = (found.matched, found.confident + found.extra);
            sums.evidence.add_share(matched, either);
        }
        Some(boxes)
    }

    /// Name and kind of each output. The first sample decides the kinds.
    pub(super) fn described(&self) -> Vec<(String, OutputKind)> {
        let kind = |output: &OutputAccumulator| output.sums.kind.unwrap_or_default();
        let all = self.all.iter();
        all.map(|output| (output.name.clone(), kind(output)))
            .collect()
    }

    /// The output of a detector with the prototypes of its masks.
    pub(super) fn prototypes(&self) -> Option<usize> {
        self.detector.as_ref()?.as_ref()?.prototypes()
    }

    /// The sums so far, and the detector.
    pub(super) fn sums(&self) -> (Vec<OutputSums>, Option<Detector>) {
        let sums = self.all.iter().map(|output| output.sums.clone());
        (sums.collect(), self.detector.clone().flatten())
    }

    /// Replaces the sums, whose number must be that of the outputs.
    pub(super) fn replace(&mut self, sums: Vec<OutputSums>, detector: Option<Detector>) {
        for (output, sums) in self.all.iter_mut().zip(sums) {
            output.sums = sums;
        }
        self.detector = Some(detector);
    }

    /// The errors, and what each sample says of the output.
    pub(super) fn finish(self) -> Vec<(OutputError, Evidence)> {
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let detector = self.detector.flatten();
        let caches = self.caches;
        let finish = |(at, output): (usize, OutputAccumulator)| {
            let (boxes, parts) = detector.as_ref().map_or((None, None), |one| one.finish(at));
            let sums = output.sums;
            let agreement = sums.tokens.agreement();
            let evidence = sums.evidence.sorted();
            let error = OutputError {
                kind: sums.kind.unwrap_or_default(),
                apart: sums.sum.metrics(),
                top1: agreement.map_or(share(sums.same, sums.rows), |(first, _)| Some(first)),
                top5: agreement.map_or(share(sums.among, sums.rows), |(_, five)| Some(five)),
                tokens: sums.tokens.finish(caches),
                accuracy: share(sums.right.0, sums.labelled)
                    .zip(share(sums.right.1, sums.labelled)),
                name: output.name,
                boxes,
                parts,
                weights_only: None,
                activations_only: None,
            };
            (error, evidence)
        };
        self.all.into_iter().enumerate().map(finish).collect()
    }
}

/// Height and width of the first input that may be a picture.
pub(super) fn picture_size(inputs: &[Tensor]) -> Option<(usize, usize)> {
    inputs.iter().find_map(|input| match *input.shape() {
        [_, channels, height, width] if channels <= 4 => Some((height, width)),
        [_, height, width, channels] if channels <= 4 => Some((height, width)),
        _ => None,
    })
}

fn output_tensors<'a>(values: &'a [Vec<f32>], tensors: &'a [Tensor]) -> Vec<OutputTensor<'a>> {
    let each = values.iter().zip(tensors);
    each.map(|(values, tensor)| (values.as_slice(), tensor.shape()))
        .collect()
}

impl OutputAccumulator {
    fn add(
        &mut self,
        (first, shape): OutputTensor<'_>,
        (second, other): OutputTensor<'_>,
        text: Option<&SampleText>,
        label: Option<usize>,
    ) {
        let sums = &mut self.sums;
        sums.sum.add(first, second);
        sums.evidence.add_values(first, second);
        if sums.kind == Some(OutputKind::Tokens) {
            let text = text.filter(|text| shape == other && text.is_scored_by(shape));
            if let Some(text) = text {
                let sample = TokenSums::of_sample((first, shape), second, text);
                sample.testify(&mut sums.evidence);
                sums.tokens.merge(&sample);
            }
            return;
        }
        let rows = shape_of_rows(shape);
        let classes = match (sums.kind, rows) {
            (Some(OutputKind::Classes), &[_, classes]) => classes,
            (Some(OutputKind::Steps), &[_, _, classes]) => classes,
            _ => return,
        };
        if classes < 2 || shape != other {
            return;
        }
        let before = (sums.same, sums.rows);
        for (a, b) in first.chunks(classes).zip(second.chunks(classes)) {
            let (best, other) = (greatest(a), greatest(b));
            sums.rows += 1;
            sums.same += u64::from(best == other);
            let above = b.iter().filter(|&&value| value > b[best]).count();
            sums.among += u64::from(above < 5);
            if let Some(label) = label.filter(|_| rows.len() == 2) {
                sums.labelled += 1;
                sums.right.0 += u64::from(best == label);
                sums.right.1 += u64::from(other == label);
                sums.evidence.add_label(best == label, other == label);
            }
        }
        let (same, rows) = (sums.same - before.0, sums.rows - before.1);
        sums.evidence.add_share(same, rows);
    }
}

/// Index of the largest value, the first of equal ones.
pub(crate) fn greatest(values: &[f32]) -> usize {
    let mut best = 0;
    for (place, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = place;
        }
    }
    best
}

pub(crate) fn floats(tensor: &Tensor) -> Vec<f32> {
    match tensor.values() {
        Values::F32(v) => v.clone(),
        Values::F64(v) => v.iter().map(|&x| x as f32).collect(),
        Values::I8(v) => v.iter().map(|&x| x.into()).collect(),
        Values::I16(v) => v.iter().map(|&x| x.into()).collect(),
        Values::I32(v) => v.iter().map(|&x| x as f32).collect(),
        Values::I64(v) => v.iter().map(|&x| x as f32).collect(),
        Values::U8(v) => v.iter().map(|&x| x.into()).collect(),
        Values::U16(v) => v.iter().map(|&x| x.into()).collect(),
        Values::U32(v) => v.iter().map(|&x| x as f32).collect(),
        Values::U64(v) => v.iter().map(|&x| x as f32).collect(),
        Values::Bool(v) => v.iter().map(|&x| f32::from(u8::from(x))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[f32]) -> Tensor {
        Tensor::new(vec![1, values.len()], Values::F32(values.to_vec())).unwrap()
    }

    fn outputs(names: &[&str]) -> OutputAccumulators {
        let output = |name: &&str| OutputAccumulator {
            name: (*name).into(),
            traits: OutputTraits::named(name),
            ..OutputAccumulator::default()
        };
        OutputAccumulators {
            all: names.iter().map(output).collect(),
            caches: false,
            detector: None,
        }
    }

    fn errors(outputs: OutputAccumulators) -> Vec<OutputError> {
        let all = outputs.finish().into_iter();
        all.map(|(error, _)| error).collect()
    }

    #[test]
    fn the_worst_output_that_tells_anything_is_the_headline() {
        let whole = Tensor::new(vec![1, 3], Values::I64(vec![7, 8, 9])).unwrap();
        let (right, wrong) = (row(&[1.0, 2.0, 3.0]), row(&[1.0, 2.0, 2.0]));
        let mut outputs = outputs(&["ids", "sentence_embedding", "hidden"]);
        outputs.all[0].sums.kind = Some(OutputKind::Integers);
        let float = [whole, right.clone(), right.clone()];
        outputs.add(&float, &[float[0].clone(), wrong, right], None, None, None);
        let errors = errors(outputs);
        assert_eq!(errors[0].top1, None);
        assert_eq!(headline(&errors).as_deref(), Some("sentence_embedding"));
        assert_eq!(headline(&errors[..1]), None);
    }

    #[test]
    fn answers_are_counted_row_by_row() {
        let mut outputs = outputs(&["y"]);
        let float = row(&[0.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let float = std::slice::from_ref(&float);
        outputs.add(float, float, None, None, Some(1));
        // The top class is second in the quantized model …
        let second = row(&[0.0, 8.0, 1.0, 2.0, 3.0, 4.0, 8.5]);
        outputs.add(float, &[second], None, None, Some(6));
        // … and last here.
        let last = row(&[0.0, -1.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        outputs.add(float, &[last], None, None, None);
        let errors = errors(outputs);
        assert_eq!(errors[0].top1, Some(1.0 / 3.0));
        assert_eq!(errors[0].top5, Some(2.0 / 3.0));
        assert_eq!(errors[0].accuracy, Some((0.5, 1.0)));
    }
}
