//! Programs: compiled regions with instructions, packed weights and an arena.
//!
//! A program is compiled for fixed input shapes. It is immutable while it runs, so several threads
//! can run it at once, each with its own arena. A finished run leaves its arena for the next.

mod arena;
mod buffer_element;
mod buffer_placement;
pub(crate) mod costs;
pub(crate) mod image_size;
pub(crate) mod instruction;
pub(crate) mod slices;
mod spin_pool;
pub(crate) mod split_rows;
mod thread_limit;

pub use costs::cost_of_product;
pub use slices::OutputSlice;
pub use spin_pool::{run_pieces, wake_ahead, with_pool};
pub use split_rows::{pieces, split_rows};
pub use thread_limit::{is_worker, parallel_operators, threads, with_threads};

use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::error::{CompilerBug, ProgramError};
use crate::values::{ElementKind, IrValue};
use buffer_placement::{Buffer, BufferLocation, place_buffers, split_arena};
use instruction::{BufferElement, InputSource, Instruction};
use slices::InputSlice;

/// An input of a region.
pub enum RegionInput<'a> {
    /// Integers of eight bits, in the type of the graph.
    Bytes(&'a [u8]),
    /// 32-bit floats.
    Floats(&'a [f32]),
}

/// Callback after each instruction, with the index of its step in the region.
pub type InstructionClock<'a> = &'a mut dyn FnMut(usize);

/// A compiled region.
pub struct Program {
    instructions: Vec<Instruction>,
    buffers: Vec<Buffer>,
    /// Lengths of the arenas, in the order of [`BufferElement::ALL`].
    sizes: [usize; 3],
    outputs: Vec<(usize, IrValue)>,
    inputs: Vec<IrValue>,
    /// Index into the IR's steps, for each step of the region.
    steps: Vec<usize>,
    free_arenas: Mutex<Vec<Arena>>,
}

#[derive(Default)]
struct Arena {
    bytes: Vec<u8>,
    floats: Vec<f32>,
    sums: Vec<i32>,
}

/// A short form, because tract prints its operators. A derived implementation would print all
/// weights, and add code to do so.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} instructions", self.instructions.len())
    }
}

/// The result of lowering a region.
pub(crate) struct LoweredRegion {
    pub(crate) instructions: Vec<Instruction>,
    /// Element type and length of each buffer.
    pub(crate) buffers: Vec<(BufferElement, usize)>,
    pub(crate) inputs: Vec<IrValue>,
    /// The outputs, with their buffers.
    pub(crate) outputs: Vec<(usize, IrValue)>,
    /// Index into the IR's steps, for each step of the region.
    pub(crate) steps: Vec<usize>,
}

impl Program {
    /// Number of instructions in one run.
    pub fn instructions(&self) -> usize {
        self.instructions.len()
    }

    /// Places the buffers of a region.
    pub(crate) fn new(region: LoweredRegion) -> Program {
        let LoweredRegion {
            instructions,
            buffers,
            inputs,
            outputs,
            steps,
        } = region;
        let leaving: Vec<usize> = outputs.iter().map(|(buffer, _)| *buffer).collect();
        let (buffers, sizes) = place_buffers(&instructions, &buffers, &leaving);
        Program {
            instructions,
            buffers,
            sizes,
            outputs,
            inputs,
            steps,
            free_arenas: Mutex::default(),
        }
    }

    /// Types and shapes of the outputs.
    pub fn outputs(&self) -> impl Iterator<Item = &IrValue> {
        self.outputs.iter().map(|(_, value)| value)
    }

    /// ISA and algorithm of the kernel of a step of the IR, for kernels with variants.
    pub(crate) fn form(&self, step: usize) -> Option<String> {
        let place = self.steps.iter().position(|&s| s == step)?;
        self.instructions
            .iter()
            .filter(|instruction| instruction.step == place)
            .find_map(|instruction| instruction.kernel.form())
    }

