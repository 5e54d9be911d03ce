//! Operands of elementwise operations: their common layout, broadcasting, and 16-bit values as
//! reals or as planes of bytes.

use octet_kernels::int8::{Plane, Table};

use super::compiler::{Compiler, constant_in_layout, reals_in_layout, scale};
use super::conversions::{ByteTable, DequantizeKernel, HalfBytes};
use super::lowered_step::LoweredStep;
use super::moves::Select;
use crate::error::{CompilerBug, ProgramError};
use crate::layout::MemoryLayout;
use crate::program::instruction::{BufferElement, InputSource, InstructionKernel};
use crate::values::{Constant, IrOperand};

/// A side of an elementwise operation, with the number of repetitions of each value.
pub(crate) type Side = (InputSource, usize);

/// A kernel that first processes a side, and the type of its result.
pub(crate) type SideKernel = (Box<dyn InstructionKernel>, BufferElement);

impl<'a> Compiler<'a> {
    /// Chooses the layout of arithmetic of two values.
    pub(crate) fn layout_of_two(
        &self,
        step: &LoweredStep<'a>,
    ) -> Result<MemoryLayout, CompilerBug> {
        let (output, inputs) = (step.output, &step.values.inputs);
        let rank = output.len();
        // A side that is not broadcast decides the layout. The other side and a condition follow.
        let mut values = inputs.iter().filter(|o| !matches!(o, IrOperand::Bytes(_)));
        let full = values.find(|o| self.shape_of(o).is_ok_and(|s| s == output));
        let mut layout = full.map_or(MemoryLayout::Plain, |operand| {
            self.current_layout(operand, step.preference)
        });
        for operand in inputs {
            let shape = self.shape_of(operand)?;
            let ends = shape.iter().filter(|&&size| size != 1).count() <= 1;
            // A value of lower rank has another axis order in channels-last layout, unless it is a
            // single row.
            if operand.value().is_some() && shape.len() != rank && !ends {
                layout = MemoryLayout::Plain;
            }
        }
        Ok(layout)
    }

    /// A side of an elementwise operation in the given layout. An optional instruction processes it
    /// first.
    pub(crate) fn side(
        &mut self,
        operand: &'a IrOperand,
        layout: MemoryLayout,
        output: &[usize],
        through: Option<SideKernel>,
    ) -> Result<Side, ProgramError> {
        let shape = self.shape_of(operand)?;
        let missing = output.len().checked_sub(shape.len());
        let missing = missing.ok_or(CompilerBug::OperandRank)?;
        let mut padded = vec![1; missing];
        padded.extend(shape);
        let mut source = match operand {
            IrOperand::Constant(constant) => constant_in_layout(
                &Constant {
                    shape: padded.clone(),
                    ..constant.clone()
                },
                layout,
            )?,
            IrOperand::Reals(_, values) => reals_in_layout(values, &padded, layout)?,
            _ if missing == 0 => self.operand(operand, layout)?,
            _ => self.operand(operand, MemoryLayout::Plain)?,
        };
        let mut element = match operand {
            IrOperand::Int8(..) | IrOperand::Constant(_) | IrOperand::Bytes(_) => {
                BufferElement::Byte
            }
            IrOperand::Floats(_) | IrOperand::Int16(..) | IrOperand::Reals(..) => {
                BufferElement::Float
            }
        };
        if let Some((kernel, result)) = through {
            source = self.add(kernel, vec![source], result, shape);
            element = result;
        }
        let (sizes, whole) = (layout.sizes(&padded), layout.sizes(output));
        if let Some(each) = repeats(&sizes, &whole) {
            return Ok((source, each));
        }
        let repeat = |(&from, &to): (&usize, &usize)| match from == to {
            true => (0..to).map(Some).collect(),
            false => vec![Some(0); to],
        };
        let kernel = Box::new(Select {
            positions: sizes.iter().zip(&whole).map(repeat).collect(),
            sizes,
            fill: 0,
        });
        Ok((self.add(kernel, vec![source], element, output), 1))
    }

