//! Slices that instructions read and write, and their partition for kernels and threads.

use octet_kernels::int8::Error;

use super::buffer_element::BufferElement;
use super::split_rows::split_rows;
use crate::error::CompilerBug;

/// An input slice of an instruction.
pub(crate) enum InputSlice<'a> {
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

impl<'a> OutputSlice<'a> {
    pub(crate) fn bytes(self) -> Result<&'a mut [u8], CompilerBug> {
        match self {
            OutputSlice::Bytes(bytes) => Ok(bytes),
            _ => Err(CompilerBug::InstructionOutput),
        }
    }

    pub(crate) fn floats(self) -> Result<&'a mut [f32], CompilerBug> {
        match self {
            OutputSlice::Floats(floats) => Ok(floats),
            _ => Err(CompilerBug::InstructionOutput),
        }
    }

    pub(crate) fn element(&self) -> BufferElement {
        match self {
            OutputSlice::Bytes(_) => BufferElement::Byte,
            OutputSlice::Floats(_) => BufferElement::Float,
            OutputSlice::Accumulators(_) => BufferElement::Accumulator,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            OutputSlice::Bytes(bytes) => bytes.len(),
            OutputSlice::Floats(floats) => floats.len(),
            OutputSlice::Accumulators(sums) => sums.len(),
        }
    }
}

pub(crate) fn floats_of<'a>(
    inputs: &[InputSlice<'a>],
    at: usize,
) -> Result<&'a [f32], CompilerBug> {
    match inputs.get(at) {
        Some(InputSlice::Floats(floats)) => Ok(floats),
        _ => Err(CompilerBug::InstructionInput(at)),
    }
}

pub(crate) fn bytes_of<'a>(inputs: &[InputSlice<'a>], at: usize) -> Result<&'a [u8], CompilerBug> {
    match inputs.get(at) {
        Some(InputSlice::Bytes(bytes)) => Ok(bytes),
        _ => Err(CompilerBug::InstructionInput(at)),
    }
}

pub(crate) fn sums_of<'a>(inputs: &[InputSlice<'a>], at: usize) -> Result<&'a [i32], CompilerBug> {
    match inputs.get(at) {
        Some(InputSlice::Accumulators(sums)) => Ok(sums),
        _ => Err(CompilerBug::InstructionInput(at)),
    }
}

/// The value of a scalar input.
pub(crate) fn one<T: Copy>(values: &[T]) -> Result<T, CompilerBug> {
    values.first().copied().ok_or(CompilerBug::EmptyScalar)
}

/// Pairs of input and output images with these element counts.
pub(crate) fn images<'a, F, T>(
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
pub(crate) fn to_nhwc<F: Sync, T: Send>(
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
pub(crate) fn to_nchw<F: Sync, T: Send>(
    from: &[F],
    output: &mut [T],
    [channels, pixels]: [usize; 2],
    transpose: impl Fn(&[F], usize, [usize; 2], &mut [T]) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    to_nhwc(from, output, [pixels, channels], transpose)
}
