//! Errors of the outputs and agreement of the answers.

use serde::Serialize;

use super::boxes::{Detector, FoundAgain, Made, Parts};
use super::difference::{Apart, Difference};
use super::kinds::{Ending, OutputKind, shape_of_rows};
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
    pub apart: Apart,
    /// For rows of classes: the share of rows with the same top class.
    pub top1: Option<f64>,
    /// The share of rows whose top float class is among the top five quantized classes.
    pub top5: Option<f64>,
    /// With labels: the share of samples whose top class is the label, float and quantized.
    pub accuracy: Option<(f64, f64)>,
    /// For the boxes of a detector: confident boxes that match.
    pub boxes: Option<FoundAgain>,
    /// For boxes and scores in one output: the SQNR of each.
    pub parts: Option<Parts>,
    /// If the error is split: the SQNR with only the model's weights as integers.
    pub weights_only: Option<f64>,
    /// If the error is split: the SQNR with only the activations as integers.
    pub activations_only: Option<f64>,
}

/// The output with the lowest SQNR, among those that can be judged.
pub(super) fn headline(outputs: &[OutputError]) -> Option<String> {
    let telling = outputs.iter().filter(|output| output.kind.tells());
    let worst = telling.min_by(|a, b| a.least().total_cmp(&b.least()));
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
pub(super) struct Outputs {
    all: Vec<Output>,
    /// `None` until the first sample shows the shapes.
    detector: Option<Option<Detector>>,
}

#[derive(Default)]
struct Output {
    name: String,
    ending: Ending,
    kind: Option<OutputKind>,
    sum: Difference,
    rows: u64,
    same: u64,
    among: u64,
    labelled: u64,
    right: (u64, u64),
}

impl Outputs {
    pub(super) fn of(model: &Model) -> Outputs {
        let names = model.graph.outputs.iter();
        let names = names.map(|output| output.name.clone().unwrap_or_default());
        let output = |(name, ending)| Output {
            name,
            ending,
            ..Output::default()
        };
        Outputs {
            all: names.zip(Ending::all(model)).map(output).collect(),
            detector: None,
        }
    }

    pub(super) fn add(&mut self, float: &[Tensor], quantized: &[Tensor], label: Option<usize>) {
        let all = |tensors: &[Tensor]| -> Vec<Vec<f32>> { tensors.iter().map(floats).collect() };
        let (first, second) = (all(float), all(quantized));
        let first: Vec<Made<'_>> = made(&first, float);
        let second: Vec<Made<'_>> = made(&second, quantized);
        let detector = self.detector.get_or_insert_with(|| {
            let endings: Vec<Ending> = self.all.iter().map(|one| one.ending.clone()).collect();
            let shapes: Vec<&[usize]> = first.iter().map(|(_, shape)| *shape).collect();
            Detector::of(&endings, &shapes)
        });
        let pairs = first.iter().zip(&second).enumerate();
        for (output, (at, (&a, &b))) in self.all.iter_mut().zip(pairs) {
            if output.kind.is_none() {
                let part = detector.as_ref().and_then(|detector| detector.kind(at));
                let (kind, whole) = (output.ending.kind(a.1), shape_of_rows(a.1).len() == 2);
                // Labels imply that the output holds classes.
                let labelled = label.is_some() && whole && kind.tells();
                let kind = if labelled { OutputKind::Classes } else { kind };
                output.kind = Some(part.unwrap_or(kind));
            }
            output.add(a, b, label);
        }
        if let Some(detector) = detector {
            detector.add(&first, &second);
        }
    }

    pub(super) fn finish(self) -> Vec<OutputError> {
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let detector = self.detector.flatten();
        let finish = |(at, output): (usize, Output)| {
            let (boxes, parts) = detector.as_ref().map_or((None, None), |one| one.finish(at));
            OutputError {
                name: output.name,
                kind: output.kind.unwrap_or_default(),
                apart: output.sum.apart(),
                top1: share(output.same, output.rows),
                top5: share(output.among, output.rows),
                accuracy: share(output.right.0, output.labelled)
                    .zip(share(output.right.1, output.labelled)),
                boxes,
                parts,
                weights_only: None,
                activations_only: None,
            }
        };
        self.all.into_iter().enumerate().map(finish).collect()
    }
}

fn made<'a>(values: &'a [Vec<f32>], tensors: &'a [Tensor]) -> Vec<Made<'a>> {
    let each = values.iter().zip(tensors);
    each.map(|(values, tensor)| (values.as_slice(), tensor.shape()))
        .collect()
}

impl Output {
    fn add(&mut self, (first, shape): Made<'_>, (second, other): Made<'_>, label: Option<usize>) {
        self.sum.add(first, second);
        let rows = shape_of_rows(shape);
        let classes = match (self.kind, rows) {
            (Some(OutputKind::Classes), &[_, classes]) => classes,
            (Some(OutputKind::Steps), &[_, _, classes]) => classes,
            _ => return,
        };
        if classes < 2 || shape != other {
            return;
        }
        for (a, b) in first.chunks(classes).zip(second.chunks(classes)) {
            let (best, other) = (greatest(a), greatest(b));
            self.rows += 1;
            self.same += u64::from(best == other);
            let above = b.iter().filter(|&&value| value > b[best]).count();
            self.among += u64::from(above < 5);
            if let Some(label) = label.filter(|_| rows.len() == 2) {
                self.labelled += 1;
                self.right.0 += u64::from(best == label);
                self.right.1 += u64::from(other == label);
            }
        }
    }
}

/// Index of the largest value, the first of equal ones.
fn greatest(values: &[f32]) -> usize {
    let mut best = 0;
    for (place, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = place;
        }
    }
    best
}

pub(super) fn floats(tensor: &Tensor) -> Vec<f32> {
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

    fn outputs(names: &[&str]) -> Outputs {
        let output = |name: &&str| Output {
            name: (*name).into(),
            ending: Ending::named(name),
            ..Output::default()
        };
        Outputs {
            all: names.iter().map(output).collect(),
            detector: None,
        }
    }

    #[test]
    fn the_worst_output_that_tells_anything_is_the_headline() {
        let whole = Tensor::new(vec![1, 3], Values::I64(vec![7, 8, 9])).unwrap();
        let (right, wrong) = (row(&[1.0, 2.0, 3.0]), row(&[1.0, 2.0, 2.0]));
        let mut outputs = outputs(&["ids", "sentence_embedding", "hidden"]);
        outputs.all[0].kind = Some(OutputKind::Integers);
        let float = [whole, right.clone(), right.clone()];
        outputs.add(&float, &[float[0].clone(), wrong, right], None);
        let found = outputs.finish();
        assert_eq!(found[0].top1, None);
        assert_eq!(headline(&found).as_deref(), Some("sentence_embedding"));
        assert_eq!(headline(&found[..1]), None);
    }

    #[test]
    fn answers_are_counted_row_by_row() {
        let mut outputs = outputs(&["y"]);
        let float = row(&[0.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let float = std::slice::from_ref(&float);
        outputs.add(float, float, Some(1));
        // The top class is second in the quantized model …
        let second = row(&[0.0, 8.0, 1.0, 2.0, 3.0, 4.0, 8.5]);
        outputs.add(float, &[second], Some(6));
        // … and last here.
        let last = row(&[0.0, -1.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        outputs.add(float, &[last], None);
        let found = outputs.finish();
        assert_eq!(found[0].top1, Some(1.0 / 3.0));
        assert_eq!(found[0].top5, Some(2.0 / 3.0));
        assert_eq!(found[0].accuracy, Some((0.5, 1.0)));
    }
}
