//! 16-bit tensors in a region: reals, and products of high and low bytes.

use std::sync::Arc;

use octet_kernels::int8::{self as kernels, Arithmetic, Error, Grid, Image, Plane, Reals};

use super::compiler::{Compiler, MISSING, scale};
use super::instruction::{BufferElement, InputSource, Work};
use super::layout::{MemoryLayout, coincide};
use super::lower::plane_of;
use super::slices::{
    InputSlice, bytes_of, extreme_over, floats_of, images, selected, sums_of, to_nhwc,
};
use super::split_rows::split_rows;
use crate::pattern::{Operand, Operation, Step};

impl<'a> Compiler<'a> {
    /// High and low bytes of a value's integers, in this order.
    pub(super) fn planes(
        &mut self,
        operand: &'a Operand,
        layout: MemoryLayout,
    ) -> Result<[InputSource; 2], Error> {
        let Operand::Int16(name, int16) = operand else {
            return Err(MISSING);
        };
        if let Some(planes) = self.planes.get(&(name.as_str(), layout)) {
            return Ok(planes.clone());
        }
        let source = self.fetch(name, layout)?;
        let shape = self.shape(name)?;
        let planes = [Plane::High, Plane::Low]
            .map(|plane| self.bytes(Work::Plane(int16.grid, plane), vec![source.clone()], shape));
        self.planes.insert((name, layout), planes.clone());
        Ok(planes)
    }

    /// Converts reals to the output type of a step.
    pub(super) fn finish_reals(
        &mut self,
        step: &'a Step,
        layout: MemoryLayout,
        reals: InputSource,
        shape: &[usize],
    ) {
        let inputs = vec![reals];
        match (step.quantization, step.int16) {
            (Some(to), _) => {
                let result = self.bytes(Work::Quantize(Some(scale(to))), inputs, shape);
                self.finish_clamped(step, layout, result, shape);
            }
            (None, Some(int16)) => {
                let result = self.add(
                    Work::RoundToGrid(int16.grid),
                    inputs,
                    BufferElement::Float,
                    shape,
                );
                self.put(step, layout, result);
            }
            (None, None) => self.put(step, layout, inputs[0].clone()),
        }
    }

    /// A value as reals; bytes are dequantized.
    pub(super) fn reals(
        &mut self,
        operand: &'a Operand,
        layout: MemoryLayout,
    ) -> Result<InputSource, Error> {
        let shape = self.shape_of(operand)?;
        Ok(self.side_of_reals(operand, layout, shape)?.0)
    }

    fn side_of_reals(
        &mut self,
        operand: &'a Operand,
        layout: MemoryLayout,
        output: &[usize],
    ) -> Result<(InputSource, usize), Error> {
        let from = operand.quantization();
        let through = from.map(|from| (Work::Dequantize(scale(from)), BufferElement::Float));
        self.side(operand, layout, output, through)
    }

    /// Lowers arithmetic with a real operand or result.
    pub(super) fn arithmetic(
        &mut self,
        step: &'a Step,
        how: Arithmetic,
        output: &'a [usize],
        preference: MemoryLayout,
    ) -> Result<(), Error> {
        let layout = self.layout_of_two(step, output, preference)?;
        let mut sides = Vec::new();
        for operand in &step.inputs {
            sides.push(self.side_of_reals(operand, layout, output)?);
        }
        self.arithmetic_of_sides(step, how, layout, sides, output)
    }

    /// Lowers arithmetic of real sides, with conversion to the output type.
    fn arithmetic_of_sides(
        &mut self,
        step: &'a Step,
        how: Arithmetic,
        layout: MemoryLayout,
        sides: Vec<(InputSource, usize)>,
        output: &[usize],
    ) -> Result<(), Error> {
        let grid = step.int16.map(|int16| int16.grid);
        let mut left = sides.len();
        let result = sides.into_iter().reduce(|one, other| {
            left -= 1;
            let to = grid.filter(|_| left == 1);
            (self.both(how, [one, other], to, output), 1)
        });
        let (result, _) = result.ok_or(MISSING)?;
        match grid {
            Some(_) => self.put(step, layout, result),
            None => self.finish_reals(step, layout, result, output),
        }
        Ok(())
    }

    fn both(
        &mut self,
        how: Arithmetic,
        [one, other]: [(InputSource, usize); 2],
        to: Option<Grid>,
        output: &[usize],
    ) -> InputSource {
        let each = [one.1, other.1];
        let work = Work::Arithmetic { how, each, to };
        self.add(work, vec![one.0, other.0], BufferElement::Float, output)
    }

