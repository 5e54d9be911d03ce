//! Lookup tables of one integer of eight or 16 bits, to bytes or to reals.

use std::sync::Arc;

use octet_kernels::int8::{Table, WideTable};

use crate::error::ProgramError;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::Compiler;
use crate::lowering::conversions::{ByteTable, RealsOfBytes};
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::{MergedTable, Operation};
use crate::program::instruction::{BufferElement, InstructionKernel};
use crate::program::slices::{InputSlice, OutputSlice, floats_of};
use crate::program::split_rows::split_rows;
use crate::table_functions::{
    TableFunction, TableFunctions, TableValues, compose, compose_bytes, compose_reals,
};
use crate::values::{IrOperand, StepValues};

/// A lookup table.
pub(super) enum LookupTable {
    BytesToBytes(Box<[u8; 256]>),
    BytesToReals(Box<[f32; 256]>),
    Int16ToBytes(Arc<WideTable<u8>>),
    Int16ToReals(Arc<WideTable<f32>>),
}

impl LookupTable {
    /// The table of a function; `None` if it has another size than its operand needs.
    pub(super) fn new(source: &IrOperand, values: &TableValues) -> Option<LookupTable> {
        Some(match (source, values) {
            (IrOperand::Int16(_, int16), TableValues::Bytes(bytes)) => {
                let table = WideTable::new(int16.grid, bytes.clone()).ok()?;
                LookupTable::Int16ToBytes(Arc::new(table))
            }
            (IrOperand::Int16(_, int16), TableValues::Reals(reals)) => {
                let table = WideTable::new(int16.grid, reals.clone()).ok()?;
                LookupTable::Int16ToReals(Arc::new(table))
            }
            (_, TableValues::Bytes(bytes)) => {
                LookupTable::BytesToBytes(bytes.clone().try_into().ok()?)
            }
            (_, TableValues::Reals(reals)) => {
                LookupTable::BytesToReals(reals.clone().try_into().ok()?)
            }
        })
    }

    /// The table that replaces an operation; `None` if it has another size than its operand needs.
    pub(super) fn merged(source: IrOperand, values: TableValues) -> Option<MergedTable> {
        let table = LookupTable::new(&source, &values)?;
        Some(MergedTable {
            function: TableFunction { source, values },
            operation: Arc::new(table),
        })
    }
}

impl Operation for LookupTable {
    fn name(&self) -> &'static str {
        match self {
            LookupTable::BytesToBytes(_) => "table",
            LookupTable::BytesToReals(_) => "table to 16 bits",
            LookupTable::Int16ToBytes(_) => "table from 16 bits",
            LookupTable::Int16ToReals(_) => "table of 16 bits",
        }
    }

    fn preference(&self, own: MemoryLayout) -> MemoryLayout {
        own
    }

    fn merged(&self, values: &StepValues, known: &TableFunctions) -> Option<MergedTable> {
        let [input] = &values.inputs[..] else {
            return None;
        };
        let (source, values) = match self {
            LookupTable::BytesToBytes(table) => {
                let (source, before) = compose_bytes(input, known)?;
                (source, TableValues::Bytes(compose(&table[..], &before)))
            }
            LookupTable::BytesToReals(table) => {
                let (source, before) = compose_bytes(input, known)?;
                (source, TableValues::Reals(compose(&table[..], &before)))
            }
            LookupTable::Int16ToBytes(table) => {
                let (source, bytes) = compose_reals(input, table, known)?;
                (source, TableValues::Bytes(bytes))
            }
            LookupTable::Int16ToReals(table) => {
                let (source, reals) = compose_reals(input, table, known)?;
                (source, TableValues::Reals(reals))
            }
        };
        LookupTable::merged(source, values)
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let layout = compiler.current_layout(step.first, step.preference);
        let source = compiler.operand(step.first, layout)?;
        let (kernel, element): (Box<dyn InstructionKernel>, _) = match self {
            LookupTable::BytesToBytes(table) => {
                (Box::new(ByteTable(Table(**table))), BufferElement::Byte)
            }
            LookupTable::BytesToReals(table) => {
                (Box::new(RealsOfBytes(table.clone())), BufferElement::Float)
            }
            LookupTable::Int16ToBytes(table) => {
                (Box::new(BytesOfInt16(table.clone())), BufferElement::Byte)
            }
            LookupTable::Int16ToReals(table) => {
                (Box::new(RealsOfInt16(table.clone())), BufferElement::Float)
            }
        };
        let result = compiler.add(kernel, vec![source], element, step.output);
        compiler.put(step, layout, result);
        Ok(())
    }
}

struct BytesOfInt16(Arc<WideTable<u8>>);

impl InstructionKernel for BytesOfInt16 {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let (reals, output) = (floats_of(inputs, 0)?, output.bytes()?);
        let length = output.len();
        split_rows(output, 1, length, |part, output| {
            self.0.apply(&reals[part], output)
        })?;
        Ok(())
    }
}

struct RealsOfInt16(Arc<WideTable<f32>>);

impl InstructionKernel for RealsOfInt16 {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let (reals, output) = (floats_of(inputs, 0)?, output.floats()?);
        let length = output.len();
        split_rows(output, 1, length, |part, output| {
            self.0.apply(&reals[part], output)
        })?;
        Ok(())
    }
}
