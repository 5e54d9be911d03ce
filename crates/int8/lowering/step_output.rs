//! Final instructions of a step: requantization and clamping of its result.

use octet_kernels::int8::{Scale, Table};

use super::compiler::{Compiler, scale};
use super::conversions::{ByteTable, QuantizeKernel, RoundToGrid};
use super::lowered_step::LoweredStep;
use crate::error::CompilerBug;
use crate::layout::{MemoryLayout, coincide};
use crate::program::instruction::{BufferElement, InputSource};

impl<'a> Compiler<'a> {
    /// Records the location of a step's output.
    pub(crate) fn put(
        &mut self,
        step: &LoweredStep<'a>,
        layout: MemoryLayout,
        source: InputSource,
    ) {
        self.locations.insert((&step.values.output, layout), source);
    }

    /// Finishes data movement: requantizes and clamps if the output's parameters differ.
    pub(crate) fn finish_movement(
        &mut self,
        step: &LoweredStep<'a>,
        layout: MemoryLayout,
        source: InputSource,
    ) -> Result<(), CompilerBug> {
        let (from, to) = (step.from()?, step.to()?);
        let rescaled = from.table_to(&to).map(|table| Table(*table));
        let clamped = clamp(step.values.bounds);
        let table = match (rescaled, clamped) {
            (Some(first), Some(then)) => Some(first.then(&then)),
            (first, then) => first.or(then),
        };
        let source = match table {
            Some(table) => self.bytes(Box::new(ByteTable(table)), vec![source], step.output),
            None => source,
        };
        self.put(step, layout, source);
        Ok(())
    }

    /// Finishes a step whose result has the output's scale: clamps it.
    pub(crate) fn finish_clamped(
        &mut self,
        step: &LoweredStep<'a>,
        layout: MemoryLayout,
        source: InputSource,
    ) {
        let source = match clamp(step.values.bounds) {
            Some(table) => self.bytes(Box::new(ByteTable(table)), vec![source], step.output),
            None => source,
        };
        self.put(step, layout, source);
    }

    /// Converts reals to the output type of a step.
    pub(crate) fn finish_reals(
        &mut self,
        step: &LoweredStep<'a>,
        layout: MemoryLayout,
        reals: InputSource,
    ) {
        match (step.values.quantization, step.values.int16) {
            (Some(to), _) => {
                let kernel = Box::new(QuantizeKernel {
                    to: Some(scale(to)),
                    image: None,
                });
                let result = self.bytes(kernel, vec![reals], step.output);
                self.finish_clamped(step, layout, result);
            }
            (None, Some(int16)) => {
                let kernel = Box::new(RoundToGrid(int16.grid));
                let result = self.add(kernel, vec![reals], BufferElement::Float, step.output);
                self.put(step, layout, result);
            }
            (None, None) => self.put(step, layout, reals),
        }
    }

    /// Quantizes floats, and transposes them in the same pass if preferred. `None` if the scale is
    /// an input.
    pub(crate) fn quantize(
        &mut self,
        step: &LoweredStep<'a>,
        to: Option<Scale>,
        (current_layout, sources): (MemoryLayout, Vec<InputSource>),
    ) {
        let output = step.output;
        let turns = step.preference == MemoryLayout::ChannelsLast
            && current_layout == MemoryLayout::Plain
            && !coincide(output);
        let (image, layout) = match turns {
            true => {
                let size = [output[1], output[2..].iter().product()];
                (Some(size), MemoryLayout::ChannelsLast)
            }
            false => (None, current_layout),
        };
        let result = self.bytes(Box::new(QuantizeKernel { to, image }), sources, output);
        self.finish_clamped(step, layout, result);
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
