//! Instructions of a program: each reads some buffers and writes one.

use std::sync::Arc;

pub(crate) use super::buffer_element::BufferElement;
use super::slices::{InputSlice, OutputSlice};
use crate::error::ProgramError;

/// The loops of an instruction. It writes all of its output.
///
/// Threads compute whole elements of the output, and no input changes meanwhile. The result is
/// therefore the same for any number of threads.
pub(crate) trait InstructionKernel: Send + Sync {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError>;

    /// ISA and algorithm, for kernels with variants.
    fn form(&self) -> Option<String> {
        None
    }
}

/// Location of an instruction's input.
#[derive(Clone, Debug)]
pub(crate) enum InputSource {
    Buffer(usize),
    /// An input of the region, in ONNX's layout.
    Input(usize),
    Constant(Arc<[u8]>),
    Reals(Arc<[f32]>),
}

/// One instruction: it writes `output` from `inputs`.
pub(crate) struct Instruction {
    pub(crate) kernel: Box<dyn InstructionKernel>,
    pub(crate) inputs: Vec<InputSource>,
    pub(crate) output: usize,
    /// Index of its step in the program.
    pub(crate) step: usize,
}
