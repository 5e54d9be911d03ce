//! Slices that instructions read and write, and their partition for kernels and threads.

use octet_kernels::int8::{self as kernels, Error, Image, Operand};

use super::instruction::{BroadcastSide, BufferElement, ImageSize};
use super::split_rows::split_rows;

/// An input slice of an instruction.
pub(super) enum InputSlice<'a> {
    Bytes(&'a [u8]),
    Floats(&'a [f32]),
    Accumulators(&'a [i32]),
}

/// The output slice of an instruction or region.
pub enum OutputSlice<'a> {
    /// Integers of eight bits.
    Bytes(&'a mut [u8]),
    /// 32-bit floats.
    Floats(&'a mut [f32]),
    /// 32-bit accumulators.
    Accumulators(&'a mut [i32]),
}

impl OutputSlice<'_> {
    pub(super) fn element(&self) -> BufferElement {
        match self {
            OutputSlice::Bytes(_) => BufferElement::Byte,
            OutputSlice::Floats(_) => BufferElement::Float,
            OutputSlice::Accumulators(_) => BufferElement::Accumulator,
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            OutputSlice::Bytes(bytes) => bytes.len(),
            OutputSlice::Floats(floats) => floats.len(),
            OutputSlice::Accumulators(sums) => sums.len(),
        }
    }
}

const OTHER: Error = Error::Zero {
    what: "an instruction's inputs of the expected type",
};

pub(super) fn floats_of<'a>(inputs: &[InputSlice<'a>], at: usize) -> Result<&'a [f32], Error> {
    match inputs.get(at) {
        Some(InputSlice::Floats(floats)) => Ok(floats),
        _ => Err(OTHER),
    }
}

pub(super) fn bytes_of<'a>(inputs: &[InputSlice<'a>], at: usize) -> Result<&'a [u8], Error> {
    match inputs.get(at) {
        Some(InputSlice::Bytes(bytes)) => Ok(bytes),
        _ => Err(OTHER),
    }
}

pub(super) fn sums_of<'a>(inputs: &[InputSlice<'a>], at: usize) -> Result<&'a [i32], Error> {
    match inputs.get(at) {
        Some(InputSlice::Accumulators(sums)) => Ok(sums),
        _ => Err(OTHER),
    }
}

/// The value of a scalar input.
pub(super) fn one<T: Copy>(values: &[T]) -> Result<T, Error> {
    values.first().copied().ok_or(OTHER)
}

/// Pairs of input and output images with these element counts.
pub(super) fn images<'a, F, T>(
    from: &'a [F],
    to: &'a mut [T],
    input: usize,
    output: usize,
) -> impl Iterator<Item = (&'a [F], &'a mut [T])> {
    from.chunks_exact(input.max(1))
        .zip(to.chunks_exact_mut(output.max(1)))
}

/// Transposes images of [channels, pixels] to channels-last, with pixels split between threads.
///
/// `transpose` gets the input from its first pixel on, the distance of the channels, the numbers of
/// channels and pixels, and the output.
pub(super) fn to_nhwc<F: Sync, T: Send>(
    from: &[F],
    output: &mut [T],
    [channels, pixels]: [usize; 2],
    transpose: impl Fn(&[F], usize, [usize; 2], &mut [T]) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let image = channels * pixels;
    for (from, to) in images(from, output, image, image) {
        split_rows(to, channels, image, |part, to| {
            transpose(&from[part.start..], pixels, [channels, part.len()], to)
        })?;
    }
    Ok(())
}

/// Transposes back, with channels split between threads. This is the same transposition with
/// channels and pixels exchanged.
pub(super) fn to_nchw<F: Sync, T: Send>(
    from: &[F],
    output: &mut [T],
    [channels, pixels]: [usize; 2],
    transpose: impl Fn(&[F], usize, [usize; 2], &mut [T]) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    to_nhwc(from, output, [pixels, channels], transpose)
}

/// Selects positions along each axis, split along the first axis with more than one position.
pub(super) fn selected<T: Copy + Send + Sync>(
    values: &[T],
    shape: &[usize],
    positions: &[Vec<Option<usize>>],
    fill: T,
    output: &mut [T],
) -> Result<(), Error> {
    let several = positions.iter().position(|along| along.len() > 1);
    let axis = several.unwrap_or(0);
    let rows = positions.iter().skip(axis + 1).map(Vec::len);
    let (row, length) = (rows.product(), output.len());
    split_rows(output, row, length, |part, output| {
        let mut positions: Vec<&[Option<usize>]> = positions.iter().map(Vec::as_slice).collect();
        if let (Some(along), true) = (positions.get_mut(axis), !part.is_empty()) {
            *along = &along[part];
        }
        kernels::select(values, shape, &positions, fill, output)
    })
}

/// Maximum or minimum over the middle axis of [.., middle, inner]. It is split along the first
/// axis, or along the last if the first has size 1.
pub(super) fn extreme_over<T: PartialOrd + Copy + Send + Sync>(
    values: &[T],
    [middle, inner]: [usize; 2],
    least: bool,
    output: &mut [T],
) -> Result<(), Error> {
    let cost = values.len();
    if output.len() > inner {
        let block = middle * inner;
        return split_rows(output, inner, cost, |part, output| {
            let values = values.get(part.start * block..).unwrap_or_default();
            kernels::extreme_over(values, [middle, inner], inner, least, output)
        });
    }
    split_rows(output, 1, cost, |part, output| {
        let values = values.get(part.start..).unwrap_or_default();
        kernels::extreme_over(values, [middle, output.len()], inner, least, output)
    })
}

pub(super) fn view<'a>(values: &'a [u8], plane: &ImageSize, zero_point: u8) -> Image<'a> {
    Image {
        values,
        height: plane.height,
        width: plane.width,
        channels: plane.channels,
        stride: plane.channels,
        zero_point,
    }
}

pub(super) fn both<'a>(
    inputs: &'a [InputSlice],
    sides: &[BroadcastSide; 2],
) -> Result<[Operand<'a>; 2], Error> {
    let side = |at: usize| -> Result<Operand<'a>, Error> {
        Ok(Operand {
            values: bytes_of(inputs, at)?,
            each: sides[at].each,
            zero_point: sides[at].zero_point,
        })
    };
    Ok([side(0)?, side(1)?])
}

/// Splits the output into pieces that hold whole repetitions of both sides.
pub(super) fn pieces(
    output: &mut [u8],
    sides: [&Operand; 2],
    part: impl Fn([&Operand; 2], &mut [u8]) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let length = output.len();
    // A side as long as the output is split with it. A repeated side must repeat completely in each
    // piece.
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
    split_rows(output, unit, length, |range, output| {
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
