//! Reads boxes, scores and classes from the outputs of a detector.

use serde::{Deserialize, Serialize};

use super::OutputTensor;

/// Layout of boxes and scores in the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum BoxLayout {
    /// One output, a box in each column: four coordinates, then a score for each class.
    Columns(usize),
    /// One output, a box in each row: four coordinates, objectness, then a score for each class.
    Rows(usize),
    /// One output, a row for each selected box: two corners, score, class.
    Selected(usize),
    /// Separate outputs for coordinates and scores, and for classes if there is one score for each
    /// box.
    Separate {
        boxes: usize,
        scores: usize,
        classes: Option<usize>,
    },
}

/// A box of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DetectedBox {
    /// Place in the batch.
    pub item: usize,
    /// Two corners, in the order and the unit of the model.
    pub coordinates: [f32; 4],
    /// Score of the class.
    pub score: f32,
    /// Class with the highest score.
    pub class: usize,
}

pub(super) fn rows_of(shape: &[usize], width: usize) -> usize {
    shape.iter().product::<usize>() / width
}

/// Number of boxes in a sample, from a shape that ends in four coordinates.
pub(super) fn boxes_per_sample(shape: &[usize]) -> usize {
    let before = &shape[..shape.len() - 1];
    before
        .iter()
        .rev()
        .copied()
        .find(|&size| size != 1)
        .unwrap_or(1)
}

/// Interpretation of scores and coordinates, derived from the float model and applied to both
/// models.
pub(super) struct BoxDecoding {
    /// True if scores are logits.
    logits: bool,
    /// The background class, if the scores of a box add up to one.
    background: Option<usize>,
    /// True if coordinates are two corners; false if they are center and size.
    corners: bool,
}

impl BoxDecoding {
    pub(super) fn new(layout: BoxLayout, outputs: &[OutputTensor<'_>]) -> BoxDecoding {
        let mut decoding = BoxDecoding {
            logits: false,
            background: None,
            corners: matches!(layout, BoxLayout::Selected(_)),
        };
        let BoxLayout::Separate { boxes, scores, .. } = layout else {
            return decoding;
        };
        decoding.logits = outputs[scores]
            .0
            .iter()
            .any(|score| !(0.0..=1.0).contains(score));
        let coordinates = outputs[boxes].0.chunks_exact(4);
        decoding.corners = coordinates.clone().all(|p| p[2] >= p[0] && p[3] >= p[1]);
        let rows = rows_of(outputs[boxes].1, 4);
        let scored = scores_of(outputs[scores], rows, boxes_per_sample(outputs[boxes].1));
        let scored: Vec<Vec<f32>> = scored
            .iter()
            .map(|row| decoding.probabilities(row))
            .collect();
        let sums = |row: &Vec<f32>| row.len() > 1 && (row.iter().sum::<f32>() - 1.0).abs() < 0.02;
        if !scored.is_empty() && scored.iter().all(sums) {
            let mut counts = vec![0usize; scored[0].len()];
            for row in &scored {
                counts[greatest(row)] += 1;
            }
            decoding.background = (0..counts.len()).max_by_key(|&class| counts[class]);
        }
        decoding
    }

    fn probabilities(&self, row: &[f32]) -> Vec<f32> {
        match (self.logits, row.len()) {
            (false, _) => row.to_vec(),
            (true, 1) => vec![1.0 / (1.0 + (-row[0]).exp())],
            (true, _) => {
                let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let sum: f32 = row.iter().map(|value| (value - most).exp()).sum();
                row.iter().map(|value| (value - most).exp() / sum).collect()
            }
        }
    }
}

/// The scores of each box, in the order of the boxes.
fn scores_of((values, shape): OutputTensor<'_>, rows: usize, per_sample: usize) -> Vec<Vec<f32>> {
    let width = values.len() / rows.max(1);
    match *shape {
        // One row for each class.
        [_, classes, boxes] if boxes == per_sample && classes != per_sample => values
            .chunks_exact(classes * boxes)
            .flat_map(|sample| {
                (0..boxes).map(|at| {
                    (0..classes)
                        .map(|class| sample[class * boxes + at])
                        .collect()
                })
            })
            .collect(),
        _ if width == 0 => Vec::new(),
        _ => values.chunks_exact(width).map(<[f32]>::to_vec).collect(),
    }
}

/// All boxes of a sample, regardless of score.
pub(super) fn boxes(
    layout: BoxLayout,
    decoding: &BoxDecoding,
    outputs: &[OutputTensor<'_>],
) -> Vec<DetectedBox> {
    let mut detected = Vec::new();
    let mut take = |item: usize, coordinates: [f32; 4], score: f32, class: usize| {
        let coordinates = match decoding.corners {
            true => coordinates,
            false => {
                let [x, y, w, h] = coordinates;
                [x - w / 2.0, y - h / 2.0, x + w / 2.0, y + h / 2.0]
            }
        };
        detected.push(DetectedBox {
            item,
            coordinates,
            score,
            class,
        });
    };
    match layout {
        BoxLayout::Columns(at) => {
            let (values, shape) = outputs[at];
            let [.., high, wide] = *shape else {
                return detected;
            };
            for (item, sample) in values.chunks_exact((high * wide).max(1)).enumerate() {
                for column in 0..wide {
                    let get = |row: usize| sample[row * wide + column];
                    let scores: Vec<f32> = (4..high).map(get).collect();
                    let class = greatest(&scores);
                    take(item, [0, 1, 2, 3].map(get), scores[class], class);
                }
            }
        }
        BoxLayout::Rows(at) | BoxLayout::Selected(at) => {
            let (values, shape) = outputs[at];
            let [.., high, wide] = *shape else {
                return detected;
            };
            for (index, row) in values.chunks_exact(wide.max(1)).enumerate() {
                let coordinates = [row[0], row[1], row[2], row[3]];
                let (score, class) = match layout {
                    BoxLayout::Selected(_) => (row[4], row[5].max(0.0) as usize),
                    _ => {
                        let class = greatest(&row[5..]);
                        (row[4] * row[5 + class], class)
                    }
                };
                take(index / high.max(1), coordinates, score, class);
            }
        }
        BoxLayout::Separate {
            boxes,
            scores,
            classes,
        } => {
            let (coordinates, shape) = outputs[boxes];
            let (rows, per_sample) = (rows_of(shape, 4), boxes_per_sample(shape));
            let scored = scores_of(outputs[scores], rows, per_sample);
            for (index, (place, row)) in coordinates.chunks_exact(4).zip(&scored).enumerate() {
                let mut row = decoding.probabilities(row);
                if let Some(background) = decoding.background.filter(|&class| class < row.len()) {
                    row[background] = 0.0;
                }
                let best = greatest(&row);
                let known_class = classes.and_then(|at| outputs[at].0.get(index));
                let class = known_class.map_or(best, |class| class.max(0.0) as usize);
                take(
                    index / per_sample.max(1),
                    [place[0], place[1], place[2], place[3]],
                    row[best],
                    class,
                );
            }
        }
    }
    detected
}

fn greatest(values: &[f32]) -> usize {
    let indices = 0..values.len();
    indices
        .rev()
        .max_by(|&a, &b| values[a].total_cmp(&values[b]))
        .unwrap_or(0)
}
