//! Compares the boxes of a detector, float and quantized: confident boxes that match.

mod decode;
mod pyramid;

use serde::{Deserialize, Serialize};

pub use decode::DetectedBox;
use decode::{BoxDecoding, BoxLayout, Surroundings, boxes, boxes_per_sample, rows_of};
use pyramid::PyramidHeads;

use super::difference::Difference;
use super::output_kinds::{OutputKind, OutputTraits};

/// Numbers of confident boxes and of those that match.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct BoxMatches {
    /// Confident boxes of the float model, those with a score of at least 0.25.
    pub confident: u64,
    /// Confident boxes of the float model with a match: a confident quantized box of the same class
    /// with an IoU of at least 0.5.
    #[serde(rename = "found")]
    pub matched: u64,
    /// Confident boxes of the quantized model without such a match in the float model.
    pub extra: u64,
}

/// SQNR of box coordinates and scores in one output, in decibels. Coordinates are large and would
/// hide the error of the scores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DetectionErrors {
    /// SQNR of the coordinates.
    pub boxes: f64,
    /// SQNR of the scores.
    pub scores: f64,
}

/// Score from which a box is confident.
const MIN_SCORE: f32 = 0.25;
/// IoU from which two boxes match.
const MIN_IOU: f32 = 0.5;
/// One in so many confident boxes of the float model may have no area. If there are more, the output
/// holds distances from anchors, not boxes.
const FLAT: usize = 10;
/// Limit on the boxes of a sample that are compared, the best first.
const MAX_BOXES: usize = 1000;
/// Minimum number of rows of a detector output that holds boxes and scores together.
const MIN_ROWS: usize = 64;

/// Outputs that belong to a detector, with their statistics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Detector {
    layout: BoxLayout,
    /// Output with the prototypes of masks, and their number.
    prototypes: Option<(usize, usize)>,
    difference: (Difference, Difference),
    matches: BoxMatches,
}

/// Values of an output and their shape.
pub(super) type OutputTensor<'a> = (&'a [f32], &'a [usize]);

impl Detector {
    /// Recognizes a detector by its outputs; `None` if there is none.
    pub(super) fn from_outputs(traits: &[OutputTraits], shapes: &[&[usize]]) -> Option<Detector> {
        let one = traits.iter().zip(shapes).enumerate();
        let one = one.filter(|(_, (traits, _))| traits.unjudged().is_none());
        let layout = one
            .clone()
            .find_map(|(at, (traits, shape))| single_output(traits, shape).map(|layout| layout(at)))
            .or_else(|| separate_outputs(traits, shapes))
            .or_else(|| PyramidHeads::from_outputs(traits, shapes).map(BoxLayout::Pyramid))?;
        Some(Detector {
            layout,
            prototypes: prototypes(layout, traits, shapes),
            difference: Default::default(),
            matches: BoxMatches::default(),
        })
    }

    /// The kind of an output that belongs to the detector.
    pub(super) fn kind(&self, output: usize) -> Option<OutputKind> {
        match self.layout {
            BoxLayout::Columns(one)
            | BoxLayout::Rows(one)
            | BoxLayout::Selected(one)
            | BoxLayout::Batched(one) => (output == one).then_some(OutputKind::Boxes),
            BoxLayout::Separate { boxes, scores, .. } => match output {
                _ if output == boxes => Some(OutputKind::Boxes),
                _ if output == scores => Some(OutputKind::Scores),
                _ => None,
            },
            BoxLayout::Pyramid(levels) if levels.has_distances(output) => Some(OutputKind::Boxes),
            BoxLayout::Pyramid(levels) => levels.has_scores(output).then_some(OutputKind::Scores),
        }
    }

    /// The output with the prototypes of masks.
    pub(super) fn prototypes(&self) -> Option<usize> {
        self.prototypes.map(|(output, _)| output)
    }