    /// Lowers a Where of finite reals: each value times 1 or 0, then the sum.
    pub(super) fn lower_where_of_reals(
        &mut self,
        step: &'a Step,
        output: &'a [usize],
        preference: MemoryLayout,
    ) -> Result<(), Error> {
        let mask = |at: usize| {
            let mut mask = Box::new([1.0 - at as f32; 256]);
            mask[0] = at as f32;
            (Work::RealTable(mask), BufferElement::Float)
        };
        let (layout, parts) = self.masked(
            step,
            output,
            preference,
            mask,
            |compiler, mask, operand, layout| {
                let value = compiler.side_of_reals(operand, layout, output)?;
                Ok(compiler.both(Arithmetic::Multiply, [mask, value], None, output))
            },
        )?;
        self.arithmetic_of_sides(step, Arithmetic::Add, layout, parts, output)
    }

    /// Lowers data movement, reductions and normalizations with a real input or output.
    pub(super) fn on_reals(
        &mut self,
        step: &'a Step,
        shape: &'a [usize],
        output: &'a [usize],
        preference: MemoryLayout,
    ) -> Result<(), Error> {
        let first = step.inputs.first().ok_or(MISSING)?;
        let (layout, work) = match &step.operation {
            Operation::RoundToInt16 => {
                let layout = self.current_layout(first, preference);
                let source = self.operand(first, layout)?;
                self.finish_reals(step, layout, source, output);
                return Ok(());
            }
            // The reals do not change, only the name.
            Operation::Int16ToFloats => {
                let layout = self.current_layout(first, preference);
                let source = self.operand(first, layout)?;
                self.put(step, layout, source);
                return Ok(());
            }
            Operation::Reshape => {
                let source = self.operand(first, MemoryLayout::Plain)?;
                self.finish_reals(step, MemoryLayout::Plain, source, output);
                return Ok(());
            }
            Operation::Transpose(order) => {
                let (sizes, order) = (shape.to_vec(), order.clone());
                (MemoryLayout::Plain, Work::Permute { sizes, order })
            }
            Operation::Select { positions, .. } => {
                // A Gather may change the rank.
                let layout = match shape.len() == output.len() {
                    true => self.current_layout(first, preference),
                    false => MemoryLayout::Plain,
                };
                (layout, super::lower::select(shape, positions, 0, layout))
            }
            Operation::MaxPool(window) => {
                let planes = [plane_of(shape), plane_of(output)];
                let work = Work::MaxPoolOfReals(window.clone(), planes);
                (MemoryLayout::ChannelsLast, work)
            }
            Operation::Mean { axes, sum } => {
                let (layout, [_, middle, inner]) = super::lower::mean_layout(shape, axes);
                (layout, Work::MeanOfReals([middle, inner], *sum))
            }
            Operation::MinMax { axes, least } => {
                let (layout, [_, middle, inner]) = super::lower::mean_layout(shape, axes);
                (layout, Work::ReduceMinMaxOfReals([middle, inner], *least))
            }
            Operation::Normalize(norm) => (MemoryLayout::Plain, Work::NormalizeReals(norm.clone())),
            _ => return Err(MISSING),
        };
        let source = self.reals(first, layout)?;
        let result = self.add(work, vec![source], BufferElement::Float, output);
        let layout = match (&step.operation, coincide(output)) {
            (Operation::Mean { .. } | Operation::MinMax { .. }, _) => MemoryLayout::Plain,
            _ => layout,
        };
        self.finish_reals(step, layout, result, output);
        Ok(())
    }
}

/// Reals of a constant in a layout.
pub(super) fn reals_in_layout(
    values: &[f32],
    shape: &[usize],
    layout: MemoryLayout,
) -> Result<InputSource, Error> {
    let mut transposed = vec![0.0; values.len()];
    kernels::permute(values, shape, &layout.order(shape.len()), &mut transposed)?;
    Ok(constant(&transposed))
}

/// A source for constant reals.
pub(super) fn constant(values: &[f32]) -> InputSource {
    InputSource::Reals(Arc::from(values))
}

/// Runs an instruction from reals to bytes.
pub(super) fn to_bytes(work: &Work, inputs: &[InputSlice], output: &mut [u8]) -> Result<(), Error> {
    let length = output.len();
    match work {
        Work::Plane(grid, plane) => {
            let reals = floats_of(inputs, 0)?;
            split_rows(output, 1, length, |part, output| {
                kernels::plane(&reals[part], *grid, *plane, output)
            })
        }
        Work::WideToBytes(table) => {
            let reals = floats_of(inputs, 0)?;
            split_rows(output, 1, length, |part, output| {
                table.apply(&reals[part], output)
            })
        }
        _ => Err(Error::Zero {
            what: "an instruction with byte output",
        }),
    }
}

