//! Execution of products with weights and of two values, with rows split between threads.

use std::ops::Range;

use octet_kernels::int8::{self as kernels, Error, Layout, Output, Requantize, Rows, Way, Weights};

use super::instruction::{
    DynamicProduct, PackedConvolution, ProductEpilogue, RightFactor, WeightedProduct, Work,
};
use super::slices::{InputSlice, bytes_of, floats_of, one, view};
use super::split_rows::{LARGE_COST, cost_of_product, split_rows};
use crate::pattern::MatrixBatch;
use crate::quantization::SIGN;

/// The entries of some columns; empty if there are too few, which kernels reject.
fn column_slice<T>(all: &[T], columns: Range<usize>) -> &[T] {
    all.get(columns).unwrap_or_default()
}

pub(super) fn requantized<'a>(
    values: &'a mut [u8],
    columns: Range<usize>,
    epilogue: &'a ProductEpilogue,
) -> Output<'a> {
    let to = epilogue.to.unwrap_or(kernels::Target::whole(0));
    Output::Requantized {
        values,
        stride: columns.len(),
        by: Requantize {
            multipliers: column_slice(&epilogue.factors, columns),
            zero_point: to.zero_point,
            low: to.low,
            high: to.high,
        },
    }
}

pub(super) fn floats<'a>(
    values: &'a mut [f32],
    columns: Range<usize>,
    epilogue: &'a ProductEpilogue,
) -> Output<'a> {
    Output::Floats {
        values,
        stride: columns.len(),
        scales: column_slice(&epilogue.factors, columns.clone()),
        bias: epilogue
            .bias
            .as_deref()
            .map(|bias| column_slice(bias, columns)),
    }
}

pub(super) fn sums<'a>(
    values: &'a mut [i32],
    columns: Range<usize>,
    _: &'a ProductEpilogue,
) -> Output<'a> {
    let stride = columns.len();
    Output::Accumulators { values, stride }
}

/// Constructor of a kernel's output: from the rows, their columns and the epilogue, as bytes,
/// floats or accumulators.
type OutputConstructor<T> =
    for<'a> fn(&'a mut [T], Range<usize>, &'a ProductEpilogue) -> Output<'a>;

/// A product of bytes with this zero point.
pub(super) fn product<T: Send>(
    weighted: &WeightedProduct,
    input: (&[u8], u8),
    bias: Option<&[i32]>,
    (output, epilogue): (&mut [T], &ProductEpilogue),
    sink: OutputConstructor<T>,
) -> Result<(), Error> {
    let width = weighted.width();
    if let WeightedProduct::Rows(1, weights) = weighted {
        // A single row is split by columns.
        let together = weights.columns_together();
        return split_rows(output, together, weighted.cost(), |parts, output| {
            let columns = parts.start * together..(parts.end * together).min(width);
            let bias = bias.map(|bias| column_slice(bias, columns.clone()));
            let output = sink(output, columns.clone(), epilogue);
            let (values, zero_point) = input;
            let row = Rows {
                values,
                count: 1,
                stride: weights.depth(),
                zero_point,
            };
            kernels::gemm_columns(&row, weights, columns, bias, output)
        });
    }
    weighted.split_rows(output, |image, rows, output| {
        let output = sink(output, 0..width, epilogue);
        weighted.run(input, image, rows, bias, output)
    })
}

