//! Input Gram matrices of layers: the mean of x·xᵀ over the inputs x that a layer's weights
//! multiply.
//!
//! An error e in the weights of an output adds e·x to the output, whose mean square is
//! eᵀ·E[x·xᵀ]·e. With E[x·xᵀ] the rounding errors can be chosen so that they compensate each other
//! (GPTQ). Inputs are rounded to integer multiples of a step, at a bounded number of positions per
//! sample. Sums are therefore exact, and merging is independent of the order. The matrix is
//! block-diagonal, so memory grows linearly with the inputs, not with their square.

mod stored;

use std::ops::Range;

use octet_kernels::{LARGEST, add_products, nearest_whole};
use serde::{Deserialize, Serialize};

use super::im2col_view::{Im2colOffsets, Im2colView};

/// Maximum size of a diagonal block.
const TOGETHER: usize = 512;

/// Gram matrix of the inputs that a layer's weights multiply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputGram {
    view: Im2colView,
    /// The real number that one step represents.
    step: f64,
    /// Inputs per output in each group; 0 before the first sample.
    inputs: usize,
    positions: u64,
    /// Sums of the inputs in steps, group by group.
    sums: Vec<i64>,
    /// Sums of products in squared steps: the lower triangle of each block, row by row.
    products: Vec<i64>,
    /// True after a value of the wrong shape.
    uneven: bool,
}

impl InputGram {
    /// An empty matrix for values of at most this magnitude.
    pub fn new(view: Im2colView, magnitude: f32) -> InputGram {
        let step = f64::from(magnitude) / f64::from(LARGEST);
        InputGram {
            view,
            step: if step.is_finite() { step } else { 0.0 },
            inputs: 0,
            positions: 0,
            sums: Vec::new(),
            products: Vec::new(),
            uneven: false,
        }
    }

    /// The layout in which the layer reads the value.
    pub fn view(&self) -> &Im2colView {
        &self.view
    }

    /// Number of groups and inputs per output, or `None` if nothing is known.
    pub fn extents(&self) -> Option<(usize, usize)> {
        let known = !self.uneven && self.positions > 0;
        known.then_some((self.view.groups(), self.inputs))
    }

    /// Number of positions that were added.
    pub fn positions(&self) -> u64 {
        self.positions
    }

    /// The mean of each input of a group.
    pub fn means(&self, group: usize) -> Vec<f64> {
        let sums = &self.sums[group * self.inputs..][..self.inputs];
        let mean = |&sum: &i64| sum as f64 / self.positions as f64 * self.step;
        sums.iter().map(mean).collect()
    }

    /// Input indices of each diagonal block.
    pub fn blocks(&self) -> Vec<Range<usize>> {
        blocks(self.inputs)
    }

    /// Mean products of the inputs of a block: the lower triangle, row by row.
    pub fn products(&self, group: usize, block: usize) -> Vec<f64> {
        let triangles = |blocks: &[Range<usize>]| -> usize {
            blocks.iter().map(|block| triangle(block.len())).sum()
        };
        let blocks = self.blocks();
        let first = group * triangles(&blocks) + triangles(&blocks[..block]);
        let products = &self.products[first..][..triangle(blocks[block].len())];
        let unit = self.step * self.step / self.positions as f64;
        products.iter().map(|&sum| sum as f64 * unit).collect()
    }

    /// Bytes held for this number of groups and inputs.
    pub fn expected_bytes(groups: usize, inputs: usize) -> u64 {
        let products: usize = blocks(inputs)
            .iter()
            .map(|block| triangle(block.len()))
            .sum();
        (groups * (inputs + products) * size_of::<i64>()) as u64
    }

    /// Adds the values of one run.
    pub fn observe(&mut self, values: &[f32], shape: &[usize]) {
        let Some(offsets) = Im2colOffsets::new(&self.view, shape) else {
            self.uneven = true;
            return;
        };
        if offsets.positions.is_empty() || offsets.inputs == 0 || self.uneven {
            return;
        }
        let (groups, blocks) = (self.view.groups(), blocks(offsets.inputs));
        if self.inputs == 0 {
            self.inputs = offsets.inputs;
            self.sums = vec![0; groups * offsets.inputs];
            let triangles: usize = blocks.iter().map(|block| triangle(block.len())).sum();
            self.products = vec![0; groups * triangles];
        }
        if self.inputs != offsets.inputs {
            self.uneven = true;
            return;
        }
        // Rounds up to whole vectors; the zeros behind the positions add nothing.
        let length = offsets.positions.len().next_multiple_of(16);
        let inverse = if self.step > 0.0 {
            (1.0 / self.step) as f32
        } else {
            0.0
        };
        let largest = f32::from(LARGEST);
        let mut rows = Vec::new();
        let mut products = self.products.as_mut_slice();
        for group in 0..groups {
            for block in &blocks {
                rows.clear();
                rows.resize(block.len() * length, 0);
                for (row, input) in rows.chunks_exact_mut(length).zip(block.clone()) {
                    offsets.read(values, group, input, |place, value| {
                        // NaN becomes 0.
                        let steps = (value * inverse).clamp(-largest, largest);
                        row[place] = nearest_whole(steps) as i16;
                    });
                    let sum: i64 = row.iter().map(|&steps| i64::from(steps)).sum();
                    self.sums[group * offsets.inputs + input] += sum;
                }
                let (here, rest) = products.split_at_mut(triangle(block.len()));
                add_products(&rows, length, here);
                products = rest;
            }
        }
        self.positions += offsets.positions.len() as u64;
    }
}

