//! Execution of one instruction: kernels on slices, with rows or pieces split between threads.
//!
//! Each thread computes whole elements of the output and no input changes meanwhile. The result is
//! therefore the same for any number of threads.

use octet_kernels::Ends;
use octet_kernels::int8::{self as kernels, Error, Image, Scale};

use super::instruction::{PARTS, Work};
use super::products::{batched_product, dynamic_product, floats, product, requantized, sums};
use super::slices::{
    InputSlice, OutputSlice, both, bytes_of, extreme_over, floats_of, images, one, pieces,
    selected, sums_of, to_nchw, to_nhwc, view,
};
use super::split_rows::split_rows;
use super::{int16, row_tiling};

/// Minimum number of channels per thread in a Mean.
const MIN_CHANNELS: usize = 16;

/// Runs one instruction.
pub(super) fn execute(
    work: &Work,
    inputs: &[InputSlice],
    output: OutputSlice,
) -> Result<(), Error> {
    match output {
        OutputSlice::Bytes(output) => to_bytes(work, inputs, output),
        OutputSlice::Floats(output) => to_floats(work, inputs, output),
        OutputSlice::Accumulators(output) => to_sums(work, inputs, output),
    }
}

/// Parameters of a quantization: constant, or from the inputs after the floats.
fn scale_of_inputs(scale: &Option<Scale>, inputs: &[InputSlice]) -> Result<Scale, Error> {
    Ok(match *scale {
        Some(scale) => scale,
        None => Scale {
            scale: one(floats_of(inputs, 1)?)?,
            zero_point: one(bytes_of(inputs, 2)?)?,
        },
    })
}

/// Combines the ranges of all parts to a scale.
fn scale_of_ends(ends: &[f32]) -> Scale {
    let parts = ends.chunks_exact(2);
    let (least, greatest) = parts.fold((0.0f32, 0.0f32), |(least, greatest), part| {
        (least.min(part[0]), greatest.max(part[1]))
    });
    kernels::scale_between(least, greatest)
}

fn to_sums(work: &Work, inputs: &[InputSlice], output: &mut [i32]) -> Result<(), Error> {
    match work {
        Work::DynamicProduct(work) => dynamic_product(work, inputs, output, sums),
        Work::BatchedProduct { .. } => batched_product(work, inputs, output, sums),
        Work::AccumulatorsToNchw(size) => to_nchw(
            sums_of(inputs, 0)?,
            output,
            *size,
            kernels::to_channels_first,
        ),
        _ => Err(Error::Zero {
            what: "an instruction with int32 output",
        }),
    }
}

fn to_floats(work: &Work, inputs: &[InputSlice], output: &mut [f32]) -> Result<(), Error> {
    match work {
        Work::Dequantize(scale) => {
            let bytes = bytes_of(inputs, 0)?;
            split_rows(output, 1, bytes.len(), |part, output| {
                kernels::dequantize(&bytes[part], *scale, output)
            })
        }
        Work::DequantizeToNchw(scale, size) => to_nchw(
            bytes_of(inputs, 0)?,
            output,
            *size,
            |from, apart, size, to| {
                kernels::dequantize_to_channels_first(from, apart, size, *scale, to)
            },
        ),
        Work::FloatsToNchw(size) => to_nchw(
            floats_of(inputs, 0)?,
            output,
            *size,
            kernels::to_channels_first,
        ),
        Work::Product {
            weighted,
            bias,
            zero_point,
            epilogue,
        } => {
            let (input, bias) = ((bytes_of(inputs, 0)?, *zero_point), bias.as_deref());
            match epilogue.rounding {
                Some(to) => {
                    row_tiling::rounded_to_grid(weighted, input, bias, (output, epilogue), to)
                }
                None => product(weighted, input, bias, (output, epilogue), floats),
            }
        }
        Work::BatchedProduct { .. } => batched_product(work, inputs, output, floats),
        Work::Int16Product(product) => row_tiling::to_floats(product, inputs, output),
        Work::DynamicProduct(work) => dynamic_product(work, inputs, output, floats),
        Work::Ends => {
            let floats = floats_of(inputs, 0)?;
            let first = |part: usize| part * floats.len() / PARTS;
            split_rows(output, 2, floats.len(), |parts, output| {
                for (part, ends) in parts.zip(output.chunks_exact_mut(2)) {
                    let [least, greatest, _] =
                        Ends::of(&floats[first(part)..first(part + 1)]).reach;
                    ends.copy_from_slice(&[least, greatest]);
                }
                Ok(())
            })
        }
        Work::Clamp([low, high]) => {
            let floats = floats_of(inputs, 0)?;
            split_rows(output, 1, floats.len(), |part, output| {
                for (to, &value) in output.iter_mut().zip(&floats[part]) {
                    // NaN stays NaN.
                    let raised = if value < *low { *low } else { value };
                    *to = if raised > *high { *high } else { raised };
                }
                Ok(())
            })
        }
        Work::ScaleOfEnds => {
            output.fill(scale_of_ends(floats_of(inputs, 0)?).scale);
            Ok(())
        }
        _ => int16::to_floats(work, inputs, output),
    }
}

