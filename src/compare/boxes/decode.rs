//! Reads boxes, scores and classes from the outputs of a detector.

use serde::{Deserialize, Serialize};

use super::OutputTensor;
use super::pyramid::PyramidHeads;

/// Layout of boxes and scores in the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum BoxLayout {
    /// One output, a box in each column: four coordinates, then a score for each class.
    Columns(usize),
    /// One output, a box in each row: four coordinates, objectness, then a score for each class.
    Rows(usize),
    /// One output, a row for each selected box: two corners, score, class; or class, score, two
    /// corners.
    Selected(usize),
    /// One output, a row for each selected box: place in the batch, two corners, class, score.
    Batched(usize),
    /// Separate outputs for coordinates and scores, and for classes if there is one score for each
    /// box.
    Separate {
        boxes: usize,
        scores: usize,
        classes: Option<usize>,
    },
    /// Outputs of scores and of distances for each level of a pyramid.
    Pyramid(PyramidHeads),
}

/// A box of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct DetectedBox {
    /// Place in the batch.
    pub item: usize,
    /// Two corners, in the order and the unit of the model.
    pub coordinates: [f32; 4],
    /// Score of the class.
    pub score: f32,
    /// Class with the highest score.
    pub class: usize,
    /// Factors of the prototypes of masks; none where the model has no masks.
    pub coefficients: Vec<f32>,
}

/// Circumstances of the boxes of a detector.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Surroundings {
    /// Number of prototypes of masks; each box has as many coefficients behind its classes.
    pub prototypes: usize,
    /// Height and width of the picture that the model gets, if it gets one.
    pub picture: Option<(usize, usize)>,
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
    /// True if a row begins with class and score.
    class_first: bool,
    /// Number of prototypes.
    prototypes: usize,
    /// For coordinates relative to a cell of a grid: column, row and stride of each box.
    cells: Option<Vec<[f32; 3]>>,
    /// Height and width of the picture.
    picture: Option<(usize, usize)>,
}

impl BoxDecoding {
    pub(super) fn new(
        layout: BoxLayout,
        outputs: &[OutputTensor<'_>],
        around: Surroundings,
    ) -> BoxDecoding {
        let mut decoding = BoxDecoding {
            logits: false,
            background: None,
            corners: matches!(
                layout,
                BoxLayout::Selected(_) | BoxLayout::Batched(_) | BoxLayout::Pyramid(_)
            ),
            class_first: false,
            prototypes: around.prototypes,
            cells: None,
            picture: around.picture,
        };
        match layout {
            BoxLayout::Selected(at) => decoding.class_first = begins_with_class(outputs[at].0),
            BoxLayout::Rows(at) => decoding.cells = cells(outputs[at], around.picture),
            BoxLayout::Pyramid(levels) => decoding.logits = levels.are_logits(outputs),
            _ => {}
        }
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
    let mut take = |item: usize, coordinates: [f32; 4], score: f32, class: usize, rest: &[f32]| {
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
            coefficients: rest.to_vec(),
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
                    let end = high - decoding.prototypes;
                    let scores: Vec<f32> = (4..end).map(get).collect();
                    let rest: Vec<f32> = (end..high).map(get).collect();
                    let class = greatest(&scores);
                    take(item, [0, 1, 2, 3].map(get), scores[class], class, &rest);
                }
            }
        }
        BoxLayout::Rows(at) => {
            let (values, shape) = outputs[at];
            let [.., high, wide] = *shape else {
                return detected;
            };
            for (index, row) in values.chunks_exact(wide.max(1)).enumerate() {
                let (known, rest) = row.split_at(wide - decoding.prototypes);
                let mut place = [known[0], known[1], known[2], known[3]];
                if let Some(&[column, line, stride]) = decoding
                    .cells
                    .as_ref()
                    .and_then(|cells| cells.get(index % high.max(1)))
                {
                    let [x, y, width, height] = place;
                    let (x, y) = (x + column, y + line);
                    place = [x, y, width.exp(), height.exp()].map(|side| side * stride);
                }
                let class = greatest(&known[5..]);
                let score = known[4] * known[5 + class];
                take(index / high.max(1), place, score, class, rest);
            }
        }
        BoxLayout::Selected(at) => {
            let (values, shape) = outputs[at];
            let [.., high, _] = *shape else {
                return detected;
            };
            for (index, row) in values.as_chunks().0.iter().enumerate() {
                let (place, score, class) = match (*row, decoding.class_first) {
                    ([a, b, c, d, score, class], false) => ([a, b, c, d], score, class),
                    ([class, score, a, b, c, d], true) => ([a, b, c, d], score, class),
                };
                let item = index / high.max(1);
                take(item, place, score, class.max(0.0) as usize, &[]);
            }
        }
        BoxLayout::Batched(at) => {
            for &[item, a, b, c, d, class, score] in outputs[at].0.as_chunks().0 {
                let [item, class] = [item, class].map(|number| number.max(0.0) as usize);
                take(item, [a, b, c, d], score, class, &[]);
            }
        }
        BoxLayout::Pyramid(levels) => {
            let picture = decoding.picture.unwrap_or_default();
            for one in levels.boxes(outputs, picture) {
                let class = greatest(one.scores);
                // Each class has a logit of its own.
                let score = match decoding.logits {
                    true => 1.0 / (1.0 + (-one.scores[class]).exp()),
                    false => one.scores[class],
                };
                take(one.item, one.corners, score, class, &[]);
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
                    &[],
                );
            }
        }
    }
    detected
}

/// True if rows of six begin with class and score, as PaddleDetection writes them, and do not end
/// with score and class.
fn begins_with_class(values: &[f32]) -> bool {
    let is_class = |value: f32| value.fract() == 0.0 && value >= -1.0;
    let is_share = |value: f32| (0.0..=1.0).contains(&value);
    let rows = values.as_chunks::<6>().0;
    let first = rows.iter().all(|row| is_class(row[0]) && is_share(row[1]));
    let last = rows.iter().all(|row| is_class(row[5]) && is_share(row[4]));
    first && !last && !rows.is_empty()
}

/// Strides of the grids of a detector, the finest first.
pub(super) const STRIDES: [usize; 4] = [8, 16, 32, 64];

/// Column, row and stride of the cell of each box, if coordinates are relative to cells as YOLOX
/// writes them: one box a cell, and logarithms of sizes, so that some are negative.
fn cells(
    (values, shape): OutputTensor<'_>,
    picture: Option<(usize, usize)>,
) -> Option<Vec<[f32; 3]>> {
    let [.., count, wide] = *shape else {
        return None;
    };
    let (height, width) = picture?;
    let is_logarithm = |row: &[f32]| row[2] < 0.0 || row[3] < 0.0;
    values
        .chunks_exact(wide.max(4))
        .find(|row| is_logarithm(row))?;
    let cells = |strides: &[usize]| -> Vec<[f32; 3]> {
        let grid = |&stride: &usize| {
            let (lines, columns) = (height / stride, width / stride);
            let all =
                (0..lines).flat_map(move |line| (0..columns).map(move |column| (line, column)));
            all.map(move |(line, column)| [column as f32, line as f32, stride as f32])
        };
        strides.iter().flat_map(grid).collect()
    };
    let known = [&STRIDES[..3], &STRIDES[..]].map(cells);
    known.into_iter().find(|cells| cells.len() == count)
}

pub(super) fn greatest(values: &[f32]) -> usize {
    let indices = 0..values.len();
    indices
        .rev()
        .max_by(|&a, &b| values[a].total_cmp(&values[b]))
        .unwrap_or(0)
}
