//! Arithmetic of several values: on bytes, or on reals if a side or the output is not of eight
//! bits.
//!
//! Maximum and minimum also take more than two operands. The nodes are matched in `elementwise.rs`.

use std::sync::Arc;

use octet_kernels::int8::{self as kernels, Arithmetic, Error, Grid, Operand as KernelSide};
use octet_kernels::int8::{Reals, Target};

use super::tables::LookupTable;
use crate::error::{CompilerBug, ProgramError};
use crate::float_reason::FloatReason;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::{Compiler, ratio, target};
use crate::lowering::elementwise_sides::Side;
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::{MergedTable, Operation};
use crate::pattern::attributes::{check_broadcast, slot_out};
use crate::pattern::matcher::Matcher;
use crate::program::instruction::{BufferElement, InputSource, InstructionKernel};
use crate::program::slices::{InputSlice, OutputSlice, bytes_of, floats_of};
use crate::program::split_rows::split_rows;
use crate::quantization::Int8Quantization;
use crate::table_functions::{TableFunctions, common_operand, to_output};
use crate::values::{IrOperand, StepValues};
use octet_graph::Node;

/// Arithmetic of bytes to bytes.
struct BytesArithmetic {
    how: Arithmetic,
}

/// Arithmetic with a real operand or result.
struct RealsArithmetic {
    how: Arithmetic,
}

/// Arithmetic of two quantized values, or of one and a constant. A side may also be the float
/// output of a product.
///
/// The arithmetic uses reals if a side has 16 bits or is float, if the output is not eight-bit
/// (`to` is `None`), and for quotients.
pub(super) fn binary(
    matcher: &Matcher,
    node: &Node,
    to: Option<Int8Quantization>,
) -> Result<(Arc<dyn Operation>, Vec<IrOperand>), FloatReason> {
    let reader = &matcher.reader;
    let how = match node.op_type.as_str() {
        "Add" => Arithmetic::Add,
        "Sub" => Arithmetic::Subtract,
        "Mul" => Arithmetic::Multiply,
        "Div" => Arithmetic::Divide,
        "Max" => Arithmetic::Greatest,
        "Min" => Arithmetic::Least,
        _ => return Err(FloatReason::NotForTwoValues),
    };
    let extreme = matches!(how, Arithmetic::Greatest | Arithmetic::Least);
    if node.input.len() != 2 && !(extreme && node.input.len() > 2) {
        return Err(FloatReason::InputCount(node.input.len()));
    }
    let mut operands = Vec::new();
    let output = reader.shape(slot_out(node)?)?;
    for name in &node.input {
        let shape = reader.shape(name)?;
        check_broadcast(name, &shape, &output)?;
        // Maximum and rounding commute.
        let rounded = to.filter(|_| extreme);
        operands.push(match rounded.and_then(|to| reader.rounded(name, to)) {
            Some(constant) => constant,
            None => match reader.operand_or_reals(name) {
                Err(_) if matcher.is_float_output(name) => IrOperand::Floats(name.clone()),
                operand => operand?,
            },
        });
    }
    if operands.iter().all(|operand| operand.value().is_none()) {
        return Err(FloatReason::ConstantsOnly);
    }
    let quantized = |operand: &IrOperand| operand.quantization().is_some();
    let bytes = to.is_some() && operands.iter().all(quantized);
    let operation: Arc<dyn Operation> = match bytes && !matches!(how, Arithmetic::Divide) {
        true => Arc::new(BytesArithmetic { how }),
        false => Arc::new(RealsArithmetic { how }),
    };
    Ok((operation, operands))
}

/// Arithmetic of functions of one value is a table of it.
fn merged(how: Arithmetic, values: &StepValues, known: &TableFunctions) -> Option<MergedTable> {
    let [left, right] = &values.inputs[..] else {
        return None;
    };
    let (source, pairs) = common_operand(left, right, known)?;
    let reals = pairs.iter().map(|&(a, b)| how.of(a, b));
    LookupTable::merged(source, to_output(values, reals)?)
}

