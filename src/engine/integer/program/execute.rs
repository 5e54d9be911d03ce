//! Running one instruction: kernels on slices, rows or pieces shared out among the threads.
//!
//! Each thread computes whole elements of the output from inputs that nobody writes, so the result is the same
//! for any number of threads.

use std::ops::Range;

use octet_kernels::int8::{self as kernels, Affine, Error, Image, Operand};
use rayon::prelude::*;

use super::instruction::{Side, Work};
use super::products::{convolve, floats, multiply, pair, requantized};

/// Fewer multiplications or elements than this are not worth waking threads for.
const LEAST: usize = 1 << 15;

/// The slices an instruction reads.
pub(super) enum Slice<'a> {
    Bytes(&'a [u8]),
    Floats(&'a [f32]),
}

/// The slice an instruction writes.
pub(super) enum Sink<'a> {
    Bytes(&'a mut [u8]),
    Floats(&'a mut [f32]),
}

impl Slice<'_> {
    fn bytes(&self) -> Result<&[u8], Error> {
        match self {
            Slice::Bytes(bytes) => Ok(bytes),
            Slice::Floats(_) => Err(Error::Zero {
                what: "the bytes of floats",
            }),
        }
    }

    fn floats(&self) -> Result<&[f32], Error> {
        match self {
            Slice::Floats(floats) => Ok(floats),
            Slice::Bytes(_) => Err(Error::Zero {
                what: "the floats of bytes",
            }),
        }
    }
}

/// Runs `part` on rows of the output, on several threads where there is enough to do.
pub(super) fn shared<T: Send>(
    output: &mut [T],
    row: usize,
    cost: usize,
    part: impl Fn(Range<usize>, &mut [T]) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let rows = output.len().checked_div(row).unwrap_or(0);
    let threads = rayon::current_num_threads();
    if threads == 1 || rows < 2 || cost < LEAST {
        return part(0..rows, output);
    }
    // A few pieces a thread even out what else the machine does.
    let each = rows.div_ceil(threads * 2).max(1);
    output
        .par_chunks_mut(each * row)
        .enumerate()
        .try_for_each(|(piece, output)| {
            let first = piece * each;
            part(first..first + output.len() / row, output)
        })
}

fn bytes_of<'a>(inputs: &'a [Slice], at: usize) -> Result<&'a [u8], Error> {
    match inputs.get(at) {
        Some(slice) => slice.bytes(),
        None => Err(Error::Zero { what: "the inputs" }),
    }
}

/// Runs one instruction.
pub(super) fn execute(work: &Work, inputs: &[Slice], output: Sink) -> Result<(), Error> {
    match output {
        Sink::Bytes(output) => to_bytes(work, inputs, output),
        Sink::Floats(output) => to_floats(work, inputs, output),
    }
}

fn to_floats(work: &Work, inputs: &[Slice], output: &mut [f32]) -> Result<(), Error> {
    match work {
        Work::Dequantize(scale) => {
            let bytes = bytes_of(inputs, 0)?;
            shared(output, 1, bytes.len(), |part, output| {
                kernels::dequantize(&bytes[part], *scale, output)
            })
        }
        Work::DequantizeToFirst(scale, [channels, pixels]) => {
            let image = channels * pixels;
            for (from, to) in images(bytes_of(inputs, 0)?, output, image, image) {
                let size = [*pixels, *channels];
                kernels::dequantize_to_channels_first(from, *channels, size, *scale, to)?;
            }
            Ok(())
        }
        Work::FloatsToFirst([channels, pixels]) => {
            let image = channels * pixels;
            let floats = match inputs.first() {
                Some(slice) => slice.floats()?,
                None => &[],
            };
            for (from, to) in images(floats, output, image, image) {
                kernels::to_channels_first(from, *channels, [*pixels, *channels], to)?;
            }
            Ok(())
        }
        Work::Convolution(convolution) => {
            convolve(convolution, bytes_of(inputs, 0)?, output, floats)
        }
        Work::Product {
            weights,
            bias,
            rows,
            zero_point,
            epilogue,
        } => {
            let given = (bytes_of(inputs, 0)?, *rows, *zero_point);
            multiply(given, weights, bias.as_deref(), (output, epilogue), floats)
        }
        _ => Err(Error::Zero {
            what: "the float form of an operation on integers",
        }),
    }
}

