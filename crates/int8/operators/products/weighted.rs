//! Products with packed weights: rows times a matrix, or convolutions of images. Rows are split
//! between threads.

use std::ops::Range;
use std::sync::Arc;

use octet_kernels::int8::{
    self as kernels, ConvWeights, DepthwiseWeights, Error, Grid, Output, Requantize, Rows, Target,
    TransposedWeights, Way, Weights, Window,
};

use crate::program::costs::{MIN_PIECE_COST, cost_of_product};
use crate::program::image_size::ImageSize;
use crate::program::split_rows::split_rows;

/// Packed weights of a convolution, by algorithm.
pub(crate) enum PackedConvolution {
    Dense(ConvWeights),
    Depthwise(DepthwiseWeights),
    Transposed(TransposedWeights),
}

/// Conversion of accumulators: requantization by a multiplier per column, or dequantization by a
/// scale per column.
#[derive(Default)]
pub(crate) struct ProductEpilogue {
    pub(crate) factors: Vec<f32>,
    /// Bias of float outputs.
    pub(crate) bias: Option<Arc<[f32]>>,
    /// `None` for float outputs.
    pub(crate) to: Option<Target>,
    /// Rounds float outputs to this 16-bit grid.
    pub(crate) rounding: Option<Grid>,
}

/// A convolution of a batch of images.
pub(crate) struct ConvolutionBatch {
    pub(crate) kernel: PackedConvolution,
    pub(crate) window: Window,
    pub(crate) images: usize,
    pub(crate) from: ImageSize,
    pub(crate) to: ImageSize,
}

/// A product with weights, without its epilogue.
pub(crate) enum WeightedProduct {
    /// A number of rows times a matrix.
    Rows(usize, Arc<Weights>),
    Convolution(Box<ConvolutionBatch>),
}

impl WeightedProduct {
    /// ISA of the kernel, and the algorithm if it is not the usual one.
    pub(crate) fn form(&self) -> String {
        let form = match self {
            WeightedProduct::Rows(_, weights) => weights.form(),
            WeightedProduct::Convolution(convolution) => match &convolution.kernel {
                PackedConvolution::Dense(weights) if weights.way() == Way::Winograd => {
                    return format!("{} by Winograd", weights.form());
                }
                PackedConvolution::Dense(weights) => weights.form(),
                PackedConvolution::Depthwise(weights) => weights.form(),
                PackedConvolution::Transposed(weights) => weights.form(),
            },
        };
        form.name().to_owned()
    }
}

/// The entries of some columns; empty if there are too few, which kernels reject.
fn column_slice<T>(all: &[T], columns: Range<usize>) -> &[T] {
    all.get(columns).unwrap_or_default()
}

pub(crate) fn requantized<'a>(
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

pub(crate) fn floats<'a>(
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

pub(crate) fn sums<'a>(
    values: &'a mut [i32],
    columns: Range<usize>,
    _: &'a ProductEpilogue,
) -> Output<'a> {
    let stride = columns.len();
    Output::Accumulators { values, stride }
}

/// Constructor of a kernel's output: from the rows, their columns and the epilogue, as bytes,
/// floats or accumulators.
pub(crate) type OutputConstructor<T> =
    for<'a> fn(&'a mut [T], Range<usize>, &'a ProductEpilogue) -> Output<'a>;

/// A product of bytes with this zero point.
pub(crate) fn product<T: Send>(
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

/// Units in which threads split a product. A unit is a row of a matrix, a pixel, or a row of pixels
/// if adjacent pixels share work.
impl WeightedProduct {
    /// Values per matrix row or pixel.
    pub(crate) fn width(&self) -> usize {
        match self {
            WeightedProduct::Rows(_, weights) => weights.columns(),
            WeightedProduct::Convolution(convolution) => convolution.to.channels,
        }
    }

    /// Values per unit.
    pub(crate) fn row(&self) -> usize {
        match self {
            WeightedProduct::Rows(..) => self.width(),
            WeightedProduct::Convolution(convolution) => match &convolution.kernel {
                PackedConvolution::Dense(_) => self.width(),
                _ => convolution.to.width * self.width(),
            },
        }
    }

    /// Number of units per call that is most efficient; its multiples are too.
    pub(crate) fn rows_together(&self) -> usize {
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
    pub(crate) fn split_rows<T: Send>(
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
                    // One piece per thread, because each gathers the halo rows around its own.
                    PackedConvolution::Depthwise(_) => cost.min(MIN_PIECE_COST),
                    // The same, because Winograd weights are large and each piece reads all.
                    PackedConvolution::Dense(weights) if weights.way() == Way::Winograd => {
                        cost.min(MIN_PIECE_COST)
                    }
                    _ => cost,
                }
            }
        }
    }

    /// Computes some units.
    pub(crate) fn run(
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
        let image = from.view(input, zero_point);
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
