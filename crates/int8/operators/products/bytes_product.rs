//! Kernel of a product of bytes with packed weights.

use super::row_tiling::rounded_to_grid;
use super::weighted::{ProductEpilogue, WeightedProduct, floats, product, requantized};
use crate::error::{CompilerBug, ProgramError};
use crate::program::instruction::InstructionKernel;
use crate::program::slices::{InputSlice, OutputSlice, bytes_of};

pub(super) struct BytesProduct {
    pub(super) weighted: WeightedProduct,
    pub(super) bias: Option<Vec<i32>>,
    pub(super) zero_point: u8,
    pub(super) epilogue: ProductEpilogue,
}

impl InstructionKernel for BytesProduct {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let BytesProduct {
            weighted, epilogue, ..
        } = self;
        let input = (bytes_of(inputs, 0)?, self.zero_point);
        let bias = self.bias.as_deref();
        match output {
            OutputSlice::Bytes(output) => {
                product(weighted, input, bias, (output, epilogue), requantized)?;
            }
            OutputSlice::Floats(output) => match epilogue.rounding {
                Some(to) => rounded_to_grid(weighted, input, bias, (output, epilogue), to)?,
                None => product(weighted, input, bias, (output, epilogue), floats)?,
            },
            OutputSlice::Accumulators(_) => return Err(CompilerBug::InstructionOutput.into()),
        }
        Ok(())
    }

    fn form(&self) -> Option<String> {
        Some(self.weighted.form())
    }
}