    /// A side as bytes, requantized to the output's scale.
    pub(crate) fn requantized_side(
        &mut self,
        step: &LoweredStep<'a>,
        operand: &'a IrOperand,
        layout: MemoryLayout,
    ) -> Result<Side, ProgramError> {
        let table = operand.quantized()?.table_to(&step.to()?);
        let through = table.map(|table| -> SideKernel {
            (Box::new(ByteTable(Table(*table))), BufferElement::Byte)
        });
        self.side(operand, layout, step.output, through)
    }

    /// A side as reals; bytes are dequantized.
    pub(crate) fn side_of_reals(
        &mut self,
        operand: &'a IrOperand,
        layout: MemoryLayout,
        output: &[usize],
    ) -> Result<Side, ProgramError> {
        let through = operand.quantization().map(|from| -> SideKernel {
            let from = scale(from);
            let kernel = DequantizeKernel { from, image: None };
            (Box::new(kernel), BufferElement::Float)
        });
        self.side(operand, layout, output, through)
    }

    /// A value as reals; bytes are dequantized.
    pub(crate) fn reals(
        &mut self,
        operand: &'a IrOperand,
        layout: MemoryLayout,
    ) -> Result<InputSource, ProgramError> {
        let shape = self.shape_of(operand)?;
        Ok(self.side_of_reals(operand, layout, shape)?.0)
    }

    /// Lowers a step by one instruction from the reals of its first input to reals.
    pub(crate) fn lower_on_reals(
        &mut self,
        step: &LoweredStep<'a>,
        kernel: Box<dyn InstructionKernel>,
        [from, to]: [MemoryLayout; 2],
    ) -> Result<(), ProgramError> {
        let source = self.reals(step.first, from)?;
        let result = self.add(kernel, vec![source], BufferElement::Float, step.output);
        self.finish_reals(step, to, result);
        Ok(())
    }

    /// High and low bytes of a value's integers, in this order.
    pub(crate) fn planes(
        &mut self,
        operand: &'a IrOperand,
        layout: MemoryLayout,
    ) -> Result<[InputSource; 2], CompilerBug> {
        let IrOperand::Int16(name, int16) = operand else {
            return Err(CompilerBug::NotInt16);
        };
        if let Some(planes) = self.planes.get(&(name.as_str(), layout)) {
            return Ok(planes.clone());
        }
        let source = self.fetch(name, layout)?;
        let shape = self.shape(name)?;
        let planes = [Plane::High, Plane::Low].map(|plane| {
            let kernel = Box::new(HalfBytes(int16.grid, plane));
            self.bytes(kernel, vec![source.clone()], shape)
        });
        self.planes.insert((name, layout), planes.clone());
        Ok(planes)
    }
}

/// Number of consecutive repetitions of each value of a side, if the whole side repeats over the
/// output. `None` if only parts repeat. Output axes of size 1 are ignored.
fn repeats(sizes: &[usize], output: &[usize]) -> Option<usize> {
    let axes: Vec<(bool, usize)> = sizes
        .iter()
        .zip(output)
        .filter(|(_, to)| **to != 1)
        .map(|(from, to)| (from == to, *to))
        .collect();
    let first = axes.iter().position(|(full, _)| *full);
    let last = axes.iter().rposition(|(full, _)| *full);
    let (Some(first), Some(last)) = (first, last) else {
        return Some(1);
    };
    let solid = axes[first..=last].iter().all(|(full, _)| *full);
    solid.then(|| axes[last + 1..].iter().map(|(_, size)| size).product())
}

#[cfg(test)]
mod tests {
    use super::repeats;

    #[test]
    fn a_side_repeats_as_a_whole_or_is_materialized() {
        for (sizes, output, each) in [
            (&[2, 3, 4][..], &[2, 3, 4][..], Some(1)),
            (&[1, 1, 4], &[2, 3, 4], Some(1)),
            (&[2, 1, 1], &[2, 3, 4], Some(12)),
            (&[1, 3, 1], &[2, 3, 4], Some(4)),
            (&[2, 1, 4], &[2, 3, 4], None),
            (&[1, 1, 4], &[1, 3, 4], Some(1)),
            (&[1, 1, 1], &[2, 3, 4], Some(1)),
        ] {
            assert_eq!(repeats(sizes, output), each, "{sizes:?} {output:?}");
        }
    }
}
