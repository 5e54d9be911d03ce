//! Kernels that convert between bytes, floats and 16-bit values.

use octet_kernels::int8::{self as kernels, Grid, Plane, Scale, Table};

use crate::error::{CompilerBug, ProgramError};
use crate::program::instruction::InstructionKernel;
use crate::program::slices::{InputSlice, OutputSlice, bytes_of, floats_of, one, to_nchw, to_nhwc};
use crate::program::split_rows::split_rows;

/// A function of bytes.
pub(crate) struct ByteTable(pub(crate) Table);

impl InstructionKernel for ByteTable {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let (from, output) = (bytes_of(inputs, 0)?, output.bytes()?);
        let length = output.len();
        split_rows(output, 1, length, |part, output| {
            self.0.apply(&from[part], output)
        })?;
        Ok(())
    }
}

/// A function from bytes to reals.
pub(crate) struct RealsOfBytes(pub(crate) Box<[f32; 256]>);

impl InstructionKernel for RealsOfBytes {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let (bytes, output) = (bytes_of(inputs, 0)?, output.floats()?);
        let length = output.len();
        split_rows(output, 1, length, |part, output| {
            for (output, &byte) in output.iter_mut().zip(&bytes[part]) {
                *output = self.0[usize::from(byte)];
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// Quantizes floats.
pub(crate) struct QuantizeKernel {
    /// `None` if scale and zero point are inputs after the floats.
    pub(crate) to: Option<Scale>,
    /// [channels, pixels] of each image, if the kernel also transposes it to channels-last.
    pub(crate) image: Option<[usize; 2]>,
}

impl InstructionKernel for QuantizeKernel {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let (floats, scale) = (floats_of(inputs, 0)?, self.scale(inputs)?);
        let output = output.bytes()?;
        let length = output.len();
        match self.image {
            None => split_rows(output, 1, length, |part, output| {
                kernels::quantize(&floats[part], scale, output)
            })?,
            Some(size) => to_nhwc(floats, output, size, |from, apart, size, to| {
                kernels::quantize_to_channels_last(from, apart, size, scale, to, size[0])
            })?,
        }
        Ok(())
    }
}

impl QuantizeKernel {
    fn scale(&self, inputs: &[InputSlice]) -> Result<Scale, CompilerBug> {
        Ok(match self.to {
            Some(scale) => scale,
            None => Scale {
                scale: one(floats_of(inputs, 1)?)?,
                zero_point: one(bytes_of(inputs, 2)?)?,
            },
        })
    }
}

/// Dequantizes bytes.
pub(crate) struct DequantizeKernel {
    pub(crate) from: Scale,
    /// [channels, pixels] of each image, if the kernel also transposes it to ONNX's layout.
    pub(crate) image: Option<[usize; 2]>,
}

impl InstructionKernel for DequantizeKernel {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let (bytes, output) = (bytes_of(inputs, 0)?, output.floats()?);
        let scale = self.from;
        match self.image {
            None => split_rows(output, 1, bytes.len(), |part, output| {
                kernels::dequantize(&bytes[part], scale, output)
            })?,
            Some(size) => to_nchw(bytes, output, size, |from, apart, size, to| {
                kernels::dequantize_to_channels_first(from, apart, size, scale, to)
            })?,
        }
        Ok(())
    }
}

/// Rounds reals to a 16-bit grid.
pub(crate) struct RoundToGrid(pub(crate) Grid);

impl InstructionKernel for RoundToGrid {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let (reals, output) = (floats_of(inputs, 0)?, output.floats()?);
        let length = output.len();
        split_rows(output, 1, length, |part, output| {
            kernels::snap(&reals[part], self.0, output)
        })?;
        Ok(())
    }
}

/// High or low bytes of the 16-bit integers of reals.
pub(crate) struct HalfBytes(pub(crate) Grid, pub(crate) Plane);

impl InstructionKernel for HalfBytes {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let HalfBytes(grid, plane) = *self;
        let (reals, output) = (floats_of(inputs, 0)?, output.bytes()?);
        let length = output.len();
        split_rows(output, 1, length, |part, output| {
            kernels::plane(&reals[part], grid, plane, output)
        })?;
        Ok(())
    }
}
