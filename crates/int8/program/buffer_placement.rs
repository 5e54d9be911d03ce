//! Buffer placement: in an arena of the element type, or directly in the memory of an output.

use super::arena::{self, BufferLifetime};
use super::instruction::{BufferElement, InputSource, Instruction};

/// Location of a buffer.
#[derive(Clone, Copy)]
pub(crate) enum BufferLocation {
    /// Offset into the arena, in elements.
    Arena(usize),
    /// Memory of this output.
    Output(usize),
}

/// A placed buffer.
#[derive(Clone, Copy)]
pub(crate) struct Buffer {
    pub(crate) element: BufferElement,
    pub(crate) place: BufferLocation,
    pub(crate) length: usize,
}

/// Places all buffers, of which `outputs` leave the region. Also returns the lengths of the arenas
/// in the order of [`BufferElement::ALL`].
///
/// An output is written directly to its destination without a copy, unless an instruction reads it
/// again or it is returned twice.
pub(crate) fn place_buffers(
    instructions: &[Instruction],
    buffers: &[(BufferElement, usize)],
    outputs: &[usize],
) -> (Vec<Buffer>, [usize; 3]) {
    let read = |buffer: usize| {
        let sources = instructions.iter().flat_map(|one| &one.inputs);
        let mut read =
            sources.filter(|source| matches!(source, InputSource::Buffer(of) if *of == buffer));
        read.next().is_some()
    };
    let leaves_at = |buffer: usize| {
        let mut places = (0..outputs.len()).filter(|&at| outputs[at] == buffer);
        let place = places.next()?;
        (places.next().is_none() && !read(buffer)).then_some(place)
    };
    let mut all: Vec<Buffer> = buffers
        .iter()
        .enumerate()
        .map(|(buffer, &(element, length))| Buffer {
            element,
            place: leaves_at(buffer).map_or(BufferLocation::Arena(0), BufferLocation::Output),
            length,
        })
        .collect();
    let lifetimes = lifetimes(instructions, buffers, outputs);
    let mut sizes = [0; 3];
    for (kind, element) in BufferElement::ALL.into_iter().enumerate() {
        let inside = |buffer: &Buffer| {
            buffer.element == element && matches!(buffer.place, BufferLocation::Arena(_))
        };
        let of: Vec<usize> = (0..all.len()).filter(|&at| inside(&all[at])).collect();
        let own: Vec<BufferLifetime> = of.iter().map(|&buffer| lifetimes[buffer]).collect();
        let (offsets, total) = arena::assign_offsets(&own);
        sizes[kind] = total;
        for (&buffer, offset) in of.iter().zip(offsets) {
            all[buffer].place = BufferLocation::Arena(offset);
        }
    }
    (all, sizes)
}

fn lifetimes(
    instructions: &[Instruction],
    buffers: &[(BufferElement, usize)],
    outputs: &[usize],
) -> Vec<BufferLifetime> {
    let mut lifetimes: Vec<BufferLifetime> = buffers
        .iter()
        .map(|&(_, size)| BufferLifetime {
            size,
            first: usize::MAX,
            last: 0,
        })
        .collect();
    for (at, instruction) in instructions.iter().enumerate() {
        let read = instruction.inputs.iter().filter_map(|source| match source {
            InputSource::Buffer(buffer) => Some(*buffer),
            _ => None,
        });
        for buffer in read.chain([instruction.output]) {
            lifetimes[buffer].first = lifetimes[buffer].first.min(at);
            lifetimes[buffer].last = lifetimes[buffer].last.max(at);
        }
    }
    for buffer in outputs {
        lifetimes[*buffer].last = instructions.len();
    }
    lifetimes
}

/// An arena without one part.
pub(crate) struct SplitArena<'a, T> {
    before: &'a [T],
    behind: &'a [T],
    end: usize,
}

impl<'a, T> SplitArena<'a, T> {
    /// A range that does not touch the excluded part; empty if it does.
    pub(crate) fn at(&self, offset: usize, length: usize) -> &'a [T] {
        match offset.checked_sub(self.end) {
            Some(offset) if length > 0 => self.behind.get(offset..offset + length),
            _ => self.before.get(offset..offset + length),
        }
        .unwrap_or_default()
    }
}

/// Splits an arena into one part and the rest.
pub(crate) fn split_arena<T>(
    arena: &mut [T],
    (offset, length): (usize, usize),
) -> (SplitArena<'_, T>, &mut [T]) {
    let (before, rest) = arena.split_at_mut(offset);
    let (part, behind) = rest.split_at_mut(length);
    let around = SplitArena {
        before,
        behind,
        end: offset + length,
    };
    (around, part)
}

#[cfg(test)]
mod tests {
    use super::super::instruction::InstructionKernel;
    use super::super::slices::{InputSlice, OutputSlice};
    use super::*;
    use crate::error::ProgramError;

    struct Idle;

    impl InstructionKernel for Idle {
        fn run(&self, _: &[InputSlice], _: OutputSlice) -> Result<(), ProgramError> {
            Ok(())
        }
    }

    #[test]
    fn an_output_is_placed_directly_unless_it_is_read_again_or_returned_twice() {
        let copy = |from: InputSource, output: usize| Instruction {
            kernel: Box::new(Idle),
            inputs: vec![from],
            output,
            step: 0,
        };
        let instructions = [
            copy(InputSource::Input(0), 0),
            copy(InputSource::Buffer(0), 1),
            copy(InputSource::Buffer(0), 2),
        ];
        let buffers = [10, 20, 30].map(|length| (BufferElement::Byte, length));
        let (all, [bytes, ..]) = place_buffers(&instructions, &buffers, &[0, 1, 2, 2]);
        let places: Vec<BufferLocation> = all.iter().map(|buffer| buffer.place).collect();
        assert!(matches!(places[1], BufferLocation::Output(1)));
        let (BufferLocation::Arena(first), BufferLocation::Arena(second)) = (places[0], places[2])
        else {
            panic!("an output that is read again must be in the arena");
        };
        // Both outputs live until the end.
        assert!(first + 10 <= second || second + 30 <= first);
        assert_eq!(bytes, (first + 10).max(second + 30));
    }
}
