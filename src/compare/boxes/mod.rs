//! Compares the boxes of a detector, float and quantized: confident boxes that match.

mod reading;

use serde::Serialize;

use reading::{Box, Form, Scale, boxes, last_but, rows_of};

use super::difference::Difference;
use super::kinds::{Ending, OutputKind};

/// Numbers of confident boxes and of those that match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "BoxMatches")]
pub struct FoundAgain {
    /// Confident boxes of the float model, those with a score of at least 0.25.
    pub confident: u64,
    /// Confident boxes of the float model with a match: a confident quantized box of the same class with an IoU of at
    /// least 0.5.
    pub found: u64,
    /// Confident boxes of the quantized model without such a match in the float model.
    pub extra: u64,
}

/// SQNR of box coordinates and scores in one output, in decibels. Coordinates are large and would
/// hide the error of the scores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DetectionErrors")]
pub struct Parts {
    /// SQNR of the coordinates.
    pub boxes: f64,
    /// SQNR of the scores.
    pub scores: f64,
}

/// Score from which a box is confident.
const CONFIDENT: f32 = 0.25;
/// IoU from which two boxes match.
const OVERLAP: f32 = 0.5;
/// Limit on the boxes of a sample that are compared, the best first.
const MOST: usize = 1000;
/// Minimum number of rows of a detector output that holds boxes and scores together.
const ROWS: usize = 64;

/// Outputs that belong to a detector, with their statistics.
#[derive(Clone, Debug)]
pub(super) struct Detector {
    form: Form,
    difference: (Difference, Difference),
    found: FoundAgain,
}

/// Values of an output and their shape.
pub(super) type Made<'a> = (&'a [f32], &'a [usize]);

impl Detector {
    /// Recognizes a detector by its outputs; `None` if there is none.
    pub(super) fn of(endings: &[Ending], shapes: &[&[usize]]) -> Option<Detector> {
        let one = endings.iter().zip(shapes).enumerate();
        let one = one.filter(|(_, (ending, _))| ending.silent().is_none());
        let form = one
            .clone()
            .find_map(|(at, (ending, shape))| in_one(ending, shape).map(|form| form(at)))
            .or_else(|| apart(endings, shapes))?;
        Some(Detector {
            form,
            difference: Default::default(),
            found: FoundAgain::default(),
        })
    }

    /// The kind of an output that belongs to the detector.
    pub(super) fn kind(&self, output: usize) -> Option<OutputKind> {
        match self.form {
            Form::Columns(one) | Form::Rows(one) | Form::Chosen(one) => {
                (output == one).then_some(OutputKind::Boxes)
            }
            Form::Apart { boxes, scores, .. } => match output {
                _ if output == boxes => Some(OutputKind::Boxes),
                _ if output == scores => Some(OutputKind::Scores),
                _ => None,
            },
        }
    }

    /// Adds a sample.
    pub(super) fn add(&mut self, float: &[Made<'_>], quantized: &[Made<'_>]) {
        self.add_parts(float, quantized);
        let scale = Scale::of(self.form, float);
        let confident = |made: &[Made<'_>]| {
            let mut boxes = boxes(self.form, &scale, made);
            boxes.retain(|one| one.score >= CONFIDENT);
            boxes.sort_by(|a, b| b.score.total_cmp(&a.score));
            boxes.truncate(MOST);
            boxes
        };
        let (first, second) = (confident(float), confident(quantized));
        let is_among = |one: &&Box, others: &[Box]| {
            let mut same = others
                .iter()
                .filter(|other| (other.item, other.class) == (one.item, one.class));
            same.any(|other| overlap(one.places, other.places) >= OVERLAP)
        };
        self.found.confident += first.len() as u64;
        self.found.found += first.iter().filter(|one| is_among(one, &second)).count() as u64;
        self.found.extra += second.iter().filter(|one| !is_among(one, &first)).count() as u64;
    }

