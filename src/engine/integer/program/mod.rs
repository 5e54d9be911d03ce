//! A region ready to run: instructions, packed weights and one arena whose parts are used again and again.
//!
//! A program is made once for the shapes of its inputs. Running it changes nothing of it, so several threads can
//! run it at once, each with an arena of its own; a run that is over leaves its arena for the next.

mod arithmetic;
mod compile;
mod dynamic;
mod ends;
mod execute;
mod instruction;
mod layout;
mod memory;
mod products;
mod slices;
mod steps;
mod team;
mod threads;
mod weighted;
mod wide;
mod wishes;

pub(super) use team::with_team;
pub(super) use threads::{cost_of_product, share};

use std::fmt;
use std::sync::{Mutex, PoisonError};

use octet_kernels::int8::Error;

use super::pattern::{Kind, Network, Value};
use super::region::Region;
use compile::Compiler;
use instruction::{Element, Instruction, Source};
use memory::Life;
use slices::{Sink, Slice};

/// What a region is given, in the order of its inputs.
pub(super) enum Given<'a> {
    Bytes(&'a [u8]),
    Floats(&'a [f32]),
}

/// A value that leaves a region.
#[derive(Debug, PartialEq)]
pub(super) enum Made {
    Bytes(Vec<u8>),
    Floats(Vec<f32>),
    Sums(Vec<i32>),
}

/// Called after each instruction with the place of its step in the region.
pub(super) type Clock<'a> = &'a mut dyn FnMut(usize);

/// A compiled region.
pub(in crate::engine) struct Program {
    instructions: Vec<Instruction>,
    /// Element and offset of each buffer in the arena of its kind, and its length.
    buffers: Vec<(Element, usize, usize)>,
    /// Lengths of the arenas, in the order of [`Element::ALL`].
    sizes: [usize; 3],
    outputs: Vec<(usize, Value)>,
    inputs: Vec<Value>,
    /// The step each place stands for.
    steps: Vec<usize>,
    spare: Mutex<Vec<Arena>>,
}

#[derive(Default)]
struct Arena {
    bytes: Vec<u8>,
    floats: Vec<f32>,
    sums: Vec<i32>,
}

/// tract asks its operators to tell of themselves: of this one in short, since all of it would be weights, and the code to write
/// them.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} instructions", self.instructions.len())
    }
}

/// Which step of the network can't be compiled, and why.
pub(super) struct Refused {
    pub(super) step: usize,
    pub(super) reason: String,
}

