//! Products with weights: convolutions, products of rows, and products of two activations.

use octet_kernels::{FloatRows, multiply, multiply_transposed};

use super::windows::{PlaneWindows, WindowRun};

/// Positions that are multiplied together.
const TOGETHER: usize = 512;

/// A convolution of images of `groups · channels` planes. The weights have a row for each output.
#[derive(Clone, Debug)]
pub struct PlaneConvolution {
    /// Number of images.
    pub images: usize,
    /// Number of groups.
    pub groups: usize,
    /// Channels that an output reads.
    pub channels: usize,
    /// Outputs of a group.
    pub outputs: usize,
    /// Windows of a plane.
    pub windows: PlaneWindows,
}

fn matrix(values: &[f32], rows: usize, columns: usize) -> FloatRows<'_> {
    FloatRows {
        values,
        stride: columns,
        rows,
        columns,
    }
}

/// Writes the transpose of a matrix.
fn transposed(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut out = vec![0.0; values.len()];
    for (row, values) in values.chunks(columns.max(1)).enumerate() {
        for (column, &value) in values.iter().enumerate() {
            out[column * rows + row] = value;
        }
    }
    out
}

fn add(to: &mut [f32], values: &[f32]) {
    to.iter_mut()
        .zip(values)
        .for_each(|(to, value)| *to += value);
}

/// The product of two matrices, or of one and the transpose of the other. The sizes fit by
/// construction of the program.
fn product(a: FloatRows, b: FloatRows, b_transposed: bool, out: &mut [f32]) {
    let _fits = match b_transposed {
        true => multiply_transposed(a, b, out),
        false => multiply(a, b, out),
    };
}

/// A part of the planes of one group of one image, with the places of its values.
struct GroupPart {
    group: usize,
    /// Rows of positions, and positions.
    rows: std::ops::Range<usize>,
    first: usize,
    count: usize,
    /// The first value of the group's inputs and outputs.
    input: usize,
    output: usize,
}

impl PlaneConvolution {
    pub(super) fn input_len(&self) -> usize {
        self.images * self.groups * self.channels * self.windows.plane()
    }

    pub(super) fn output_len(&self) -> usize {
        self.images * self.groups * self.outputs * self.windows.places()
    }

    /// Inputs of an output.
    fn inputs(&self) -> usize {
        self.channels * self.windows.taps()
    }

    pub(super) fn weights_len(&self) -> usize {
        self.groups * self.outputs * self.inputs()
    }

    fn parts(&self) -> Vec<GroupPart> {
        let (width, places) = (self.windows.width(), self.windows.places());
        let all = places / width.max(1);
        let together = (TOGETHER / width.max(1)).max(1);
        let mut parts = Vec::new();
        for place in 0..self.images * self.groups {
            for first in (0..all).step_by(together) {
                let rows = first..(first + together).min(all);
                parts.push(GroupPart {
                    group: place % self.groups,
                    first: rows.start * width,
                    count: rows.len() * width,
                    rows,
                    input: place * self.channels * self.windows.plane(),
                    output: place * self.outputs * places,
                });
            }
        }
        parts
    }

    /// Writes the inputs of a part: a row for each input, a column for each position.
    fn gather(&self, x: &[f32], part: &GroupPart, columns: &mut Vec<f32>) {
        let (taps, step) = (self.windows.taps(), self.windows.step());
        columns.clear();
        columns.resize(self.inputs() * part.count, 0.0);
        for (input, row) in columns.chunks_mut(part.count.max(1)).enumerate() {
            let plane = &x[part.input + input / taps * self.windows.plane()..];
            let mut copy = |run: WindowRun| run.to_row((plane, step), row, |to, value| *to = value);
            self.windows
                .runs(input % taps, part.rows.clone(), &mut copy);
        }
    }

    /// Adds the gradient of gathered inputs to that of the inputs.
    fn scatter(&self, columns: &[f32], part: &GroupPart, x: &mut [f32]) {
        let (taps, step) = (self.windows.taps(), self.windows.step());
        for (input, row) in columns.chunks(part.count.max(1)).enumerate() {
            let plane = &mut x[part.input + input / taps * self.windows.plane()..];
            let mut add = |run: WindowRun| run.add_to_plane(row, 1.0, (plane, step));
            self.windows.runs(input % taps, part.rows.clone(), &mut add);
        }
    }