    fn add_parts(&mut self, float: &[Made<'_>], quantized: &[Made<'_>]) {
        let (at, columns) = match self.form {
            Form::Columns(at) => (at, true),
            Form::Rows(at) | Form::Chosen(at) => (at, false),
            Form::Apart { .. } => return,
        };
        let ((a, shape), (b, other)) = (float[at], quantized[at]);
        let [.., height, width] = *shape else { return };
        if shape != other {
            return;
        }
        let is_place = |index: usize| match columns {
            true => index / width % height < 4,
            false => index % width < 4,
        };
        let (places, scores): (Vec<usize>, Vec<usize>) = (0..a.len()).partition(|&i| is_place(i));
        let of = |all: &[usize], values: &[f32]| -> Vec<f32> {
            all.iter().map(|&index| values[index]).collect()
        };
        self.difference.0.add(&of(&places, a), &of(&places, b));
        self.difference.1.add(&of(&scores, a), &of(&scores, b));
    }

    /// The results for an output that holds boxes.
    pub(super) fn finish(&self, output: usize) -> (Option<FoundAgain>, Option<Parts>) {
        if self.kind(output) != Some(OutputKind::Boxes) {
            return (None, None);
        }
        let parts = (!matches!(self.form, Form::Apart { .. })).then(|| Parts {
            boxes: self.difference.0.apart().sqnr,
            scores: self.difference.1.apart().sqnr,
        });
        (Some(self.found), parts)
    }
}

