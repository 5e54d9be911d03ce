//! Kernels that move values without changing them: transpositions, permutations, selections,
//! copies.

use octet_kernels::int8 as kernels;

use crate::error::{CompilerBug, ProgramError};
use crate::program::instruction::InstructionKernel;
use crate::program::slices::{
    InputSlice, OutputSlice, bytes_of, floats_of, sums_of, to_nchw, to_nhwc,
};
use crate::program::split_rows::split_rows;

/// Transposition to channels-last, with [channels, pixels] of each image.
pub(crate) struct ToNhwc(pub(crate) [usize; 2]);

impl InstructionKernel for ToNhwc {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let ToNhwc(size) = *self;
        match output {
            OutputSlice::Bytes(output) => to_nhwc(
                bytes_of(inputs, 0)?,
                output,
                size,
                |from, apart, size, to| kernels::to_channels_last(from, apart, size, to, size[0]),
            )?,
            OutputSlice::Floats(output) => to_nhwc(
                floats_of(inputs, 0)?,
                output,
                size,
                |from, apart, size, to| kernels::to_channels_last(from, apart, size, to, size[0]),
            )?,
            OutputSlice::Accumulators(_) => return Err(CompilerBug::AccumulatorLayout.into()),
        }
        Ok(())
    }
}

/// Transposition to ONNX's layout, with [channels, pixels] of each image.
pub(crate) struct ToNchw(pub(crate) [usize; 2]);

impl InstructionKernel for ToNchw {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let ToNchw(size) = *self;
        match output {
            OutputSlice::Bytes(output) => {
                let from = bytes_of(inputs, 0)?;
                to_nchw(from, output, size, kernels::to_channels_first)?;
            }
            OutputSlice::Floats(output) => {
                let from = floats_of(inputs, 0)?;
                to_nchw(from, output, size, kernels::to_channels_first)?;
            }
            OutputSlice::Accumulators(output) => {
                let from = sums_of(inputs, 0)?;
                to_nchw(from, output, size, kernels::to_channels_first)?;
            }
        }
        Ok(())
    }
}

/// Copies bytes.
pub(crate) struct CopyBytes;

impl InstructionKernel for CopyBytes {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        copied(inputs, output.bytes()?)
    }
}

/// Converts signed bytes from outside to the unsigned representation.
pub(crate) struct FlipSigns;

impl InstructionKernel for FlipSigns {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let output = output.bytes()?;
        copied(inputs, output)?;
        kernels::flip(output);
        Ok(())
    }
}

fn copied(inputs: &[InputSlice], output: &mut [u8]) -> Result<(), ProgramError> {
    let (from, length) = (bytes_of(inputs, 0)?, output.len());
    kernels::copy_rows(from, length, [1, length], None, output, length)?;
    Ok(())
}

/// Permutes axes of these sizes.
pub(crate) struct Permute {
    pub(crate) sizes: Vec<usize>,
    pub(crate) order: Vec<usize>,
}

impl InstructionKernel for Permute {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let Permute { sizes, order } = self;
        match output {
            OutputSlice::Bytes(output) => {
                kernels::permute(bytes_of(inputs, 0)?, sizes, order, output)?;
            }
            output => {
                kernels::permute(floats_of(inputs, 0)?, sizes, order, output.floats()?)?;
            }
        }
        Ok(())
    }
}

/// Selects positions along each axis. `None` is the fill value, which is 0 for reals.
pub(crate) struct Select {
    pub(crate) sizes: Vec<usize>,
    pub(crate) positions: Vec<Vec<Option<usize>>>,
    pub(crate) fill: u8,
}

impl InstructionKernel for Select {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let (sizes, positions) = (&self.sizes, &self.positions);
        match output {
            OutputSlice::Bytes(output) => {
                selected(bytes_of(inputs, 0)?, sizes, positions, self.fill, output)?;
            }
            output => {
                selected(
                    floats_of(inputs, 0)?,
                    sizes,
                    positions,
                    0.0,
                    output.floats()?,
                )?;
            }
        }
        Ok(())
    }
}

/// Selects positions along each axis, split along the first axis with more than one position.
fn selected<T: Copy + Send + Sync>(
    values: &[T],
    shape: &[usize],
    positions: &[Vec<Option<usize>>],
    fill: T,
    output: &mut [T],
) -> Result<(), kernels::Error> {
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
