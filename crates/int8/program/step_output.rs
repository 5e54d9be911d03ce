//! Final instructions of a step: requantization and clamping of its result.

use octet_kernels::int8::{Error, Table};

use super::compiler::{Compiler, MISSING, scale};
use super::instruction::{BufferElement, InputSource, Work};
use super::layout::{MemoryLayout, is_still};
use crate::pattern::{Operand, Step};

impl<'a> Compiler<'a> {
    pub(super) fn put(&mut self, step: &'a Step, layout: MemoryLayout, source: InputSource) {
        self.locations.insert((&step.output, layout), source);
    }

    /// Finishes data movement: requantizes and clamps if the output's parameters differ.
    pub(super) fn finish_movement(
        &mut self,
        step: &'a Step,
        input: &'a Operand,
        layout: MemoryLayout,
        source: InputSource,
        shape: &[usize],
    ) -> Result<(), Error> {
        let from = input.quantization().ok_or(MISSING)?;
        let to = step.quantization.ok_or(MISSING)?;
        let rescaled = from.table_to(&to).map(|table| Table(*table));
        let clamped = clamp(step.bounds);
        let table = match (rescaled, clamped) {
            (Some(first), Some(then)) => Some(first.then(&then)),
            (first, then) => first.or(then),
        };
        let source = match table {
            Some(table) => self.bytes(Work::Table(table), vec![source], shape),
            None => source,
        };
        self.put(step, layout, source);
        Ok(())
    }

    /// Finishes a step whose result has the output's scale: clamps it.
    pub(super) fn finish_clamped(
        &mut self,
        step: &'a Step,
        layout: MemoryLayout,
        source: InputSource,
        shape: &[usize],
    ) {
        let source = match clamp(step.bounds) {
            Some(table) => self.bytes(Work::Table(table), vec![source], shape),
            None => source,
        };
        self.put(step, layout, source);
    }

    pub(super) fn softmax(
        &mut self,
        step: &'a Step,
        axes: &std::ops::Range<usize>,
        shape: &'a [usize],
        on_reals: bool,
    ) -> Result<(), Error> {
        let first = step.inputs.first().ok_or(MISSING)?;
        let rank = shape.len();
        let layout = match *axes == (1..2) && rank >= 3 {
            true => MemoryLayout::ChannelsLast,
            false => MemoryLayout::Plain,
        };
        let (mut source, element) = match on_reals {
            true => (self.reals(first, layout)?, BufferElement::Float),
            false => (self.operand(first, layout)?, BufferElement::Byte),
        };
        let sizes = layout.sizes(shape);
        let places: Vec<usize> = axes.clone().map(|axis| layout.place(axis, rank)).collect();
        // The Softmax axes move to the end, and back afterwards.
        let mut order: Vec<usize> = (0..rank).filter(|a| !places.contains(a)).collect();
        order.extend(places);
        let moves = !is_still(&sizes, &order);
        if moves {
            let work = Work::Permute {
                sizes: sizes.clone(),
                order: order.clone(),
            };
            source = self.add(work, vec![source], element, shape);
        }
        let length = shape[axes.clone()].iter().product();
        let work = match on_reals {
            true => Work::SoftmaxOfReals(length),
            false => Work::Softmax {
                length,
                from: first.quantization().ok_or(MISSING)?.scale,
                to: scale(step.quantization.ok_or(MISSING)?),
            },
        };
        let mut result = self.add(work, vec![source], element, shape);
        if moves {
            let mut back: Vec<usize> = (0..rank).collect();
            back.sort_by_key(|&a| order[a]);
            let sizes = order.iter().map(|&a| sizes[a]).collect();
            let work = Work::Permute { sizes, order: back };
            result = self.add(work, vec![result], element, shape);
        }
        match on_reals {
            true => self.finish_reals(step, layout, result, shape),
            false => self.finish_clamped(step, layout, result, shape),
        }
        Ok(())
    }
}

/// A clamp as a table; `None` if the bounds are the full range.
fn clamp([low, high]: [u8; 2]) -> Option<Table> {
    if (low, high) == (0, 255) {
        return None;
    }
    let mut table = [0; 256];
    for (value, entry) in (0..=255u8).zip(&mut table) {
        *entry = value.clamp(low, high.max(low));
    }
    Some(Table(table))
}