    /// Adds a sample of a picture of this height and width, if it is one. Returns its matches, and
    /// the confident boxes of both models.
    pub(super) fn add(
        &mut self,
        float: &[OutputTensor<'_>],
        quantized: &[OutputTensor<'_>],
        picture: Option<(usize, usize)>,
    ) -> (BoxMatches, [Vec<DetectedBox>; 2]) {
        self.add_differences(float, quantized);
        let around = Surroundings {
            prototypes: self.prototypes.map_or(0, |(_, count)| count),
            picture,
        };
        let decoding = BoxDecoding::new(self.layout, float, around);
        let confident = |outputs: &[OutputTensor<'_>]| {
            let mut boxes = boxes(self.layout, &decoding, outputs);
            boxes.retain(|one| one.score >= MIN_SCORE);
            boxes.sort_by(|a, b| b.score.total_cmp(&a.score));
            boxes.truncate(MAX_BOXES);
            boxes
        };
        let (mut first, mut second) = (confident(float), confident(quantized));
        let flat = first.iter().filter(|one| area(one.coordinates) <= 0.0);
        if flat.count() * FLAT > first.len() {
            first.clear();
            second.clear();
        }
        let is_among = |one: &&DetectedBox, others: &[DetectedBox]| {
            let mut same = others
                .iter()
                .filter(|other| (other.item, other.class) == (one.item, one.class));
            same.any(|other| iou(one.coordinates, other.coordinates) >= MIN_IOU)
        };
        let sample = BoxMatches {
            confident: first.len() as u64,
            matched: first.iter().filter(|one| is_among(one, &second)).count() as u64,
            extra: second.iter().filter(|one| !is_among(one, &first)).count() as u64,
        };
        self.matches.confident += sample.confident;
        self.matches.matched += sample.matched;
        self.matches.extra += sample.extra;
        (sample, [first, second])
    }

    fn add_differences(&mut self, float: &[OutputTensor<'_>], quantized: &[OutputTensor<'_>]) {
        let (at, columns) = match self.layout {
            BoxLayout::Columns(at) => (at, true),
            BoxLayout::Rows(at) | BoxLayout::Selected(at) => (at, false),
            BoxLayout::Batched(_) | BoxLayout::Separate { .. } | BoxLayout::Pyramid(_) => return,
        };
        let ((a, shape), (b, other)) = (float[at], quantized[at]);
        let [.., height, width] = *shape else { return };
        if shape != other {
            return;
        }
        let (place, end) = match columns {
            true => (
                (|index, width, height| index / width % height) as fn(_, _, _) -> usize,
                height,
            ),
            false => (
                (|index, width, _| index % width) as fn(_, _, _) -> usize,
                width,
            ),
        };
        let end = end - self.prototypes.map_or(0, |(_, count)| count);
        let at = |index: &usize| place(*index, width, height);
        let judged = (0..a.len()).filter(|index| at(index) < end);
        let (coordinates, scores): (Vec<usize>, Vec<usize>) =
            judged.partition(|index| at(index) < 4);
        let pick = |all: &[usize], values: &[f32]| -> Vec<f32> {
            all.iter().map(|&index| values[index]).collect()
        };
        self.difference
            .0
            .add(&pick(&coordinates, a), &pick(&coordinates, b));
        self.difference.1.add(&pick(&scores, a), &pick(&scores, b));
    }

    /// Adds the sums over other samples. Returns false if those had another layout.
    pub(super) fn merge(&mut self, other: &Detector) -> bool {
        self.difference.0.merge(&other.difference.0);
        self.difference.1.merge(&other.difference.1);
        let add = |all: &mut u64, more: u64| *all = all.saturating_add(more);
        add(&mut self.matches.confident, other.matches.confident);
        add(&mut self.matches.matched, other.matches.matched);
        add(&mut self.matches.extra, other.matches.extra);
        self.layout == other.layout
    }

    /// The results for an output that holds boxes.
    pub(super) fn finish(&self, output: usize) -> (Option<BoxMatches>, Option<DetectionErrors>) {
        if self.kind(output) != Some(OutputKind::Boxes) {
            return (None, None);
        }
        let together = !matches!(
            self.layout,
            BoxLayout::Separate { .. } | BoxLayout::Batched(_) | BoxLayout::Pyramid(_)
        );
        let parts = together.then(|| DetectionErrors {
            boxes: self.difference.0.metrics().sqnr,
            scores: self.difference.1.metrics().sqnr,
        });
        (Some(self.matches), parts)
    }
}

/// Layout of a detector with a single output.
fn single_output(traits: &OutputTraits, shape: &[usize]) -> Option<fn(usize) -> BoxLayout> {
    match *shape {
        [.., rows, 6] if traits.is_selection() && shape.len() < 4 && rows > 0 => {
            Some(BoxLayout::Selected)
        }
        [_, 7] if traits.is_selection() => Some(BoxLayout::Batched),
        [_, high, wide] if traits.joins_scores() => {
            match (
                high >= MIN_ROWS && high > wide,
                wide >= MIN_ROWS && wide > high,
            ) {
                (true, _) if wide > 5 => Some(BoxLayout::Rows),
                (_, true) if high > 4 => Some(BoxLayout::Columns),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Output with prototypes of masks, and their number: planes beside boxes that have a coefficient
/// for each.
fn prototypes(
    layout: BoxLayout,
    traits: &[OutputTraits],
    shapes: &[&[usize]],
) -> Option<(usize, usize)> {
    let (at, width, first) = match layout {
        BoxLayout::Columns(at) => (at, shapes[at].iter().rev().nth(1)?, 4),
        BoxLayout::Rows(at) => (at, shapes[at].last()?, 5),
        _ => return None,
    };
    let mut others = (0..shapes.len()).filter(|&other| other != at);
    others.find_map(|other| match *shapes[other] {
        [_, count, high, wide] if high.min(wide) >= 8 && count > 1 && first + count < *width => {
            traits[other].unjudged().is_none().then_some((other, count))
        }
        _ => None,
    })
}

/// Layout of a detector with separate outputs for boxes and scores.
fn separate_outputs(traits: &[OutputTraits], shapes: &[&[usize]]) -> Option<BoxLayout> {
    let is_judged = |at: &usize| traits[*at].unjudged().is_none();
    let all = || (0..shapes.len()).filter(is_judged);
    let count = |at: usize| rows_of(shapes[at], 4);
    let boxes = all().find(|&at| {
        let named = traits[at].is_called_boxes();
        let beside = all().any(|other| other != at && traits[other].is_called_scores());
        shapes[at].len() > 1 && shapes[at].last() == Some(&4) && (named || beside)
    })?;
    let rows = count(boxes);
    let fits = |at: &usize| {
        let shape = shapes[*at];
        let elements: usize = shape.iter().product();
        *at != boxes
            && rows > 0
            && elements.is_multiple_of(rows)
            && shape.contains(&boxes_per_sample(shapes[boxes]))
    };
    let scores = all()
        .filter(fits)
        .max_by_key(|&at| traits[at].is_called_scores())?;
    let per_box = shapes[scores].iter().product::<usize>() / rows;
    let classes = (per_box == 1)
        .then(|| {
            let mut whole = (0..shapes.len()).filter(|&at| at != boxes && at != scores);
            whole.find(|&at| shapes[at].iter().product::<usize>() == rows)
        })
        .flatten();
    Some(BoxLayout::Separate {
        boxes,
        scores,
        classes,
    })
}

fn area([left, top, right, bottom]: [f32; 4]) -> f32 {
    (right - left).max(0.0) * (bottom - top).max(0.0)
}

/// IoU of two boxes: intersection over union.
fn iou(a: [f32; 4], b: [f32; 4]) -> f32 {
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
mod tests;