impl Operation for BytesArithmetic {
    fn name(&self) -> &'static str {
        "arithmetic of two values"
    }

    fn preference(&self, own: MemoryLayout) -> MemoryLayout {
        own
    }

    fn merged(&self, values: &StepValues, known: &TableFunctions) -> Option<MergedTable> {
        merged(self.how, values, known)
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let layout = compiler.layout_of_two(step)?;
        match self.how {
            Arithmetic::Greatest => extreme(compiler, step, layout, false),
            Arithmetic::Least => extreme(compiler, step, layout, true),
            how => sum_or_product(compiler, step, layout, how),
        }
    }
}

fn extreme<'a>(
    compiler: &mut Compiler<'a>,
    step: &LoweredStep<'a>,
    layout: MemoryLayout,
    least: bool,
) -> Result<(), ProgramError> {
    let mut sides = Vec::new();
    for operand in &step.values.inputs {
        sides.push(compiler.requantized_side(step, operand, layout)?);
    }
    let result = sides.into_iter().reduce(|one, other| {
        let result = min_max(compiler, [one, other], least, step.output);
        (result, 1)
    });
    let (result, _) = result.ok_or(CompilerBug::MissingOperand)?;
    compiler.finish_clamped(step, layout, result);
    Ok(())
}

/// Maximum or minimum of bytes of equal parameters.
pub(super) fn min_max(
    compiler: &mut Compiler,
    [one, other]: [Side; 2],
    least: bool,
    output: &[usize],
) -> InputSource {
    let side = |each| BroadcastSide {
        each,
        zero_point: 0,
    };
    let sides = [side(one.1), side(other.1)];
    let kernel = Box::new(MinMax { sides, least });
    compiler.bytes(kernel, vec![one.0, other.0], output)
}

fn sum_or_product<'a>(
    compiler: &mut Compiler<'a>,
    step: &LoweredStep<'a>,
    layout: MemoryLayout,
    how: Arithmetic,
) -> Result<(), ProgramError> {
    let [left, right] = &step.values.inputs[..] else {
        return Err(CompilerBug::MissingOperand.into());
    };
    let mut sources = Vec::new();
    let mut sides = Vec::new();
    for operand in [left, right] {
        let (source, each) = compiler.side(operand, layout, step.output, None)?;
        let zero_point = operand.quantized()?.zero_point;
        sources.push(source);
        sides.push(BroadcastSide { each, zero_point });
    }
    let scales = [left.scale(), right.scale()];
    let quantization = step.to()?;
    let sides = [sides[0], sides[1]];
    let to = target(quantization, step.values.bounds);
    let [first, second] = scales.map(|scale| ratio(&[scale], quantization.scale));
    let kernel: Box<dyn InstructionKernel> = match how {
        Arithmetic::Add => Box::new(SumOfBytes {
            sides,
            factors: [first, second],
            to,
        }),
        Arithmetic::Subtract => Box::new(SumOfBytes {
            sides,
            factors: [first, -second],
            to,
        }),
        _ => Box::new(ProductOfBytes {
            sides,
            factor: ratio(&scales, quantization.scale),
            to,
        }),
    };
    let result = compiler.bytes(kernel, sources, step.output);
    compiler.put(step, layout, result);
    Ok(())
}

impl Operation for RealsArithmetic {
    fn name(&self) -> &'static str {
        "arithmetic on 16 bits"
    }

    fn preference(&self, own: MemoryLayout) -> MemoryLayout {
        own
    }

    fn merged(&self, values: &StepValues, known: &TableFunctions) -> Option<MergedTable> {
        merged(self.how, values, known)
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let layout = compiler.layout_of_two(step)?;
        let mut sides = Vec::new();
        for operand in &step.values.inputs {
            sides.push(compiler.side_of_reals(operand, layout, step.output)?);
        }
        of_sides(compiler, step, self.how, layout, sides)
    }
}

/// Lowers arithmetic of real sides, with conversion to the output type.
pub(super) fn of_sides<'a>(
    compiler: &mut Compiler<'a>,
    step: &LoweredStep<'a>,
    how: Arithmetic,
    layout: MemoryLayout,
    sides: Vec<Side>,
) -> Result<(), ProgramError> {
    let grid = step.values.int16.map(|int16| int16.grid);
    let mut left = sides.len();
    let result = sides.into_iter().reduce(|one, other| {
        left -= 1;
        let to = grid.filter(|_| left == 1);
        (of_two(compiler, how, [one, other], to, step.output), 1)
    });
    let (result, _) = result.ok_or(CompilerBug::MissingOperand)?;
    match grid {
        Some(_) => compiler.put(step, layout, result),
        None => compiler.finish_reals(step, layout, result),
    }
    Ok(())
}

