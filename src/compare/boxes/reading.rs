//! Reads boxes, scores and classes from the outputs of a detector.

use super::Made;

/// Layout of boxes and scores in the outputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
    /// One output, a box in each column: four coordinates, then a score for each class.
    Columns(usize),
    /// One output, a box in each row: four coordinates, objectness, then a score for each class.
    Rows(usize),
    /// One output, a row for each selected box: two corners, score, class.
    Chosen(usize),
    /// Separate outputs for coordinates and scores, and for classes if there is one score for each
    /// box.
    Apart {
        boxes: usize,
        scores: usize,
        classes: Option<usize>,
    },
}

/// A box of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Box {
    pub(super) item: usize,
    pub(super) places: [f32; 4],
    pub(super) score: f32,
    pub(super) class: usize,
}

pub(super) fn rows_of(shape: &[usize], width: usize) -> usize {
    shape.iter().product::<usize>() / width
}

/// Number of boxes in a sample, from a shape that ends in four coordinates.
pub(super) fn last_but(shape: &[usize]) -> usize {
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
pub(super) struct Scale {
    /// True if scores are logits.
    logits: bool,
    /// The background class, if the scores of a box add up to one.
    nothing: Option<usize>,
    /// True if coordinates are two corners; false if they are center and size.
    corners: bool,
}

impl Scale {
    pub(super) fn of(form: Form, made: &[Made<'_>]) -> Scale {
        let mut scale = Scale {
            logits: false,
            nothing: None,
            corners: matches!(form, Form::Chosen(_)),
        };
        let Form::Apart { boxes, scores, .. } = form else {
            return scale;
        };
        scale.logits = made[scores]
            .0
            .iter()
            .any(|score| !(0.0..=1.0).contains(score));
        let places = made[boxes].0.chunks_exact(4);
        scale.corners = places.clone().all(|p| p[2] >= p[0] && p[3] >= p[1]);
        let rows = rows_of(made[boxes].1, 4);
        let scored = scores_of(made[scores], rows, last_but(made[boxes].1));
        let scored: Vec<Vec<f32>> = scored.iter().map(|row| scale.probabilities(row)).collect();
        let sums = |row: &Vec<f32>| row.len() > 1 && (row.iter().sum::<f32>() - 1.0).abs() < 0.02;
        if !scored.is_empty() && scored.iter().all(sums) {
            let mut counts = vec![0usize; scored[0].len()];
            for row in &scored {
                counts[greatest(row)] += 1;
            }
            scale.nothing = (0..counts.len()).max_by_key(|&class| counts[class]);
        }
        scale
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
fn scores_of((values, shape): Made<'_>, rows: usize, a_sample: usize) -> Vec<Vec<f32>> {
    let width = values.len() / rows.max(1);
    match *shape {
        // One row for each class.
        [_, classes, boxes] if boxes == a_sample && classes != a_sample => values
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
pub(super) fn boxes(form: Form, scale: &Scale, made: &[Made<'_>]) -> Vec<Box> {
    let mut found = Vec::new();
    let mut take = |item: usize, places: [f32; 4], score: f32, class: usize| {
        let places = match scale.corners {
            true => places,
            false => {
                let [x, y, w, h] = places;
                [x - w / 2.0, y - h / 2.0, x + w / 2.0, y + h / 2.0]
            }
        };
        found.push(Box {
            item,
            places,
            score,
            class,
        });
    };
    match form {
        Form::Columns(at) => {
            let (values, shape) = made[at];
            let [.., high, wide] = *shape else {
                return found;
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
        Form::Rows(at) | Form::Chosen(at) => {
            let (values, shape) = made[at];
            let [.., high, wide] = *shape else {
                return found;
            };
            for (index, row) in values.chunks_exact(wide.max(1)).enumerate() {
                let places = [row[0], row[1], row[2], row[3]];
                let (score, class) = match form {
                    Form::Chosen(_) => (row[4], row[5].max(0.0) as usize),
                    _ => {
                        let class = greatest(&row[5..]);
                        (row[4] * row[5 + class], class)
                    }
                };
                take(index / high.max(1), places, score, class);
            }
        }
        Form::Apart {
            boxes,
            scores,
            classes,
        } => {
            let (places, shape) = made[boxes];
            let (rows, a_sample) = (rows_of(shape, 4), last_but(shape));
            let scored = scores_of(made[scores], rows, a_sample);
            for (index, (place, row)) in places.chunks_exact(4).zip(&scored).enumerate() {
                let mut row = scale.probabilities(row);
                if let Some(nothing) = scale.nothing.filter(|&class| class < row.len()) {
                    row[nothing] = 0.0;
                }
                let best = greatest(&row);
                let told = classes.and_then(|at| made[at].0.get(index));
                let class = told.map_or(best, |class| class.max(0.0) as usize);
                take(
                    index / a_sample.max(1),
                    [place[0], place[1], place[2], place[3]],
                    row[best],
                    class,
                );
            }
        }
    }
    found
}

fn greatest(values: &[f32]) -> usize {
    let places = 0..values.len();
    places
        .rev()
        .max_by(|&a, &b| values[a].total_cmp(&values[b]))
        .unwrap_or(0)
}