/// Runs an instruction with real outputs.
pub(super) fn to_floats(
    work: &Work,
    inputs: &[InputSlice],
    output: &mut [f32],
) -> Result<(), Error> {
    let length = output.len();
    match work {
        Work::FloatsToNhwc(size) => {
            let floats = floats_of(inputs, 0)?;
            to_nhwc(floats, output, *size, |from, apart, size, to| {
                kernels::to_channels_last(from, apart, size, to, size[0])
            })
        }
        Work::Permute { sizes, order } => {
            kernels::permute(floats_of(inputs, 0)?, sizes, order, output)
        }
        Work::Select {
            sizes, positions, ..
        } => selected(floats_of(inputs, 0)?, sizes, positions, 0.0, output),
        Work::Concat { parts, .. } => {
            let width: usize = parts.iter().map(|(width, _)| width).sum();
            split_rows(output, width, length, |rows, output| {
                for (row, mut output) in rows.zip(output.chunks_exact_mut(width.max(1))) {
                    for (at, &(part, _)) in parts.iter().enumerate() {
                        let from = floats_of(inputs, at)?.get(row * part..);
                        let (to, rest) = output.split_at_mut(part);
                        for (to, &from) in to.iter_mut().zip(from.unwrap_or_default()) {
                            *to = from;
                        }
                        output = rest;
                    }
                }
                Ok(())
            })
        }
        Work::CombineAccumulators(factors) => {
            let sums = (0..factors.len()).map(|at| sums_of(inputs, at));
            let sums = sums.collect::<Result<Vec<_>, _>>()?;
            split_rows(output, 1, length * factors.len(), |part, output| {
                let parts = sums.iter().map(|sums| &sums[part.clone()]);
                let parts: Vec<_> = parts.zip(factors.iter().copied()).collect();
                kernels::join_sums(&parts, output)
            })
        }
        Work::SoftmaxOfReals(row) => {
            let reals = floats_of(inputs, 0)?;
            split_rows(output, *row, length * 8, |part, output| {
                kernels::softmax_reals(&reals[part.start * row..part.end * row], *row, output)
            })
        }
        Work::RoundToGrid(grid) => {
            let reals = floats_of(inputs, 0)?;
            split_rows(output, 1, length, |part, output| {
                kernels::snap(&reals[part], *grid, output)
            })
        }
        Work::Arithmetic { how, each, to } => {
            let sides = [0, 1].map(|at| {
                floats_of(inputs, at).map(|values| Reals {
                    values,
                    each: each[at],
                })
            });
            let [a, b] = sides;
            let sides = [a?, b?];
            split_rows(output, 1, length, |part, output| {
                kernels::arithmetic(*how, sides, part.start, *to, output)
            })
        }
        Work::RealTable(table) => {
            let bytes = bytes_of(inputs, 0)?;
            split_rows(output, 1, length, |part, output| {
                for (output, &byte) in output.iter_mut().zip(&bytes[part]) {
                    *output = table[usize::from(byte)];
                }
                Ok(())
            })
        }
        Work::WideTable(table) => {
            let reals = floats_of(inputs, 0)?;
            split_rows(output, 1, length, |part, output| {
                table.apply(&reals[part], output)
            })
        }
        Work::MaxPoolOfReals(window, [from, to]) => {
            for (values, output) in images(floats_of(inputs, 0)?, output, from.count(), to.count())
            {
                let cost = to.count() * window.kernel[0] * window.kernel[1];
                split_rows(output, to.width * to.channels, cost, |rows, output| {
                    let image = Image {
                        values,
                        height: from.height,
                        width: from.width,
                        channels: from.channels,
                        stride: from.channels,
                        zero_point: 0,
                    };
                    let size = [to.height, to.width];
                    kernels::max_pool_reals(&image, window, size, rows, output, to.channels)
                })?;
            }
            Ok(())
        }
        Work::MeanOfReals([middle, inner], sum) => {
            let reals = floats_of(inputs, 0)?;
            split_rows(output, *inner, reals.len(), |part, output| {
                let block = middle * inner;
                let reals = &reals[part.start * block..part.end * block];
                kernels::mean(reals, [*middle, *inner], output)?;
                if *sum {
                    output.iter_mut().for_each(|mean| *mean *= *middle as f32);
                }
                Ok(())
            })
        }
        Work::ReduceMinMaxOfReals(sizes, least) => {
            extreme_over(floats_of(inputs, 0)?, *sizes, *least, output)
        }
        Work::NormalizeReals(norm) => {
            let (reals, row) = (floats_of(inputs, 0)?, norm.length);
            split_rows(output, row, length * 4, |part, output| {
                let reals = &reals[part.start * row..part.end * row];
                let affine = norm.affine(part.start);
                kernels::layer_norm_reals(reals, row, affine, norm.epsilon, output)
            })
        }
        _ => Err(Error::Zero {
            what: "an instruction with float output",
        }),
    }
}