fn to_bytes(work: &Work, inputs: &[Slice], output: &mut [u8]) -> Result<(), Error> {
    let length = output.len();
    match work {
        Work::Quantize(scale) => {
            let floats = match inputs.first() {
                Some(slice) => slice.floats()?,
                None => &[],
            };
            shared(output, 1, length, |part, output| {
                kernels::quantize(&floats[part], *scale, output)
            })
        }
        Work::QuantizeToLast(scale, [channels, pixels]) => {
            let image = channels * pixels;
            let floats = match inputs.first() {
                Some(slice) => slice.floats()?,
                None => &[],
            };
            for (from, to) in images(floats, output, image, image) {
                let size = [*channels, *pixels];
                kernels::quantize_to_channels_last(from, size, *scale, to, *channels)?;
            }
            Ok(())
        }
        Work::ToLast([channels, pixels]) => {
            let image = channels * pixels;
            for (from, to) in images(bytes_of(inputs, 0)?, output, image, image) {
                kernels::to_channels_last(from, [*channels, *pixels], to, *channels)?;
            }
            Ok(())
        }
        Work::ToFirst([channels, pixels]) => {
            let image = channels * pixels;
            for (from, to) in images(bytes_of(inputs, 0)?, output, image, image) {
                kernels::to_channels_first(from, *channels, [*pixels, *channels], to)?;
            }
            Ok(())
        }
        Work::Copy | Work::Flip => {
            let from = bytes_of(inputs, 0)?;
            kernels::copy_rows(from, length, [1, length], None, output, length)?;
            if matches!(work, Work::Flip) {
                kernels::flip(output);
            }
            Ok(())
        }
        Work::Convolution(convolution) => {
            convolve(convolution, bytes_of(inputs, 0)?, output, requantized)
        }
        Work::Product {
            weights,
            bias,
            rows,
            zero_point,
            epilogue,
        } => {
            let given = (bytes_of(inputs, 0)?, *rows, *zero_point);
            multiply(
                given,
                weights,
                bias.as_deref(),
                (output, epilogue),
                requantized,
            )
        }
        Work::Pair { .. } => pair(work, bytes_of(inputs, 0)?, bytes_of(inputs, 1)?, output),
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
        Work::Table(table) => {
            let from = bytes_of(inputs, 0)?;
            shared(output, 1, length, |part, output| {
                table.apply(&from[part], output)
            })
        }
        Work::ChannelTables(tables, together) => {
            let from = bytes_of(inputs, 0)?;
            let image = tables.len() * together;
            shared(output, image, length, |part, output| {
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
            let mut first = 0;
            for (at, (part, table)) in parts.iter().enumerate() {
                let from = bytes_of(inputs, at)?;
                let to = output.get_mut(first..).unwrap_or_default();
                kernels::copy_rows(from, *part, [*rows, *part], table.as_ref(), to, width)?;
                first += part;
            }
            Ok(())
        }
        Work::MaxPool(window, count, [from, to]) => {
            let given = bytes_of(inputs, 0)?;
            debug_assert_eq!(length, count * to.count());
            for (image, output) in images(given, output, from.count(), to.count()) {
                let row = to.width * to.channels;
                let cost = to.count() * window.kernel[0] * window.kernel[1];
                shared(output, row, cost, |rows, output| {
                    let image = view(image, from, 0);
                    let size = [to.height, to.width];
                    kernels::max_pool(&image, window, size, rows, output, to.channels)
                })?;
            }
            Ok(())
        }
        Work::AveragePool(window, count, [from, to], how, zero_point) => {
            let given = bytes_of(inputs, 0)?;
            debug_assert_eq!(length, count * to.count());
            for (image, output) in images(given, output, from.count(), to.count()) {
                let row = to.width * to.channels;
                let cost = to.count() * window.kernel[0] * window.kernel[1];
                shared(output, row, cost, |rows, output| {
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
            shared(output, *inner, from.len(), |outer, output| {
                for (outer, output) in outer.zip(output.chunks_exact_mut((*inner).max(1))) {
                    let image = Image {
                        values: &from[outer * middle * inner..][..middle * inner],
                        height: 1,
                        width: *middle,
                        channels: *inner,
                        stride: *inner,
                        zero_point: *zero_point,
                    };
                    kernels::global_average_pool(&image, *factor, *to, output)?;
                }
                Ok(())
            })
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
            let given = bytes_of(inputs, 0)?;
            let image = rows.len() * columns.len() * from.channels;
            debug_assert_eq!(length, count * image);
            for (given, output) in images(given, output, from.count(), image) {
                shared(
                    output,
                    columns.len() * from.channels,
                    image * 4,
                    |part, output| {
                        let image = view(given, from, *zero_point);
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
        } => kernels::select(bytes_of(inputs, 0)?, sizes, positions, *fill, output),
        Work::Permute { sizes, order } => {
            kernels::permute(bytes_of(inputs, 0)?, sizes, order, output)
        }
        Work::Blocks {
            images: count,
            from,
            block,
            to_space,
        } => {
            let given = bytes_of(inputs, 0)?;
            debug_assert_eq!(length, count * from.count());
            for (given, output) in images(given, output, from.count(), from.count()) {
                let sizes = [from.height, from.width, from.channels];
                match to_space {
                    Some(order) => kernels::depth_to_space(given, sizes, *block, *order, output)?,
                    None => kernels::space_to_depth(given, sizes, *block, output)?,
                }
            }
            Ok(())
        }
        Work::Softmax {
            length: row,
            from,
            to,
        } => {
            let given = bytes_of(inputs, 0)?;
            shared(output, *row, length * 4, |rows, output| {
                let given = &given[rows.start * row..rows.end * row];
                kernels::softmax(given, *row, *from, *to, output)
            })
        }
        Work::Normalize {
            length: row,
            from,
            scale,
            shift,
            epsilon,
            to,
        } => {
            let given = bytes_of(inputs, 0)?;
            let affine = Affine {
                scale,
                bias: shift.as_deref(),
            };
            shared(output, *row, length * 4, |rows, output| {
                let given = &given[rows.start * row..rows.end * row];
                kernels::layer_norm(given, *row, *from, affine, *epsilon, *to, output)
            })
        }
        Work::Dequantize(_) | Work::DequantizeToFirst(..) | Work::FloatsToFirst(_) => {
            Err(Error::Zero {
                what: "the integer form of what makes floats",
            })
        }
    }
}

/// Images of these many elements, input and output side by side.
pub(super) fn images<'a, F, T>(
    from: &'a [F],
    to: &'a mut [T],
    input: usize,
    output: usize,
) -> impl Iterator<Item = (&'a [F], &'a mut [T])> {
    from.chunks_exact(input.max(1))
        .zip(to.chunks_exact_mut(output.max(1)))
}

pub(super) fn view<'a>(
    values: &'a [u8],
    plane: &super::instruction::Plane,
    zero_point: u8,
) -> Image<'a> {
    Image {
        values,
        height: plane.height,
        width: plane.width,
        channels: plane.channels,
        stride: plane.channels,
        zero_point,
    }
}

fn both<'a>(inputs: &'a [Slice], sides: &[Side; 2]) -> Result<[Operand<'a>; 2], Error> {
    let side = |at: usize| -> Result<Operand<'a>, Error> {
        Ok(Operand {
            values: bytes_of(inputs, at)?,
            each: sides[at].each,
            zero_point: sides[at].zero_point,
        })
    };
    Ok([side(0)?, side(1)?])
}

/// Pieces of the output that are whole runs of both sides' repetitions.
fn pieces(
    output: &mut [u8],
    sides: [&Operand; 2],
    part: impl Fn([&Operand; 2], &mut [u8]) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let length = output.len();
    // A side that is as long as the output is cut with it; one that repeats must repeat whole in each piece.
    let whole = |side: &Operand| side.each == 1 && side.values.len() == length;
    let unit = sides
        .iter()
        .filter(|side| !whole(side))
        .map(|side| side.values.len() * side.each)
        .max()
        .unwrap_or(1);
    let fits = sides
        .iter()
        .filter(|side| !whole(side))
        .all(|side| unit.is_multiple_of((side.values.len() * side.each).max(1)));
    if unit == 0 || !fits {
        return part(sides, output);
    }
    shared(output, unit, length, |range, output| {
        let [a, b] = sides.map(|side| Operand {
            values: match whole(side) {
                true => &side.values[range.start * unit..range.end * unit],
                false => side.values,
            },
            ..*side
        });
        part([&a, &b], output)
    })
}