/// Arithmetic of two real sides.
pub(super) fn of_two(
    compiler: &mut Compiler,
    how: Arithmetic,
    [one, other]: [Side; 2],
    to: Option<Grid>,
    output: &[usize],
) -> InputSource {
    let each = [one.1, other.1];
    let kernel = Box::new(ArithmeticOfReals { how, each, to });
    let sources = vec![one.0, other.0];
    compiler.add(kernel, sources, BufferElement::Float, output)
}

/// Broadcast and zero point of one side.
#[derive(Clone, Copy)]
struct BroadcastSide {
    each: usize,
    zero_point: u8,
}

struct SumOfBytes {
    sides: [BroadcastSide; 2],
    factors: [f32; 2],
    to: Target,
}

impl InstructionKernel for SumOfBytes {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let [a, b] = both(inputs, &self.sides)?;
        let [first, second] = self.factors;
        pieces(output.bytes()?, [&a, &b], |[a, b], output| {
            kernels::add((a, first), (b, second), self.to, output)
        })?;
        Ok(())
    }
}

struct ProductOfBytes {
    sides: [BroadcastSide; 2],
    factor: f32,
    to: Target,
}

impl InstructionKernel for ProductOfBytes {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let [a, b] = both(inputs, &self.sides)?;
        pieces(output.bytes()?, [&a, &b], |[a, b], output| {
            kernels::multiply(a, b, self.factor, self.to, output)
        })?;
        Ok(())
    }
}

struct MinMax {
    sides: [BroadcastSide; 2],
    least: bool,
}

impl InstructionKernel for MinMax {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let [a, b] = both(inputs, &self.sides)?;
        pieces(output.bytes()?, [&a, &b], |sides, output| {
            kernels::extreme(sides, self.least, output)
        })?;
        Ok(())
    }
}

/// Arithmetic of reals, with the number of repetitions of each side's values.
struct ArithmeticOfReals {
    how: Arithmetic,
    each: [usize; 2],
    to: Option<Grid>,
}

impl InstructionKernel for ArithmeticOfReals {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let side = |at: usize| -> Result<Reals, CompilerBug> {
            Ok(Reals {
                values: floats_of(inputs, at)?,
                each: self.each[at],
            })
        };
        let (sides, output) = ([side(0)?, side(1)?], output.floats()?);
        let length = output.len();
        split_rows(output, 1, length, |part, output| {
            kernels::arithmetic(self.how, sides, part.start, self.to, output)
        })?;
        Ok(())
    }
}

fn both<'a>(
    inputs: &'a [InputSlice],
    sides: &[BroadcastSide; 2],
) -> Result<[KernelSide<'a>; 2], CompilerBug> {
    let side = |at: usize| -> Result<KernelSide<'a>, CompilerBug> {
        Ok(KernelSide {
            values: bytes_of(inputs, at)?,
            each: sides[at].each,
            zero_point: sides[at].zero_point,
        })
    };
    Ok([side(0)?, side(1)?])
}

/// Splits the output into pieces that hold whole repetitions of both sides.
fn pieces(
    output: &mut [u8],
    sides: [&KernelSide; 2],
    part: impl Fn([&KernelSide; 2], &mut [u8]) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let length = output.len();
    // A side as long as the output is split with it. A repeated side must repeat completely in each
    // piece.
    let whole = |side: &KernelSide| side.each == 1 && side.values.len() == length;
    let unit = sides
        .iter()
        .filter(|side| !whole(side))
        .map(|side| side.values.len() * side.each)
        .max()
        .unwrap_or(1);
    let fits = sides
        .iter()
        .filter(|side| !whole(side))
        .all(|side| unit.is_multiple_of((side.values.len() * side.each).max(1)));
    if unit == 0 || !fits {
        return part(sides, output);
    }
    split_rows(output, unit, length, |range, output| {
        let [a, b] = sides.map(|side| KernelSide {
            values: match whole(side) {
                true => &side.values[range.start * unit..range.end * unit],
                false => side.values,
            },
            ..*side
        });
        part([&a, &b], output)
    })
}