    /// The inputs of a part as a matrix; without a copy where the positions are the values.
    fn columns<'a>(
        &self,
        x: &'a [f32],
        part: &GroupPart,
        buffer: &'a mut Vec<f32>,
    ) -> FloatRows<'a> {
        if self.windows.is_identity() {
            return FloatRows {
                values: &x[part.input + part.first..],
                stride: self.windows.plane(),
                rows: self.channels,
                columns: part.count,
            };
        }
        self.gather(x, part, buffer);
        matrix(buffer, self.inputs(), part.count)
    }

    pub(super) fn forward(&self, x: &[f32], weights: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
        let places = self.windows.places();
        let (mut buffer, mut products) = (Vec::new(), Vec::new());
        for part in self.parts() {
            let own = &weights[part.group * self.outputs * self.inputs()..];
            if self.channels == 1 && self.outputs == 1 {
                let out = &mut y[part.output + part.first..][..part.count];
                out.fill(0.0);
                let plane = &x[part.input..][..self.windows.plane()];
                for (tap, &weight) in own[..self.inputs()].iter().enumerate() {
                    let mut add = |run: WindowRun| {
                        let plane = (plane, self.windows.step());
                        run.to_row(plane, out, |to, value| *to += weight * value);
                    };
                    self.windows.runs(tap, part.rows.clone(), &mut add);
                }
            } else {
                let columns = self.columns(x, &part, &mut buffer);
                products.clear();
                products.resize(self.outputs * part.count, 0.0);
                let own = matrix(own, self.outputs, self.inputs());
                product(own, columns, false, &mut products);
                for (output, row) in products.chunks(part.count.max(1)).enumerate() {
                    let to = part.output + output * places + part.first;
                    y[to..][..part.count].copy_from_slice(row);
                }
            }
        }
        if let Some(bias) = bias {
            let planes = y.chunks_mut(places.max(1)).zip(bias.iter().cycle());
            for (plane, bias) in planes {
                plane.iter_mut().for_each(|value| *value += bias);
            }
        }
    }

    /// Adds the gradients of inputs, weights and bias.
    pub(super) fn backward(
        &self,
        (x, weights): (&[f32], &[f32]),
        slope: &[f32],
        [mut by_x, mut by_weights, by_bias]: [Option<&mut [f32]>; 3],
    ) {
        let (places, inputs) = (self.windows.places(), self.inputs());
        let (mut buffer, mut products) = (Vec::new(), Vec::new());
        let direct = self.channels == 1 && self.outputs == 1;
        for part in self.parts() {
            let own = part.group * self.outputs * inputs..(part.group + 1) * self.outputs * inputs;
            let slopes = FloatRows {
                values: &slope[part.output + part.first..],
                stride: places,
                rows: self.outputs,
                columns: part.count,
            };
            if direct {
                let row = slopes.row(0);
                for tap in 0..inputs {
                    let (weight, mut sum) = (weights[own.start + tap], 0.0);
                    let mut visit = |run: WindowRun| {
                        let step = self.windows.step();
                        if by_weights.is_some() {
                            sum += run.dot(row, (&x[part.input..], step));
                        }
                        if let Some(by_x) = &mut by_x {
                            run.add_to_plane(row, weight, (&mut by_x[part.input..], step));
                        }
                    };
                    self.windows.runs(tap, part.rows.clone(), &mut visit);
                    if let Some(by_weights) = &mut by_weights {
                        by_weights[own.start + tap] += sum;
                    }
                }
                continue;
            }
            if let Some(by_weights) = &mut by_weights {
                let columns = self.columns(x, &part, &mut buffer);
                products.clear();
                products.resize(own.len(), 0.0);
                product(slopes, columns, true, &mut products);
                add(&mut by_weights[own.clone()], &products);
            }
            if let Some(by_x) = &mut by_x {
                let turned = transposed(&weights[own], self.outputs, inputs);
                products.clear();
                products.resize(inputs * part.count, 0.0);
                let turned = matrix(&turned, inputs, self.outputs);
                product(turned, slopes, false, &mut products);
                self.scatter(&products, &part, by_x);
            }
        }
        if let Some(by_bias) = by_bias {
            let outputs = self.groups * self.outputs;
            for (plane, slope) in slope.chunks(places.max(1)).enumerate() {
                by_bias[plane % outputs] += octet_kernels::sum(slope) as f32;
            }
        }
    }
}