fn to_bytes(work: &Work, inputs: &[InputSlice], output: &mut [u8]) -> Result<(), Error> {
    let length = output.len();
    match work {
        Work::Quantize(scale) => {
            let (floats, scale) = (floats_of(inputs, 0)?, scale_of_inputs(scale, inputs)?);
            split_rows(output, 1, length, |part, output| {
                kernels::quantize(&floats[part], scale, output)
            })
        }
        Work::QuantizeToNhwc(scale, size) => {
            let (floats, scale) = (floats_of(inputs, 0)?, scale_of_inputs(scale, inputs)?);
            to_nhwc(floats, output, *size, |from, apart, size, to| {
                kernels::quantize_to_channels_last(from, apart, size, scale, to, size[0])
            })
        }
        Work::ToNhwc(size) => {
            let bytes = bytes_of(inputs, 0)?;
            to_nhwc(bytes, output, *size, |from, apart, size, to| {
                kernels::to_channels_last(from, apart, size, to, size[0])
            })
        }
        Work::ToNchw(size) => to_nchw(
            bytes_of(inputs, 0)?,
            output,
            *size,
            kernels::to_channels_first,
        ),
        Work::Copy | Work::Flip => {
            let from = bytes_of(inputs, 0)?;
            kernels::copy_rows(from, length, [1, length], None, output, length)?;
            if matches!(work, Work::Flip) {
                kernels::flip(output);
            }
            Ok(())
        }
        Work::Product {
            weighted,
            bias,
            zero_point,
            epilogue,
        } => {
            let input = (bytes_of(inputs, 0)?, *zero_point);
            let output = (output, epilogue);
            product(weighted, input, bias.as_deref(), output, requantized)
        }
        Work::Int16Product(product) => row_tiling::to_bytes(product, inputs, output),
        Work::ZeroOfEnds => {
            output.fill(scale_of_ends(floats_of(inputs, 0)?).zero_point);
            Ok(())
        }
        Work::BatchedProduct { .. } => batched_product(work, inputs, output, requantized),
        Work::Add { sides, factors, to } => {
            let [a, b] = both(inputs, sides)?;
            pieces(output, [&a, &b], |[a, b], output| {
                kernels::add((a, factors[0]), (b, factors[1]), *to, output)
            })
        }
        Work::Multiply { sides, factor, to } => {
            let [a, b] = both(inputs, sides)?;
            pieces(output, [&a, &b], |[a, b], output| {
                kernels::multiply(a, b, *factor, *to, output)
            })
        }
        Work::MinMax { sides, least } => {
            let [a, b] = both(inputs, sides)?;
            pieces(output, [&a, &b], |sides, output| {
                kernels::extreme(sides, *least, output)
            })
        }
        Work::Table(table) => {
            let from = bytes_of(inputs, 0)?;
            split_rows(output, 1, length, |part, output| {
                table.apply(&from[part], output)
            })
        }
        Work::ChannelTables(tables, together) => {
            let from = bytes_of(inputs, 0)?;
            let image = tables.len() * together;
            split_rows(output, image, length, |part, output| {
                let from = &from[part.start * image..part.end * image];
                if *together == 1 {
                    let pixels = from.chunks_exact(image).zip(output.chunks_exact_mut(image));
                    for (from, to) in pixels {
                        for ((to, &from), table) in to.iter_mut().zip(from).zip(tables) {
                            *to = table.0[usize::from(from)];
                        }
                    }
                    return Ok(());
                }
                let runs = from.chunks(*together).zip(output.chunks_mut(*together));
                for ((from, to), table) in runs.zip(tables.iter().cycle()) {
                    table.apply(from, to)?;
                }
                Ok(())
            })
        }
        Work::Concat { rows, parts } => {
            let width: usize = parts.iter().map(|(width, _)| width).sum();
            debug_assert_eq!(length, rows * width);
            split_rows(output, width, length, |rows, output| {
                let mut first = 0;
                for (at, (part, table)) in parts.iter().enumerate() {
                    let from = bytes_of(inputs, at)?;
                    let from = from.get(rows.start * part..).unwrap_or_default();
                    let to = output.get_mut(first..).unwrap_or_default();
                    let size = [rows.len(), *part];
                    kernels::copy_rows(from, *part, size, table.as_ref(), to, width)?;
                    first += part;
                }
                Ok(())
            })
        }
        Work::MaxPool(window, count, [from, to]) => {
            let input = bytes_of(inputs, 0)?;
            debug_assert_eq!(length, count * to.count());
            for (image, output) in images(input, output, from.count(), to.count()) {
                let row = to.width * to.channels;
                let cost = to.count() * window.kernel[0] * window.kernel[1];
                split_rows(output, row, cost, |rows, output| {
                    let image = view(image, from, 0);
                    let size = [to.height, to.width];
                    kernels::max_pool(&image, window, size, rows, output, to.channels)
                })?;
            }
            Ok(())
        }
        Work::AveragePool(window, count, [from, to], how, zero_point) => {
            let input = bytes_of(inputs, 0)?;
            debug_assert_eq!(length, count * to.count());
            for (image, output) in images(input, output, from.count(), to.count()) {
                let row = to.width * to.channels;
                let cost = to.count() * window.kernel[0] * window.kernel[1];
                split_rows(output, row, cost, |rows, output| {
                    let image = view(image, from, *zero_point);
                    let size = [to.height, to.width];
                    kernels::average_pool(&image, window, size, rows, *how, output, to.channels)
                })?;
            }
            Ok(())
        }
        Work::Mean {
            sizes: [_, middle, inner],
            zero_point,
            factor,
            to,
        } => {
            let from = bytes_of(inputs, 0)?;
            let image = middle * inner;
            for (at, output) in output.chunks_exact_mut((*inner).max(1)).enumerate() {
                let from = from.get(at * image..(at + 1) * image).unwrap_or_default();
                split_rows(output, MIN_CHANNELS, image, |part, output| {
                    let image = Image {
                        values: from.get(part.start * MIN_CHANNELS..).unwrap_or_default(),
                        height: 1,
                        width: *middle,
                        channels: output.len(),
                        stride: *inner,
                        zero_point: *zero_point,
                    };
                    kernels::global_average_pool(&image, *factor, *to, output)
                })?;
            }
            Ok(())
        }
        Work::ReduceMinMax(sizes, least) => {
            extreme_over(bytes_of(inputs, 0)?, *sizes, *least, output)
        }
        Work::Resize {
            images: count,
            from,
            rows,
            columns,
            zero_point,
            factor,
            to,
        } => {
            let input = bytes_of(inputs, 0)?;
            let image = rows.len() * columns.len() * from.channels;
            debug_assert_eq!(length, count * image);
            for (input, output) in images(input, output, from.count(), image) {
                split_rows(
                    output,
                    columns.len() * from.channels,
                    image * 4,
                    |part, output| {
                        let image = view(input, from, *zero_point);
                        kernels::resize_linear(&image, &rows[part], columns, *factor, *to, output)
                    },
                )?;
            }
            Ok(())
        }
        Work::Select {
            sizes,
            positions,
            fill,
        } => selected(bytes_of(inputs, 0)?, sizes, positions, *fill, output),
        Work::Permute { sizes, order } => {
            kernels::permute(bytes_of(inputs, 0)?, sizes, order, output)
        }
        Work::Blocks {
            images: count,
            from,
            block,
            to_space,
        } => {
            let input = bytes_of(inputs, 0)?;
            debug_assert_eq!(length, count * from.count());
            // Number of input rows that form whole rows of the output.
            let at_once = if to_space.is_some() { 1 } else { *block };
            let row = at_once * from.width * from.channels;
            for (input, output) in images(input, output, from.count(), from.count()) {
                split_rows(output, row, length, |part, output| {
                    let input = &input[part.start * row..part.end * row];
                    let sizes = [part.len() * at_once, from.width, from.channels];
                    match to_space {
                        Some(order) => {
                            kernels::depth_to_space(input, sizes, *block, *order, output)
                        }
                        None => kernels::space_to_depth(input, sizes, *block, output),
                    }
                })?;
            }
            Ok(())
        }
        Work::Softmax {
            length: row,
            from,
            to,
        } => {
            let input = bytes_of(inputs, 0)?;
            split_rows(output, *row, length * 4, |rows, output| {
                let input = &input[rows.start * row..rows.end * row];
                kernels::softmax(input, *row, *from, *to, output)
            })
        }
        Work::Normalize { norm, from, to } => {
            let (input, row) = (bytes_of(inputs, 0)?, norm.length);
            split_rows(output, row, length * 4, |rows, output| {
                let input = &input[rows.start * row..rows.end * row];
                let (affine, epsilon) = (norm.affine(rows.start), norm.epsilon);
                kernels::layer_norm(input, row, *from, affine, epsilon, *to, output)
            })
        }
        _ => int16::to_bytes(work, inputs, output),
    }
}