/// Layout of a detector with a single output.
fn in_one(ending: &Ending, shape: &[usize]) -> Option<fn(usize) -> Form> {
    match *shape {
        [.., rows, 6] if ending.is_choice() && shape.len() < 4 && rows > 0 => Some(Form::Chosen),
        [_, high, wide] if ending.joins_scores() => {
            match (high >= ROWS && high > wide, wide >= ROWS && wide > high) {
                (true, _) if wide > 5 => Some(Form::Rows),
                (_, true) if high > 4 => Some(Form::Columns),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Layout of a detector with separate outputs for boxes and scores.
fn apart(endings: &[Ending], shapes: &[&[usize]]) -> Option<Form> {
    let tells = |at: &usize| endings[*at].silent().is_none();
    let all = || (0..shapes.len()).filter(tells);
    let count = |at: usize| rows_of(shapes[at], 4);
    let boxes = all().find(|&at| {
        let named = endings[at].is_called_boxes();
        let beside = all().any(|other| other != at && endings[other].is_called_scores());
        shapes[at].len() > 1 && shapes[at].last() == Some(&4) && (named || beside)
    })?;
    let rows = count(boxes);
    let fits = |at: &usize| {
        let shape = shapes[*at];
        let elements: usize = shape.iter().product();
        *at != boxes
            && rows > 0
            && elements.is_multiple_of(rows)
            && shape.contains(&last_but(shapes[boxes]))
    };
    let scores = all()
        .filter(fits)
        .max_by_key(|&at| endings[at].is_called_scores())?;
    let per_box = shapes[scores].iter().product::<usize>() / rows;
    let classes = (per_box == 1)
        .then(|| {
            let mut whole = (0..shapes.len()).filter(|&at| at != boxes && at != scores);
            whole.find(|&at| shapes[at].iter().product::<usize>() == rows)
        })
        .flatten();
    Some(Form::Apart {
        boxes,
        scores,
        classes,
    })
}

/// IoU of two boxes: intersection over union.
fn overlap(a: [f32; 4], b: [f32; 4]) -> f32 {
    let area =
        |[left, top, right, bottom]: [f32; 4]| (right - left).max(0.0) * (bottom - top).max(0.0);
    let both = area([
        a[0].max(b[0]),
        a[1].max(b[1]),
        a[2].min(b[2]),
        a[3].min(b[3]),
    ]);
    let whole = area(a) + area(b) - both;
    if whole > 0.0 { both / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detector(form: Form) -> Detector {
        Detector {
            form,
            difference: Default::default(),
            found: FoundAgain::default(),
        }
    }

    #[test]
    fn boxes_are_found_again_where_half_of_them_and_their_class_are_the_same() {
        // Three boxes: center, size, objectness, two classes.
        let shape = [1usize, 3, 7];
        let float = [
            10.0, 10.0, 8.0, 8.0, 0.9, 0.9, 0.1, //
            40.0, 40.0, 8.0, 8.0, 0.8, 0.1, 0.9, //
            70.0, 70.0, 8.0, 8.0, 0.1, 0.9, 0.1,
        ];
        let mut quantized = float;
        quantized[0] = 11.0; // IoU still above a half
        quantized[7 + 5..7 + 7].copy_from_slice(&[0.9, 0.1]); // another class
        let mut seen = detector(Form::Rows(0));
        seen.add(&[(&float, &shape)], &[(&quantized, &shape)]);
        assert_eq!(
            seen.found,
            FoundAgain {
                confident: 2,
                found: 1,
                extra: 1
            }
        );
        quantized[0] = 16.0; // IoU of about a seventh
        seen.add(&[(&float, &shape)], &[(&quantized, &shape)]);
        assert_eq!(
            seen.found,
            FoundAgain {
                confident: 4,
                found: 1,
                extra: 3
            }
        );
        let parts = seen.finish(0).1.unwrap();
        assert!(parts.boxes > 20.0 && parts.scores < 5.0, "{parts:?}");
    }

    #[test]
    fn a_box_a_column_is_read_like_a_box_a_row() {
        let shape = [1usize, 6, 2];
        let float = [
            10.0, 40.0, 10.0, 40.0, 8.0, 8.0, 8.0, 8.0, 0.9, 0.0, 0.0, 0.1,
        ];
        let mut seen = detector(Form::Columns(0));
        seen.add(&[(&float, &shape)], &[(&float, &shape)]);
        assert_eq!(
            seen.found,
            FoundAgain {
                confident: 1,
                found: 1,
                extra: 0
            }
        );
    }

    #[test]
    fn a_class_for_nothing_is_no_box() {
        let (places, scores) = (
            [
                0.1f32, 0.1, 0.3, 0.3, 0.5, 0.5, 0.9, 0.9, 0.2, 0.2, 0.4, 0.4,
            ],
            [0.9f32, 0.1, 0.2, 0.8, 0.95, 0.05],
        );
        let (of_places, of_scores) = ([1usize, 3, 4], [1usize, 3, 2]);
        let made: [Made<'_>; 2] = [(&places, &of_places), (&scores, &of_scores)];
        let mut seen = detector(Form::Apart {
            boxes: 0,
            scores: 1,
            classes: None,
        });
        seen.add(&made, &made);
        assert_eq!(
            seen.found,
            FoundAgain {
                confident: 1,
                found: 1,
                extra: 0
            }
        );
    }

    #[test]
    fn detectors_are_known_by_their_shapes() {
        let named = |name: &str| Ending::named(name);
        let shapes: [&[usize]; 2] = [&[1, 100, 4], &[1, 100, 92]];
        let endings = [named("pred_boxes"), named("logits")];
        let found = Detector::of(&endings, &shapes).unwrap();
        assert_eq!(found.kind(0), Some(OutputKind::Boxes));
        assert_eq!(found.kind(1), Some(OutputKind::Scores));
        // Hidden states of a hundred tokens are no detector.
        assert!(Detector::of(&[named("last_hidden_state")], &[&[1, 100, 384]]).is_none());
        let joined = Ending::joined();
        let columns = Detector::of(std::slice::from_ref(&joined), &[&[1, 84, 8400]]).unwrap();
        assert_eq!(columns.form, Form::Columns(0));
        let rows = Detector::of(&[joined], &[&[1, 25_200, 85]]).unwrap();
        assert_eq!(rows.form, Form::Rows(0));
    }
}
