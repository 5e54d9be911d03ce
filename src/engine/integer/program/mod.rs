//! Programs: compiled regions with instructions, packed weights and an arena.
//!
//! A program is compiled for fixed input shapes. It is immutable while it runs, so several threads
//! can run it at once, each with its own arena. A finished run leaves its arena for the next.

mod arithmetic;
mod compile;
mod dynamic;
mod ends;
mod execute;
mod instruction;
mod layout;
mod memory;
mod pair;
mod places;
mod products;
mod slices;
mod steps;
mod stripes;
mod team;
mod threads;
mod weighted;
mod wide;
mod wishes;

pub(super) use slices::Sink;
pub(in crate::engine) use team::call_ahead;
pub(super) use team::with_team;
pub(super) use threads::{cost_of_product, share};

use std::fmt;
use std::sync::{Mutex, PoisonError};

use octet_kernels::int8::Error;

use super::pattern::{Kind, Network, Value};
use super::region::Region;
use compile::Compiler;
use instruction::{Element, Instruction, Source};
use places::{Buffer, Place, around, placed};
use slices::Slice;

/// An input of a region.
pub(super) enum Given<'a> {
    Bytes(&'a [u8]),
    Floats(&'a [f32]),
}

/// Callback after each instruction, with the index of its step in the region.
pub(super) type Clock<'a> = &'a mut dyn FnMut(usize);

/// A compiled region.
pub(in crate::engine) struct Program {
    instructions: Vec<Instruction>,
    buffers: Vec<Buffer>,
    /// Lengths of the arenas, in the order of [`Element::ALL`].
    sizes: [usize; 3],
    outputs: Vec<(usize, Value)>,
    inputs: Vec<Value>,
    /// Index into the IR's steps, for each step of the region.
    steps: Vec<usize>,
    spare: Mutex<Vec<Arena>>,
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

/// A step that cannot be compiled, with the reason.
pub(super) struct Refused {
    pub(super) step: usize,
    pub(super) reason: String,
}

impl Program {
    /// Number of instructions in one run.
    pub(in crate::engine) fn instructions(&self) -> usize {
        self.instructions.len()
    }

    /// Compiles a region.
    pub(super) fn new(network: &Network, region: &Region) -> Result<Program, Refused> {
        let refused = |(step, error): (usize, Error)| Refused {
            step,
            reason: error.to_string(),
        };
        let last = region.steps.last().copied().unwrap_or(0);
        let mut compiler = Compiler::new(network, region);
        compiler.steps(region).map_err(refused)?;
        let value = |name: &String| network.values.get(name).cloned();
        let mut outputs = Vec::new();
        for name in &region.outputs {
            let buffer = compiler
                .output(name)
                .map_err(|error| refused((last, error)))?;
            outputs.extend(value(name).map(|value| (buffer, value)));
        }
        let Compiler {
            instructions,
            buffers,
            ..
        } = compiler;
        let inputs = region.inputs.iter().filter_map(value).collect();
        let leaving: Vec<usize> = outputs.iter().map(|(buffer, _)| *buffer).collect();
        let (buffers, sizes) = placed(&instructions, &buffers, &leaving);
        Ok(Program {
            instructions,
            buffers,
            sizes,
            outputs,
            inputs,
            steps: region.steps.clone(),
            spare: Mutex::default(),
        })
    }

    /// Types and shapes of the outputs.
    pub(super) fn outputs(&self) -> impl Iterator<Item = &Value> {
        self.outputs.iter().map(|(_, value)| value)
    }

    /// ISA and algorithm of the kernel of a step of the IR, for kernels with variants.
    pub(super) fn form(&self, step: usize) -> Option<String> {
        let place = self.steps.iter().position(|&s| s == step)?;
        self.instructions
            .iter()
            .filter(|instruction| instruction.step == place)
            .find_map(|instruction| instruction.work.form())
    }

    /// Runs the program. It overwrites all of `made`, which has one slice per output.
    pub(super) fn run(
        &self,
        given: &[Given],
        made: &mut [Sink],
        mut clock: Option<Clock>,
    ) -> Result<(), Error> {
        self.check(given)?;
        self.check_room(made)?;
        let spare = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let mut arena = spare().pop().unwrap_or_default();
        let [bytes, floats, sums] = self.sizes;
        arena.bytes.resize(bytes, 0);
        arena.floats.resize(floats, 0.0);
        arena.sums.resize(sums, 0);
        with_team(|| {
            self.instructions.iter().try_for_each(|instruction| {
                self.step(instruction, given, &mut arena, made)?;
                if let Some(clock) = &mut clock {
                    clock(instruction.step);
                }
                Ok(())
            })
        })?;
        for (made, (buffer, value)) in made.iter_mut().zip(&self.outputs) {
            let Buffer { place, length, .. } = self.buffers[*buffer];
            if let Place::Arena(offset) = place {
                match made {
                    Sink::Bytes(to) => to.copy_from_slice(&arena.bytes[offset..][..length]),
                    Sink::Floats(to) => to.copy_from_slice(&arena.floats[offset..][..length]),
                    Sink::Sums(to) => to.copy_from_slice(&arena.sums[offset..][..length]),
                }
            }
            if let (Sink::Bytes(bytes), Kind::Byte { signed: true }) = (made, value.kind) {
                octet_kernels::int8::flip(bytes);
            }
        }
        spare().push(arena);
        Ok(())
    }

    fn check_room(&self, made: &[Sink]) -> Result<(), Error> {
        let fits = made.len() == self.outputs.len()
            && made.iter().zip(&self.outputs).all(|(made, (buffer, _))| {
                let Buffer {
                    element, length, ..
                } = self.buffers[*buffer];
                (made.element(), made.len()) == (element, length)
            });
        fits.then_some(()).ok_or(Error::Mismatch {
            what: "the outputs of an integer region",
            expected: self.outputs.len(),
            found: made.len(),
        })
    }

    fn check(&self, given: &[Given]) -> Result<(), Error> {
        let fits = given.len() == self.inputs.len()
            && given.iter().zip(&self.inputs).all(|(given, value)| {
                let count: usize = value.shape.iter().product();
                match (given, value.kind) {
                    (Given::Bytes(bytes), Kind::Byte { .. }) => bytes.len() == count,
                    (Given::Floats(floats), Kind::Float) => floats.len() == count,
                    _ => false,
                }
            });
        fits.then_some(()).ok_or(Error::Mismatch {
            what: "the inputs of an integer region",
            expected: self.inputs.len(),
            found: given.len(),
        })
    }

    fn step(
        &self,
        instruction: &Instruction,
        given: &[Given],
        arena: &mut Arena,
        made: &mut [Sink],
    ) -> Result<(), Error> {
        let Buffer {
            element,
            place,
            length,
        } = self.buffers[instruction.output];
        // Buffers with overlapping lifetimes are disjoint, so every input lies before or behind the
        // output. Buffers written directly to an output are not read here.
        let part = |of| match place {
            Place::Arena(offset) if of == element => (offset, length),
            _ => (0, 0),
        };
        let (bytes, byte_output) = around(&mut arena.bytes, part(Element::Byte));
        let (floats, float_output) = around(&mut arena.floats, part(Element::Float));
        let (sums, sum_output) = around(&mut arena.sums, part(Element::Sum));
        let slice = |source: &'_ Source| -> Option<Slice<'_>> {
            Some(match source {
                Source::Constant(_) | Source::Reals(_) => return None,
                Source::Input(at) => match given.get(*at)? {
                    Given::Bytes(bytes) => Slice::Bytes(bytes),
                    Given::Floats(floats) => Slice::Floats(floats),
                },
                Source::Buffer(buffer) => {
                    let Buffer {
                        element,
                        place: Place::Arena(offset),
                        length,
                    } = self.buffers[*buffer]
                    else {
                        return None;
                    };
                    match element {
                        Element::Byte => Slice::Bytes(bytes.at(offset, length)),
                        Element::Float => Slice::Floats(floats.at(offset, length)),
                        Element::Sum => Slice::Sums(sums.at(offset, length)),
                    }
                }
            })
        };
        let mut inputs = Vec::with_capacity(instruction.inputs.len());
        for source in &instruction.inputs {
            inputs.push(match source {
                Source::Constant(constant) => Slice::Bytes(constant),
                Source::Reals(reals) => Slice::Floats(reals),
                source => slice(source).ok_or(Error::Zero {
                    what: "an input of a step",
                })?,
            });
        }
        let output = match (place, element) {
            (Place::Output(at), _) => match made.get_mut(at) {
                Some(Sink::Bytes(bytes)) => Sink::Bytes(bytes),
                Some(Sink::Floats(floats)) => Sink::Floats(floats),
                Some(Sink::Sums(sums)) => Sink::Sums(sums),
                None => return Err(compile::MISSING),
            },
            (_, Element::Byte) => Sink::Bytes(byte_output),
            (_, Element::Float) => Sink::Floats(float_output),
            (_, Element::Sum) => Sink::Sums(sum_output),
        };
        execute::execute(&instruction.work, &inputs, output)
    }
}