/// A product whose zero points and scales are inputs.
pub(super) fn dynamic_product<T: Send>(
    measured: &DynamicProduct,
    inputs: &[InputSlice],
    output: &mut [T],
    sink: OutputConstructor<T>,
) -> Result<(), Error> {
    let mut behind = match measured.by {
        RightFactor::Weights(_) => 1,
        RightFactor::Bytes(..) => 2,
    };
    let mut zero_point = |known: Option<u8>| match known {
        Some(known) => Ok(known),
        None => {
            behind += 1;
            one(bytes_of(inputs, behind - 1)?)
        }
    };
    let zero = zero_point(measured.zero_point)?;
    let other = match measured.by {
        RightFactor::Weights(_) => 0,
        RightFactor::Bytes(_, known) => zero_point(known)?,
    };
    let mut scale = 1.0;
    for at in inputs.len() - measured.scales..inputs.len() {
        scale *= one(floats_of(inputs, at)?)?;
    }
    let epilogue = ProductEpilogue {
        factors: measured.factors.iter().map(|own| scale * own).collect(),
        bias: measured.bias.clone(),
        to: None,
        rounding: None,
    };
    let (input, output) = (bytes_of(inputs, 0)?, (output, &epilogue));
    match &measured.by {
        RightFactor::Weights(weighted) => product(weighted, (input, zero), None, output, sink),
        RightFactor::Bytes(batch, _) => matrix_products(
            batch,
            [input, bytes_of(inputs, 1)?],
            [zero, other],
            None,
            output,
            sink,
        ),
    }
}

/// Units in which threads split a product. A unit is a row of a matrix, a pixel, or a row of pixels
/// if adjacent pixels share work.
impl WeightedProduct {
    /// Values per matrix row or pixel.
    pub(super) fn width(&self) -> usize {
        match self {
            WeightedProduct::Rows(_, weights) => weights.columns(),
            WeightedProduct::Convolution(convolution) => convolution.to.channels,
        }
    }

    /// Values per unit.
    pub(super) fn row(&self) -> usize {
        match self {
            WeightedProduct::Rows(..) => self.width(),
            WeightedProduct::Convolution(convolution) => match &convolution.kernel {
                PackedConvolution::Dense(_) => self.width(),
                _ => convolution.to.width * self.width(),
            },
        }
    }

    /// Number of units per call that is most efficient; its multiples are too.
    pub(super) fn rows_together(&self) -> usize {
        match self {
            WeightedProduct::Rows(_, weights) => weights.rows_together(),
            WeightedProduct::Convolution(convolution) => {
                let to = &convolution.to;
                match &convolution.kernel {
                    PackedConvolution::Dense(weights) => {
                        let places = weights.places_together(&convolution.window, to.width);
                        places.clamp(1, (to.height * to.width).max(1))
                    }
                    _ => 1,
                }
            }
        }
    }

    /// Splits the units of each image between threads. `part` gets the image's index, its units and
    /// their output.
    pub(super) fn split_rows<T: Send>(
        &self,
        output: &mut [T],
        part: impl Fn(usize, Range<usize>, &mut [T]) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let values = match self {
            WeightedProduct::Rows(..) => output.len(),
            WeightedProduct::Convolution(convolution) => {
                debug_assert_eq!(output.len(), convolution.images * convolution.to.count());
                convolution.to.count()
            }
        };
        let (row, together, cost) = (self.row(), self.rows_together(), self.cost());
        let count = values / row.max(1);
        for (image, output) in output.chunks_exact_mut(values.max(1)).enumerate() {
            split_rows(output, row * together, cost, |parts, output| {
                let end = (parts.end * together).min(count);
                part(image, parts.start * together..end, output)
            })?;
        }
        Ok(())
    }

    /// Cost of an image's rows, in the units of [`split_rows`].
    fn cost(&self) -> usize {
        match self {
            WeightedProduct::Rows(count, weights) => {
                cost_of_product(count * weights.depth() * weights.columns())
            }
            WeightedProduct::Convolution(convolution) => {
                let to = &convolution.to;
                let window = &convolution.window.kernel;
                // Input channels per output channel. Sixteen products of a depthwise convolution
                // take only a few instructions.
                let depth = match &convolution.kernel {
                    PackedConvolution::Dense(weights) => {
                        weights.shape().inputs / weights.shape().groups.max(1)
                    }
                    PackedConvolution::Transposed(_) => convolution.from.channels,
                    PackedConvolution::Depthwise(_) => 4,
                };
                let cost = cost_of_product(to.count() * window[0] * window[1] * depth);
                match &convolution.kernel {
                    // Each piece gathers the halo rows around its own again.
                    PackedConvolution::Depthwise(_) => cost.min(LARGE_COST),
                    // Winograd weights are large, and each piece reads all of them.
                    PackedConvolution::Dense(weights) if weights.way() == Way::Winograd => {
                        cost.min(LARGE_COST)
                    }
                    _ => cost,
                }
            }
        }
    }