/// Divides the inputs into blocks of about equal size.
fn blocks(inputs: usize) -> Vec<Range<usize>> {
    let count = inputs.div_ceil(TOGETHER).max(1);
    let end = |block: usize| inputs * block / count;
    (0..count).map(|block| end(block)..end(block + 1)).collect()
}

fn triangle(size: usize) -> usize {
    size * (size + 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use octet_graph::{Around, SlidingWindow};

    /// The mean product of two inputs by definition.
    fn product(rows: &[Vec<f64>], a: usize, b: usize) -> f64 {
        rows.iter().map(|row| row[a] * row[b]).sum::<f64>() / rows.len() as f64
    }

    /// Checks that `stats` has the means and products of these input rows, up to one step.
    fn check(stats: &InputGram, group: usize, rows: &[Vec<f64>], magnitude: f64) {
        let step = magnitude / 2047.0;
        let means = stats.means(group);
        for (index, block) in stats.blocks().into_iter().enumerate() {
            let mut products = stats.products(group, index).into_iter();
            for a in block.clone() {
                let mean = rows.iter().map(|row| row[a]).sum::<f64>() / rows.len() as f64;
                assert!((means[a] - mean).abs() <= step, "mean {a}");
                for b in block.start..=a {
                    let (actual, expected) = (products.next().unwrap(), product(rows, a, b));
                    assert!(
                        (actual - expected).abs() <= 2.0 * magnitude * step,
                        "{a}, {b}: {actual}, {expected}"
                    );
                }
            }
            assert_eq!(products.next(), None);
        }
    }

    fn values(count: usize) -> Vec<f32> {
        (0..count).map(|i| (i as f32 * 1.7).sin() + 0.3).collect()
    }

    #[test]
    fn rows_give_their_means_and_products() {
        for inputs in [3, 700] {
            let values = values(6 * inputs);
            let mut stats = InputGram::new(Im2colView::Rows, 1.3);
            stats.observe(&values[..2 * inputs], &[1, 2, inputs]);
            stats.observe(&values[2 * inputs..], &[4, inputs]);
            let rows: Vec<Vec<f64>> = values
                .chunks(inputs)
                .map(|row| row.iter().map(|&v| f64::from(v)).collect())
                .collect();
            assert_eq!(stats.extents(), Some((1, inputs)));
            assert_eq!(stats.blocks().len(), inputs.div_ceil(TOGETHER));
            check(&stats, 0, &rows, 1.3);
        }
    }

    #[test]
    fn windows_read_the_inputs_of_a_convolution() {
        // Two groups of two channels, 4 x 5; kernel 3 x 2, stride 2 along rows, dilation 2 along
        // columns, with padding.
        let slide = |taps, stride, dilation, around| SlidingWindow {
            taps,
            stride,
            dilation,
            around,
        };
        for (rows_around, columns_around) in [
            (Around::Fixed(1, 0), Around::Fixed(0, 2)),
            (Around::Upper, Around::Lower),
        ] {
            let slides = vec![slide(3, 2, 1, rows_around), slide(2, 1, 2, columns_around)];
            let (images, channels, height, width) = (2, 4, 4i64, 5i64);
            let values = values(images * channels * 20);
            let view = Im2colView::Windows {
                groups: 2,
                slides: slides.clone(),
            };
            let mut stats = InputGram::new(view, 1.3);
            stats.observe(&values, &[images, channels, 4, 5]);
            assert_eq!(stats.extents(), Some((2, 12)));
            let (top, down) = slides[0].places(height);
            let (left, across) = slides[1].places(width);
            for group in 0..2 {
                let mut rows = Vec::new();
                for image in 0..images {
                    for y in 0..down {
                        for x in 0..across {
                            let mut row = Vec::new();
                            for channel in 2 * group..2 * group + 2 {
                                for (u, v) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)] {
                                    let (i, j) = (y * 2 + u - top, x + 2 * v - left);
                                    let inside =
                                        (0..height).contains(&i) && (0..width).contains(&j);
                                    let at =
                                        (image * channels + channel) as i64 * 20 + i * width + j;
                                    row.push(if inside {
                                        f64::from(values[at as usize])
                                    } else {
                                        0.0
                                    });
                                }
                            }
                            rows.push(row);
                        }
                    }
                }
                check(&stats, group, &rows, 1.3);
            }
        }
    }

    #[test]
    fn values_of_the_wrong_shape_give_no_matrix() {
        let mut stats = InputGram::new(Im2colView::Rows, 1.0);
        assert_eq!(stats.extents(), None);
        stats.observe(&values(6), &[2, 3]);
        assert!(stats.extents().is_some());
        stats.observe(&values(6), &[3, 2]);
        assert_eq!(stats.extents(), None);
        let mut stats = InputGram::new(
            Im2colView::Windows {
                groups: 3,
                slides: vec![],
            },
            1.0,
        );
        stats.observe(&values(4), &[1, 4]);
        assert_eq!(stats.extents(), None);
        // NaN counts as zero, and so does every value if the magnitude is unknown.
        let mut stats = InputGram::new(Im2colView::Rows, f32::INFINITY);
        stats.observe(&[f32::NAN, f32::INFINITY], &[1, 2]);
        assert_eq!(stats.means(0), [0.0, 0.0]);
    }
}