impl Program {
    /// How many instructions a run takes.
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
        let lives = lives(&instructions, &buffers, &outputs);
        let mut placed = vec![(Element::Byte, 0, 0); buffers.len()];
        let mut sizes = [0; 3];
        for (kind, element) in Element::ALL.into_iter().enumerate() {
            let of: Vec<usize> = (0..buffers.len())
                .filter(|&b| buffers[b].0 == element)
                .collect();
            let own: Vec<Life> = of.iter().map(|&buffer| lives[buffer]).collect();
            let (offsets, total) = memory::arrange(&own);
            sizes[kind] = total;
            for (&buffer, offset) in of.iter().zip(offsets) {
                placed[buffer] = (element, offset, buffers[buffer].1);
            }
        }
        Ok(Program {
            instructions,
            buffers: placed,
            sizes,
            outputs,
            inputs,
            steps: region.steps.clone(),
            spare: Mutex::default(),
        })
    }

    /// The types and shapes of what comes out.
    pub(super) fn outputs(&self) -> impl Iterator<Item = &Value> {
        self.outputs.iter().map(|(_, value)| value)
    }

    /// The form of the kernels that a step of the network runs on, where they have several.
    pub(super) fn form(&self, step: usize) -> Option<&'static str> {
        let place = self.steps.iter().position(|&s| s == step)?;
        self.instructions
            .iter()
            .filter(|instruction| instruction.step == place)
            .find_map(|instruction| instruction.work.form())
    }

    /// Runs it.
    pub(super) fn run(
        &self,
        given: &[Given],
        mut clock: Option<Clock>,
    ) -> Result<Vec<Made>, Error> {
        self.check(given)?;
        let spare = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let mut arena = spare().pop().unwrap_or_default();
        let [bytes, floats, sums] = self.sizes;
        arena.bytes.resize(bytes, 0);
        arena.floats.resize(floats, 0.0);
        arena.sums.resize(sums, 0);
        with_team(|| {
            self.instructions.iter().try_for_each(|instruction| {
                self.step(instruction, given, &mut arena)?;
                if let Some(clock) = &mut clock {
                    clock(instruction.step);
                }
                Ok(())
            })
        })?;
        let made = |(buffer, value): &(usize, Value)| {
            let (element, offset, length) = self.buffers[*buffer];
            match element {
                Element::Float => Made::Floats(arena.floats[offset..][..length].to_vec()),
                Element::Sum => Made::Sums(arena.sums[offset..][..length].to_vec()),
                Element::Byte => {
                    let mut bytes = arena.bytes[offset..][..length].to_vec();
                    if value.kind == (Kind::Byte { signed: true }) {
                        octet_kernels::int8::flip(&mut bytes);
                    }
                    Made::Bytes(bytes)
                }
            }
        };
        let made = self.outputs.iter().map(made).collect();
        spare().push(arena);
        Ok(made)
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
    ) -> Result<(), Error> {
        let (element, offset, length) = self.buffers[instruction.output];
        // Buffers that live together lie apart, so all that is read lies before the output or behind it.
        let place = |of| match of == element {
            true => (offset, length),
            false => (0, 0),
        };
        let (bytes, byte_output) = around(&mut arena.bytes, place(Element::Byte));
        let (floats, float_output) = around(&mut arena.floats, place(Element::Float));
        let (sums, sum_output) = around(&mut arena.sums, place(Element::Sum));
        let slice = |source: &'_ Source| -> Option<Slice<'_>> {
            Some(match source {
                Source::Constant(_) | Source::Reals(_) => return None,
                Source::Input(at) => match given.get(*at)? {
                    Given::Bytes(bytes) => Slice::Bytes(bytes),
                    Given::Floats(floats) => Slice::Floats(floats),
                },
                Source::Buffer(buffer) => {
                    let (element, offset, length) = self.buffers[*buffer];
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
        let output = match element {
            Element::Byte => Sink::Bytes(byte_output),
            Element::Float => Sink::Floats(float_output),
            Element::Sum => Sink::Sums(sum_output),
        };
        execute::execute(&instruction.work, &inputs, output)
    }
}

/// An arena but for one part of it.
struct Around<'a, T> {
    before: &'a [T],
    behind: &'a [T],
    end: usize,
}

impl<'a, T> Around<'a, T> {
    /// A part that doesn't touch the one left out; nothing where it does.
    fn at(&self, offset: usize, length: usize) -> &'a [T] {
        match offset.checked_sub(self.end) {
            Some(offset) if length > 0 => self.behind.get(offset..offset + length),
            _ => self.before.get(offset..offset + length),
        }
        .unwrap_or_default()
    }
}

fn around<T>(arena: &mut [T], (offset, length): (usize, usize)) -> (Around<'_, T>, &mut [T]) {
    let (before, rest) = arena.split_at_mut(offset);
    let (part, behind) = rest.split_at_mut(length);
    let around = Around {
        before,
        behind,
        end: offset + length,
    };
    (around, part)
}

fn lives(
    instructions: &[Instruction],
    buffers: &[(Element, usize)],
    outputs: &[(usize, Value)],
) -> Vec<Life> {
    let mut lives: Vec<Life> = buffers
        .iter()
        .map(|&(_, size)| Life {
            size,
            first: usize::MAX,
            last: 0,
        })
        .collect();
    for (at, instruction) in instructions.iter().enumerate() {
        let read = instruction.inputs.iter().filter_map(|source| match source {
            Source::Buffer(buffer) => Some(*buffer),
            _ => None,
        });
        for buffer in read.chain([instruction.output]) {
            lives[buffer].first = lives[buffer].first.min(at);
            lives[buffer].last = lives[buffer].last.max(at);
        }
    }
    for (buffer, _) in outputs {
        lives[*buffer].last = instructions.len();
    }
    lives
}