    /// Computes some units.
    pub(super) fn run(
        &self,
        (input, zero_point): (&[u8], u8),
        image: usize,
        rows: Range<usize>,
        bias: Option<&[i32]>,
        output: Output,
    ) -> Result<(), Error> {
        let convolution = match self {
            WeightedProduct::Rows(_, weights) => {
                let depth = weights.depth();
                let rows = Rows {
                    values: input
                        .get(rows.start * depth..rows.end * depth)
                        .unwrap_or_default(),
                    count: rows.len(),
                    stride: depth,
                    zero_point,
                };
                return kernels::gemm(&rows, weights, bias, output);
            }
            WeightedProduct::Convolution(convolution) => convolution,
        };
        let (window, from, to) = (&convolution.window, &convolution.from, &convolution.to);
        let first = image * from.count();
        let input = input.get(first..first + from.count()).unwrap_or_default();
        let image = view(input, from, zero_point);
        match &convolution.kernel {
            PackedConvolution::Dense(weights) => {
                kernels::conv(&image, window, weights, bias, rows, output)
            }
            PackedConvolution::Depthwise(weights) => {
                kernels::depthwise(&image, window, weights, bias, rows, output)
            }
            PackedConvolution::Transposed(weights) => {
                let size = [to.height, to.width];
                kernels::transposed(&image, size, weights, bias, rows, output)
            }
        }
    }
}

/// A batched product of two values.
pub(super) fn batched_product<T: Send>(
    work: &Work,
    inputs: &[InputSlice],
    output: &mut [T],
    sink: OutputConstructor<T>,
) -> Result<(), Error> {
    let Work::BatchedProduct {
        batch,
        bias,
        zero_points,
        epilogue,
    } = work
    else {
        return Err(Error::Zero {
            what: "the matrices of a batched product",
        });
    };
    let input = [bytes_of(inputs, 0)?, bytes_of(inputs, 1)?];
    let (bias, output) = (bias.as_deref(), (output, epilogue));
    matrix_products(batch, input, *zero_points, bias, output, sink)
}

/// The products of all pairs of matrices.
fn matrix_products<T: Send>(
    batch: &MatrixBatch,
    [left, right]: [&[u8]; 2],
    zero_points: [u8; 2],
    bias: Option<&[i32]>,
    (output, epilogue): (&mut [T], &ProductEpilogue),
    sink: OutputConstructor<T>,
) -> Result<(), Error> {
    let [rows, depth, columns] = batch.sizes;
    // The second factor takes the role of weights, which are signed.
    let zeros = vec![(zero_points[1] ^ SIGN) as i8; columns];
    let each = rows * columns;
    let cost = cost_of_product(batch.places.len() * each * depth);
    split_rows(output, each, cost, |part, output| {
        let places = batch.places.get(part).unwrap_or_default();
        for (&[a, b], output) in places.iter().zip(output.chunks_exact_mut(each.max(1))) {
            let signed: Vec<i8> = matrix(right, b, depth * columns)
                .iter()
                .map(|&v| (v ^ SIGN) as i8)
                .collect();
            let form = kernels::Form::best();
            let weights =
                Weights::pack(form, &signed, Layout::DepthFirst, [depth, columns], &zeros)?;
            let rows = Rows {
                values: matrix(left, a, rows * depth),
                count: rows,
                stride: depth,
                zero_point: zero_points[0],
            };
            kernels::gemm(&rows, &weights, bias, sink(output, 0..columns, epilogue))?;
        }
        Ok(())
    })
}

/// A matrix of a batch; empty if the index is out of range.
fn matrix(values: &[u8], place: usize, size: usize) -> &[u8] {
    values
        .get(place * size..(place + 1) * size)
        .unwrap_or_default()
}
