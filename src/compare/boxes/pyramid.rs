//! Heads of NanoDet and PicoDet that the model does not decode: for each level of its pyramid an
//! output of scores, and one with the distances from the center of a cell to the four sides. A
//! distance is a distribution over whole numbers of strides.

use serde::{Deserialize, Serialize};

use super::OutputTensor;
use super::decode::{STRIDES, greatest};
use crate::compare::output_kinds::OutputTraits;

/// Usual numbers of values in a distribution; one more than the `reg_max` of training.
const BINS: [usize; 3] = [8, 16, 17];
/// Minimum number of levels.
const FEWEST: usize = 3;

/// An output: its place, rows and width.
type Head = (usize, usize, usize);

/// Outputs of scores and of distances, the finest level first. The first `count` are in use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PyramidHeads {
    scores: [usize; STRIDES.len()],
    distances: [usize; STRIDES.len()],
    count: usize,
}

/// A box of a level: its place in the batch, two corners, and the scores of its cell.
pub(super) struct LevelBox<'a> {
    pub(super) item: usize,
    pub(super) corners: [f32; 4],
    pub(super) scores: &'a [f32],
}

impl PyramidHeads {
    /// Recognizes the heads by their shapes: as many outputs of scores as of distances, with the same
    /// rows.
    pub(super) fn from_outputs(
        traits: &[OutputTraits],
        shapes: &[&[usize]],
    ) -> Option<PyramidHeads> {
        let mut heads: Vec<Head> = (traits.iter().zip(shapes).enumerate())
            .filter(|(_, (traits, _))| traits.unjudged().is_none())
            .filter_map(|(at, (_, shape))| match **shape {
                [_, rows, width] if width > 0 => Some((at, rows, width)),
                _ => None,
            })
            .collect();
        heads.sort_by_key(|&(_, rows, _)| std::cmp::Reverse(rows));
        let paired = |bins: usize| {
            let (distances, scores): (Vec<Head>, Vec<Head>) =
                heads.iter().partition(|(_, _, width)| *width == 4 * bins);
            let count = distances.len();
            let same_rows = distances.iter().zip(&scores).all(|(a, b)| a.1 == b.1);
            let one_width = scores.windows(2).all(|pair| pair[0].2 == pair[1].2);
            // Each level has about a quarter of the cells of the one before.
            let finer = distances.windows(2).all(|pair| pair[0].1 > 2 * pair[1].1);
            let fits = (FEWEST..=STRIDES.len()).contains(&count) && scores.len() == count;
            (fits && same_rows && one_width && finer).then(|| {
                let places = |of: &[Head]| {
                    let mut places = [0; STRIDES.len()];
                    (places.iter_mut().zip(of)).for_each(|(place, (at, ..))| *place = *at);
                    places
                };
                PyramidHeads {
                    scores: places(&scores),
                    distances: places(&distances),
                    count,
                }
            })
        };
        BINS.into_iter().find_map(paired)
    }

    /// True if an output has distances.
    pub(super) fn has_distances(&self, output: usize) -> bool {
        self.distances[..self.count].contains(&output)
    }

    /// True if an output has scores.
    pub(super) fn has_scores(&self, output: usize) -> bool {
        self.scores[..self.count].contains(&output)
    }

    /// True if scores are logits.
    pub(super) fn are_logits(&self, outputs: &[OutputTensor<'_>]) -> bool {
        let mut scores = self.scores[..self.count].iter();
        scores.any(|&at| {
            let mut values = outputs[at].0.iter();
            values.any(|score| !(0.0..=1.0).contains(score))
        })
    }

    /// All boxes of a picture of this height and width. PyramidHeads whose cells do not fill it have none.
    pub(super) fn boxes<'a>(
        &self,
        outputs: &[OutputTensor<'a>],
        (height, width): (usize, usize),
    ) -> Vec<LevelBox<'a>> {
        let mut found = Vec::new();
        for (level, stride) in STRIDES.into_iter().enumerate().take(self.count) {
            let (distances, shape) = outputs[self.distances[level]];
            let (scores, scored) = outputs[self.scores[level]];
            let (&[_, rows, wide], &[.., classes]) = (shape, scored) else {
                continue;
            };
            let (lines, columns) = (height.div_ceil(stride), width.div_ceil(stride));
            if rows == 0 || rows != lines * columns || classes == 0 || wide < 4 {
                continue;
            }
            let cells = distances
                .chunks_exact(wide)
                .zip(scores.chunks_exact(classes));
            for (index, (distances, scores)) in cells.enumerate() {
                let cell = index % rows;
                let center = |place: usize| (place as f32 + 0.5) * stride as f32;
                let (x, y) = (center(cell % columns), center(cell / columns));
                let side = |at: usize| {
                    let bins = wide / 4;
                    mean(&distances[at * bins..(at + 1) * bins]) * stride as f32
                };
                found.push(LevelBox {
                    item: index / rows,
                    corners: [x - side(0), y - side(1), x + side(2), y + side(3)],
                    scores,
                });
            }
        }
        found
    }
}

/// Mean of the whole numbers from zero on, with the softmax of these values as their shares.
fn mean(logits: &[f32]) -> f32 {
    let most = logits.get(greatest(logits)).copied().unwrap_or_default();
    let shares = logits.iter().map(|value| (value - most).exp());
    let (sum, weighted) = shares
        .enumerate()
        .fold((0.0, 0.0), |(sum, weighted), (at, share)| {
            (sum + share, weighted + share * at as f32)
        });
    weighted / sum
}