    /// Runs the program. It overwrites all of `result`, which has one slice per output.
    pub fn run(
        &self,
        input: &[RegionInput],
        result: &mut [OutputSlice],
        mut clock: Option<InstructionClock>,
    ) -> Result<(), ProgramError> {
        self.check(input)?;
        self.check_outputs(result)?;
        let free_arenas = || {
            self.free_arenas
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let mut arena = free_arenas().pop().unwrap_or_default();
        let [bytes, floats, sums] = self.sizes;
        arena.bytes.resize(bytes, 0);
        arena.floats.resize(floats, 0.0);
        arena.sums.resize(sums, 0);
        with_pool(|| {
            for instruction in &self.instructions {
                self.step(instruction, input, &mut arena, result)?;
                if let Some(clock) = &mut clock {
                    clock(instruction.step);
                }
            }
            Ok::<_, ProgramError>(())
        })?;
        for (result, (buffer, value)) in result.iter_mut().zip(&self.outputs) {
            let Buffer { place, length, .. } = self.buffers[*buffer];
            if let BufferLocation::Arena(offset) = place {
                match result {
                    OutputSlice::Bytes(to) => to.copy_from_slice(&arena.bytes[offset..][..length]),
                    OutputSlice::Floats(to) => {
                        to.copy_from_slice(&arena.floats[offset..][..length])
                    }
                    OutputSlice::Accumulators(to) => {
                        to.copy_from_slice(&arena.sums[offset..][..length])
                    }
                }
            }
            if let (OutputSlice::Bytes(bytes), ElementKind::Byte { signed: true }) =
                (result, value.kind)
            {
                octet_kernels::int8::flip(bytes);
            }
        }
        free_arenas().push(arena);
        Ok(())
    }

    fn check_outputs(&self, result: &[OutputSlice]) -> Result<(), ProgramError> {
        let fits = result.len() == self.outputs.len()
            && result
                .iter()
                .zip(&self.outputs)
                .all(|(result, (buffer, _))| {
                    let Buffer {
                        element, length, ..
                    } = self.buffers[*buffer];
                    (result.element(), result.len()) == (element, length)
                });
        fits.then_some(()).ok_or(ProgramError::Outputs {
            expected: self.outputs.len(),
            actual: result.len(),
        })
    }

    fn check(&self, input: &[RegionInput]) -> Result<(), ProgramError> {
        let fits = input.len() == self.inputs.len()
            && input.iter().zip(&self.inputs).all(|(input, value)| {
                let count: usize = value.shape.iter().product();
                match (input, value.kind) {
                    (RegionInput::Bytes(bytes), ElementKind::Byte { .. }) => bytes.len() == count,
                    (RegionInput::Floats(floats), ElementKind::Float) => floats.len() == count,
                    _ => false,
                }
            });
        fits.then_some(()).ok_or(ProgramError::Inputs {
            expected: self.inputs.len(),
            actual: input.len(),
        })
    }

    fn step(
        &self,
        instruction: &Instruction,
        input: &[RegionInput],
        arena: &mut Arena,
        result: &mut [OutputSlice],
    ) -> Result<(), ProgramError> {
        let Buffer {
            element,
            place,
            length,
        } = self.buffers[instruction.output];
        // Buffers with overlapping lifetimes are disjoint, so every input lies before or behind the
        // output. Buffers written directly to an output are not read here.
        let part = |of| match place {
            BufferLocation::Arena(offset) if of == element => (offset, length),
            _ => (0, 0),
        };
        let (bytes, byte_output) = split_arena(&mut arena.bytes, part(BufferElement::Byte));
        let (floats, float_output) = split_arena(&mut arena.floats, part(BufferElement::Float));
        let (sums, sum_output) = split_arena(&mut arena.sums, part(BufferElement::Accumulator));
        let slice = |source: &'_ InputSource| -> Option<InputSlice<'_>> {
            Some(match source {
                InputSource::Constant(_) | InputSource::Reals(_) => return None,
                InputSource::Input(at) => match input.get(*at)? {
                    RegionInput::Bytes(bytes) => InputSlice::Bytes(bytes),
                    RegionInput::Floats(floats) => InputSlice::Floats(floats),
                },
                InputSource::Buffer(buffer) => {
                    let Buffer {
                        element,
                        place: BufferLocation::Arena(offset),
                        length,
                    } = self.buffers[*buffer]
                    else {
                        return None;
                    };
                    match element {
                        BufferElement::Byte => InputSlice::Bytes(bytes.at(offset, length)),
                        BufferElement::Float => InputSlice::Floats(floats.at(offset, length)),
                        BufferElement::Accumulator => {
                            InputSlice::Accumulators(sums.at(offset, length))
                        }
                    }
                }
            })
        };
        let mut inputs = Vec::with_capacity(instruction.inputs.len());
        for (at, source) in instruction.inputs.iter().enumerate() {
            inputs.push(match source {
                InputSource::Constant(constant) => InputSlice::Bytes(constant),
                InputSource::Reals(reals) => InputSlice::Floats(reals),
                source => slice(source).ok_or(CompilerBug::InstructionInput(at))?,
            });
        }
        let output = match (place, element) {
            (BufferLocation::Output(at), _) => match result.get_mut(at) {
                Some(OutputSlice::Bytes(bytes)) => OutputSlice::Bytes(bytes),
                Some(OutputSlice::Floats(floats)) => OutputSlice::Floats(floats),
                Some(OutputSlice::Accumulators(sums)) => OutputSlice::Accumulators(sums),
                None => return Err(CompilerBug::MissingBuffer.into()),
            },
            (_, BufferElement::Byte) => OutputSlice::Bytes(byte_output),
            (_, BufferElement::Float) => OutputSlice::Floats(float_output),
            (_, BufferElement::Accumulator) => OutputSlice::Accumulators(sum_output),
        };
        instruction.kernel.run(&inputs, output)
    }
}