/// Products of rows with weights: `count` rows of `inputs` values, a row of weights for each output.
#[derive(Clone, Copy, Debug)]
pub struct RowProducts {
    /// Number of rows.
    pub count: usize,
    /// Values of a row.
    pub inputs: usize,
    /// Number of outputs.
    pub outputs: usize,
}

impl RowProducts {
    pub(super) fn forward(&self, x: &[f32], weights: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
        let rows = matrix(x, self.count, self.inputs);
        product(rows, matrix(weights, self.outputs, self.inputs), true, y);
        if let Some(bias) = bias {
            y.chunks_mut(self.outputs.max(1))
                .for_each(|row| add(row, bias));
        }
    }

    pub(super) fn backward(
        &self,
        (x, weights): (&[f32], &[f32]),
        slope: &[f32],
        [by_x, by_weights, by_bias]: [Option<&mut [f32]>; 3],
    ) {
        let RowProducts {
            count,
            inputs,
            outputs,
        } = *self;
        if let Some(by_x) = by_x {
            let mut products = vec![0.0; count * inputs];
            let (slopes, weights) = (
                matrix(slope, count, outputs),
                matrix(weights, outputs, inputs),
            );
            product(slopes, weights, false, &mut products);
            add(by_x, &products);
        }
        if let Some(by_weights) = by_weights {
            let mut products = vec![0.0; outputs * inputs];
            let turned = transposed(slope, count, outputs);
            let (slopes, rows) = (matrix(&turned, outputs, count), matrix(x, count, inputs));
            product(slopes, rows, false, &mut products);
            add(by_weights, &products);
        }
        if let Some(by_bias) = by_bias {
            slope
                .chunks(outputs.max(1))
                .for_each(|row| add(by_bias, row));
        }
    }
}

/// Products of pairs of matrices: `rows · inner` times `inner · columns`.
#[derive(Clone, Debug)]
pub struct MatrixProducts {
    /// The matrix of each operand in each product.
    pub pairs: Vec<[usize; 2]>,
    /// Rows of the first matrix.
    pub rows: usize,
    /// Columns of the first matrix.
    pub inner: usize,
    /// Columns of the second matrix.
    pub columns: usize,
}

impl MatrixProducts {
    /// Values of a matrix of each operand, and of a product.
    pub(super) fn lens(&self) -> [usize; 3] {
        let MatrixProducts {
            rows,
            inner,
            columns,
            ..
        } = *self;
        [rows * inner, inner * columns, rows * columns]
    }

    pub(super) fn forward(&self, a: &[f32], b: &[f32], y: &mut [f32]) {
        let lens = self.lens();
        for (&[first, second], y) in self.pairs.iter().zip(y.chunks_mut(lens[2].max(1))) {
            let a = matrix(&a[first * lens[0]..][..lens[0]], self.rows, self.inner);
            let b = matrix(&b[second * lens[1]..][..lens[1]], self.inner, self.columns);
            product(a, b, false, y);
        }
    }

    pub(super) fn backward(
        &self,
        (a, b): (&[f32], &[f32]),
        slope: &[f32],
        [mut by_a, mut by_b]: [Option<&mut [f32]>; 2],
    ) {
        let lens = self.lens();
        for (&[first, second], slope) in self.pairs.iter().zip(slope.chunks(lens[2].max(1))) {
            let slopes = matrix(slope, self.rows, self.columns);
            let (first, second) = (first * lens[0], second * lens[1]);
            if let Some(by_a) = &mut by_a {
                let mut products = vec![0.0; lens[0]];
                let b = matrix(&b[second..][..lens[1]], self.inner, self.columns);
                product(slopes, b, true, &mut products);
                add(&mut by_a[first..][..lens[0]], &products);
            }
            if let Some(by_b) = &mut by_b {
                let mut products = vec![0.0; lens[1]];
                let turned = transposed(&a[first..][..lens[0]], self.rows, self.inner);
                let turned = matrix(&turned, self.inner, self.rows);
                product(turned, slopes, false, &mut products);
                add(&mut by_b[second..][..lens[1]], &products);
            }
        }
    }
}
