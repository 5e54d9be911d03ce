//! Buffer placement: in an arena of the element type, or directly in the memory of an output.

use super::instruction::{Element, Instruction, Source};
use super::memory::{self, Life};

/// Location of a buffer.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// Offset into the arena, in elements.
    Arena(usize),
    /// Memory of this output.
    Output(usize),
}

/// A placed buffer.
#[derive(Clone, Copy)]
pub(super) struct Buffer {
    pub(super) element: Element,
    pub(super) place: Place,
    pub(super) length: usize,
}

/// Places all buffers, of which `outputs` leave the region. Also returns the lengths of the arenas
/// in the order of [`Element::ALL`].
///
/// An output is written directly to its destination without a copy, unless an instruction reads it
/// again or it is returned twice.
pub(super) fn placed(
    instructions: &[Instruction],
    buffers: &[(Element, usize)],
    outputs: &[usize],
) -> (Vec<Buffer>, [usize; 3]) {
    let read = |buffer: usize| {
        let sources = instructions.iter().flat_map(|one| &one.inputs);
        let mut read =
            sources.filter(|source| matches!(source, Source::Buffer(of) if *of == buffer));
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
            place: leaves_at(buffer).map_or(Place::Arena(0), Place::Output),
            length,
        })
        .collect();
    let lives = lives(instructions, buffers, outputs);
    let mut sizes = [0; 3];
    for (kind, element) in Element::ALL.into_iter().enumerate() {
        let inside =
            |buffer: &Buffer| buffer.element == element && matches!(buffer.place, Place::Arena(_));
        let of: Vec<usize> = (0..all.len()).filter(|&at| inside(&all[at])).collect();
        let own: Vec<Life> = of.iter().map(|&buffer| lives[buffer]).collect();
        let (offsets, total) = memory::arrange(&own);
        sizes[kind] = total;
        for (&buffer, offset) in of.iter().zip(offsets) {
            all[buffer].place = Place::Arena(offset);
        }
    }
    (all, sizes)
}

fn lives(
    instructions: &[Instruction],
    buffers: &[(Element, usize)],
    outputs: &[usize],
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
    for buffer in outputs {
        lives[*buffer].last = instructions.len();
    }
    lives
}

/// An arena without one part.
pub(super) struct Around<'a, T> {
    before: &'a [T],
    behind: &'a [T],
    end: usize,
}

impl<'a, T> Around<'a, T> {
    /// A range that does not touch the excluded part; empty if it does.
    pub(super) fn at(&self, offset: usize, length: usize) -> &'a [T] {
        match offset.checked_sub(self.end) {
            Some(offset) if length > 0 => self.behind.get(offset..offset + length),
            _ => self.before.get(offset..offset + length),
        }
        .unwrap_or_default()
    }
}

/// Splits an arena into one part and the rest.
pub(super) fn around<T>(
    arena: &mut [T],
    (offset, length): (usize, usize),
) -> (Around<'_, T>, &mut [T]) {
    let (before, rest) = arena.split_at_mut(offset);
    let (part, behind) = rest.split_at_mut(length);
    let around = Around {
        before,
        behind,
        end: offset + length,
    };
    (around, part)
}

#[cfg(test)]
mod tests {
    use super::super::instruction::Work;
    use super::*;

    #[test]
    fn what_leaves_lies_outside_unless_it_is_read_again_or_leaves_twice() {
        let copy = |from: Source, output: usize| Instruction {
            work: Work::Copy,
            inputs: vec![from],
            output,
            step: 0,
        };
        let instructions = [
            copy(Source::Input(0), 0),
            copy(Source::Buffer(0), 1),
            copy(Source::Buffer(0), 2),
        ];
        let buffers = [10, 20, 30].map(|length| (Element::Byte, length));
        let (all, [bytes, ..]) = placed(&instructions, &buffers, &[0, 1, 2, 2]);
        let places: Vec<Place> = all.iter().map(|buffer| buffer.place).collect();
        assert!(matches!(places[1], Place::Output(1)));
        let (Place::Arena(first), Place::Arena(second)) = (places[0], places[2]) else {
            panic!("an output that is wanted again has no place of its own");
        };
        // Both outputs live until the end.
        assert!(first + 10 <= second || second + 30 <= first);
        assert_eq!(bytes, (first + 10).max(second + 30));
    }
}
