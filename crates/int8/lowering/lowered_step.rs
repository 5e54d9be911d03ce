//! A step during its lowering, with shapes and layout.

use crate::error::CompilerBug;
use crate::layout::MemoryLayout;
use crate::quantization::Int8Quantization;
use crate::values::{IrOperand, StepValues};

/// A step that is lowered.
pub(crate) struct LoweredStep<'a> {
    pub(crate) values: &'a StepValues,
    /// The first input.
    pub(crate) first: &'a IrOperand,
    /// Shape of the first input.
    pub(crate) shape: &'a [usize],
    /// Shape of the output.
    pub(crate) output: &'a [usize],
    /// The layout in which the readers of the output prefer it.
    pub(crate) preference: MemoryLayout,
}

impl LoweredStep<'_> {
    /// Quantization of the first input.
    pub(crate) fn from(&self) -> Result<Int8Quantization, CompilerBug> {
        self.first.quantized()
    }

    /// Quantization of the output's bytes.
    pub(crate) fn to(&self) -> Result<Int8Quantization, CompilerBug> {
        let quantization = self.values.quantization;
        quantization.ok_or(CompilerBug::MissingQuantization)
    }

    /// True if an input or the output has 16 bits, so the step computes with reals.
    pub(crate) fn is_on_reals(&self) -> bool {
        self.values.is_on_reals()
    }
}
