//! Scalar reference kernels: one accumulator after the other, by the definition. They are slow, and
//! all other kernels are tested against them bit for bit.

use core::ops::Range;

use super::conv::{ConvShape, transposed_size};
use super::error::{Error, at_least, equal, product, span};
use super::gemm::WeightLayout;
use super::output::Output;
use super::shape::{Image, Rows, Window, position_count, row_count, zero_points};

/// Computes `Σ (a - a₀) · (w - w₀) + bias` for each row and column. i32 sums wrap, on every ISA.
pub fn gemm(
    rows: &Rows,
    values: &[i8],
    layout: WeightLayout,
    [depth, columns]: [usize; 2],
    column_zero_points: &[i8],
    bias: Option<&[i32]>,
    mut output: Output,
) -> Result<(), Error> {
    at_least(
        "the weights",
        values.len(),
        product("the weights", &[depth, columns])?,
    )?;
    at_least(
        "the activations",
        rows.values.len(),
        span("the activations", rows.count, rows.stride, depth)?,
    )?;
    zero_points(column_zero_points, columns)?;
    bias.map_or(Ok(()), |bias| equal("bias", columns, bias.len()))?;
    output.check(rows.count, columns)?;
    for row in 0..rows.count {
        for column in 0..columns {
            let zero = column_zero_points
                .get(column)
                .map_or(0, |&zero| i32::from(zero));
            let mut sum = bias.map_or(0, |bias| bias[column]);
            for at in 0..depth {
                let activation = rows.values[row * rows.stride + at];
                let weight = match layout {
                    WeightLayout::ColumnAfterColumn => values[column * depth + at],
                    WeightLayout::DepthFirst => values[at * columns + column],
                };
                sum = sum.wrapping_add(
                    (i32::from(activation) - i32::from(rows.zero_point))
                        * (i32::from(weight) - zero),
                );
            }
            output.put(row, column, sum);
        }
    }
    Ok(())
}

/// Computes some output positions of a convolution, grouped or depthwise included. Weights are in
/// OIHW order.
#[allow(clippy::too_many_arguments)]
pub fn conv(
    image: &Image,
    window: &Window,
    values: &[i8],
    shape: &ConvShape,
    column_zero_points: &[i8],
    bias: Option<&[i32]>,
    positions: Range<usize>,
    mut output: Output,
) -> Result<(), Error> {
    let [inputs, outputs] = shape.per_group()?;
    at_least("the weights", values.len(), shape.weights()?)?;
    zero_points(column_zero_points, shape.outputs)?;
    bias.map_or(Ok(()), |bias| equal("bias", shape.outputs, bias.len()))?;
    image.check()?;
    equal("channels", shape.inputs, image.channels)?;
    shape.fits(window)?;
    let size = window.output(image.height, image.width)?;
    output.check(position_count(&positions, size)?, shape.outputs)?;
    let [tall, wide] = window.kernel;
    for position in positions.clone() {
        let (y, x) = (position / size[1], position % size[1]);
        for column in 0..shape.outputs {
            let first = column / outputs * inputs;
            let zero = column_zero_points
                .get(column)
                .map_or(0, |&zero| i32::from(zero));
            let mut sum = bias.map_or(0, |bias| bias[column]);
            for (ky, kx) in (0..tall).flat_map(|ky| (0..wide).map(move |kx| (ky, kx))) {
                let at = (
                    window.input_position(0, y, ky, image.height),
                    window.input_position(1, x, kx, image.width),
                );
                // Padding equals the zero point and adds nothing.
                let (Some(iy), Some(ix)) = at else { continue };
                for channel in 0..inputs {
                    let weight = values[((column * inputs + channel) * tall + ky) * wide + kx];
                    let pixel = (iy * image.width + ix) * image.stride;
                    let activation = image.values[pixel + first + channel];
                    sum = sum.wrapping_add(
                        (i32::from(activation) - i32::from(image.zero_point))
                            * (i32::from(weight) - zero),
                    );
                }
            }
            output.put(position - positions.start, column, sum);
        }
    }
    Ok(())
}

/// A transposed convolution, which scatters every input pixel to its window of the output. Weights
/// are in ONNX order: [in, out per group, rows, columns].
#[allow(clippy::too_many_arguments)]
pub fn transposed(
    image: &Image,
    window: &Window,
    size: [usize; 2],
    values: &[i8],
    shape: &ConvShape,
    column_zero_points: &[i8],
    bias: Option<&[i32]>,
    rows: Range<usize>,
    mut output: Output,
) -> Result<(), Error> {
    let [inputs, outputs] = shape.per_group()?;
    at_least("the weights", values.len(), shape.weights()?)?;
    zero_points(column_zero_points, shape.outputs)?;
    bias.map_or(Ok(()), |bias| equal("bias", shape.outputs, bias.len()))?;
    image.check()?;
    equal("channels", shape.inputs, image.channels)?;
    shape.fits(window)?;
    transposed_size(image, window, size)?;
    let [height, width] = size;
    output.check(
        product("the output", &[row_count(&rows, height)?, width])?,
        shape.outputs,
    )?;
    let [tall, wide] = window.kernel;
    for y in rows.clone() {
        for x in 0..width {
            for column in 0..shape.outputs {
                let group = column / outputs;
                let zero = column_zero_points
                    .get(column)
                    .map_or(0, |&zero| i32::from(zero));
                let mut sum = bias.map_or(0, |bias| bias[column]);
                for iy in 0..image.height {
                    for ix in 0..image.width {
                        for (ky, kx) in (0..tall).flat_map(|ky| (0..wide).map(move |kx| (ky, kx))) {
                            if window.input_position(0, iy, ky, height) != Some(y)
                                || window.input_position(1, ix, kx, width) != Some(x)
                            {
                                continue;
                            }
                            for channel in group * inputs..(group + 1) * inputs {
                                let weight =
                                    values[((channel * outputs + column % outputs) * tall + ky)
                                        * wide
                                        + kx];
                                let activation =
                                    image.values[(iy * image.width + ix) * image.stride + channel];
                                sum = sum.wrapping_add(
                                    (i32::from(activation) - i32::from(image.zero_point))
                                        * (i32::from(weight) - zero),
                                );
                            }
                        }
                    }
                }
                output.put((y - rows.start) * width + x, column, sum);
            }
        }
    }
    Ok(())
}
