//! 16-bit tensors in a region: reals, and products of high and low bytes.

use std::sync::Arc;

use octet_kernels::int8::{self as kernels, Arithmetic, Error, Grid, Image, Plane, Reals};

use super::compile::{Compiler, MISSING, scale};
use super::instruction::{Element, Source, Work};
use super::layout::{Layout, coincide};
use super::slices::{
    Slice, bytes_of, extreme_over, floats_of, images, selected, sums_of, turned_to_last,
};
use super::steps::plane_of;
use super::threads::share;
use crate::engine::integer::pattern::{Operand, Operation, Step};

impl<'a> Compiler<'a> {
    /// High and low bytes of a value's integers, in this order.
    pub(super) fn planes(
        &mut self,
        operand: &'a Operand,
        layout: Layout,
    ) -> Result<[Source; 2], Error> {
        let Operand::Wide(name, wide) = operand else {
            return Err(MISSING);
        };
        if let Some(planes) = self.planes.get(&(name.as_str(), layout)) {
            return Ok(planes.clone());
        }
        let source = self.fetch(name, layout)?;
        let shape = self.shape(name)?;
        let planes = [Plane::High, Plane::Low]
            .map(|plane| self.bytes(Work::Plane(wide.grid, plane), vec![source.clone()], shape));
        self.planes.insert((name, layout), planes.clone());
        Ok(planes)
    }

    /// Converts reals to the output type of a step.
    pub(super) fn ended(&mut self, step: &'a Step, layout: Layout, reals: Source, shape: &[usize]) {
        let inputs = vec![reals];
        match (step.quantization, step.wide) {
            (Some(to), _) => {
                let made = self.bytes(Work::Quantize(Some(scale(to))), inputs, shape);
                self.bounded(step, layout, made, shape);
            }
            (None, Some(wide)) => {
                let made = self.add(Work::Snap(wide.grid), inputs, Element::Float, shape);
                self.put(step, layout, made);
            }
            (None, None) => self.put(step, layout, inputs[0].clone()),
        }
    }

    /// A value as reals; bytes are dequantized.
    pub(super) fn reals(&mut self, operand: &'a Operand, layout: Layout) -> Result<Source, Error> {
        let shape = self.shape_of(operand)?;
        Ok(self.side_of_reals(operand, layout, shape)?.0)
    }

    fn side_of_reals(
        &mut self,
        operand: &'a Operand,
        layout: Layout,
        output: &[usize],
    ) -> Result<(Source, usize), Error> {
        let from = operand.quantization();
        let through = from.map(|from| (Work::Dequantize(scale(from)), Element::Float));
        self.side(operand, layout, output, through)
    }

    /// Lowers arithmetic with a real operand or result.
    pub(super) fn arithmetic(
        &mut self,
        step: &'a Step,
        how: Arithmetic,
        output: &'a [usize],
        wish: Layout,
    ) -> Result<(), Error> {
        let layout = self.layout_of_two(step, output, wish)?;
        let mut sides = Vec::new();
        for operand in &step.inputs {
            sides.push(self.side_of_reals(operand, layout, output)?);
        }
        self.computed(step, how, layout, sides, output)
    }

    /// Lowers arithmetic of real sides, with conversion to the output type.
    fn computed(
        &mut self,
        step: &'a Step,
        how: Arithmetic,
        layout: Layout,
        sides: Vec<(Source, usize)>,
        output: &[usize],
    ) -> Result<(), Error> {
        let grid = step.wide.map(|wide| wide.grid);
        let mut left = sides.len();
        let made = sides.into_iter().reduce(|one, other| {
            left -= 1;
            let to = grid.filter(|_| left == 1);
            (self.both(how, [one, other], to, output), 1)
        });
        let (made, _) = made.ok_or(MISSING)?;
        match grid {
            Some(_) => self.put(step, layout, made),
            None => self.ended(step, layout, made, output),
        }
        Ok(())
    }

    fn both(
        &mut self,
        how: Arithmetic,
        [one, other]: [(Source, usize); 2],
        to: Option<Grid>,
        output: &[usize],
    ) -> Source {
        let each = [one.1, other.1];
        let work = Work::Arithmetic { how, each, to };
        self.add(work, vec![one.0, other.0], Element::Float, output)
    }

    /// Lowers a Where of finite reals: each value times 1 or 0, then the sum.
    pub(super) fn choice_of_reals(
        &mut self,
        step: &'a Step,
        output: &'a [usize],
        wish: Layout,
    ) -> Result<(), Error> {
        let mask = |at: usize| {
            let mut mask = Box::new([1.0 - at as f32; 256]);
            mask[0] = at as f32;
            (Work::RealTable(mask), Element::Float)
        };
        let (layout, parts) = self.masked(
            step,
            output,
            wish,
            mask,
            |compiler, mask, operand, layout| {
                let value = compiler.side_of_reals(operand, layout, output)?;
                Ok(compiler.both(Arithmetic::Multiply, [mask, value], None, output))
            },
        )?;
        self.computed(step, Arithmetic::Add, layout, parts, output)
    }

    /// Lowers data movement, reductions and normalizations with a real input or output.
    pub(super) fn on_reals(
        &mut self,
        step: &'a Step,
        shape: &'a [usize],
        output: &'a [usize],
        wish: Layout,
    ) -> Result<(), Error> {
        let first = step.inputs.first().ok_or(MISSING)?;
        let (layout, work) = match &step.operation {
            Operation::Snap => {
                let layout = self.lies(first, wish);
                let source = self.operand(first, layout)?;
                self.ended(step, layout, source, output);
                return Ok(());
            }
            // The reals do not change, only the name.
            Operation::Unsnap => {
                let layout = self.lies(first, wish);
                let source = self.operand(first, layout)?;
                self.put(step, layout, source);
                return Ok(());
            }
            Operation::Reshape => {
                let source = self.operand(first, Layout::Plain)?;
                self.ended(step, Layout::Plain, source, output);
                return Ok(());
            }
            Operation::Transpose(order) => {
                let (sizes, order) = (shape.to_vec(), order.clone());
                (Layout::Plain, Work::Permute { sizes, order })
            }
            Operation::Select { positions, .. } => {
                // A Gather may change the rank.
                let layout = match shape.len() == output.len() {
                    true => self.lies(first, wish),
                    false => Layout::Plain,
                };
                (layout, super::steps::select(shape, positions, 0, layout))
            }
            Operation::MaxPool(window) => {
                let planes = [plane_of(shape), plane_of(output)];
                let work = Work::MaxPoolOfReals(window.clone(), planes);
                (Layout::ChannelsLast, work)
            }
            Operation::Mean { axes, sum } => {
                let (layout, [_, middle, inner]) = super::steps::around(shape, axes);
                (layout, Work::MeanOfReals([middle, inner], *sum))
            }
            Operation::Extreme { axes, least } => {
                let (layout, [_, middle, inner]) = super::steps::around(shape, axes);
                (layout, Work::ExtremeOfReals([middle, inner], *least))
            }
            Operation::Normalize(norm) => (Layout::Plain, Work::NormalizeReals(norm.clone())),
            _ => return Err(MISSING),
        };
        let source = self.reals(first, layout)?;
        let made = self.add(work, vec![source], Element::Float, output);
        let layout = match (&step.operation, coincide(output)) {
            (Operation::Mean { .. } | Operation::Extreme { .. }, _) => Layout::Plain,
            _ => layout,
        };
        self.ended(step, layout, made, output);
        Ok(())
    }
}

/// Reals of a constant in a layout.
pub(super) fn turned(values: &[f32], shape: &[usize], layout: Layout) -> Result<Source, Error> {
    let mut turned = vec![0.0; values.len()];
    kernels::permute(values, shape, &layout.order(shape.len()), &mut turned)?;
    Ok(constant(&turned))
}

/// A source for constant reals.
pub(super) fn constant(values: &[f32]) -> Source {
    Source::Reals(Arc::from(values))
}

/// Runs an instruction from reals to bytes.
pub(super) fn to_bytes(work: &Work, inputs: &[Slice], output: &mut [u8]) -> Result<(), Error> {
    let length = output.len();
    match work {
        Work::Plane(grid, plane) => {
            let reals = floats_of(inputs, 0)?;
            share(output, 1, length, |part, output| {
                kernels::plane(&reals[part], *grid, *plane, output)
            })
        }
        Work::WideToBytes(table) => {
            let reals = floats_of(inputs, 0)?;
            share(output, 1, length, |part, output| {
                table.apply(&reals[part], output)
            })
        }
        _ => Err(Error::Zero {
            what: "the integer form of what makes floats",
        }),
    }
}

/// Runs an instruction with real outputs.
pub(super) fn to_floats(work: &Work, inputs: &[Slice], output: &mut [f32]) -> Result<(), Error> {
    let length = output.len();
    match work {
        Work::FloatsToLast(size) => {
            let floats = floats_of(inputs, 0)?;
            turned_to_last(floats, output, *size, |from, apart, size, to| {
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
            share(output, width, length, |rows, output| {
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
        Work::JoinSums(factors) => {
            let sums = (0..factors.len()).map(|at| sums_of(inputs, at));
            let sums = sums.collect::<Result<Vec<_>, _>>()?;
            share(output, 1, length * factors.len(), |part, output| {
                let parts = sums.iter().map(|sums| &sums[part.clone()]);
                let parts: Vec<_> = parts.zip(factors.iter().copied()).collect();
                kernels::join_sums(&parts, output)
            })
        }
        Work::SoftmaxOfReals(row) => {
            let reals = floats_of(inputs, 0)?;
            share(output, *row, length * 8, |part, output| {
                kernels::softmax_reals(&reals[part.start * row..part.end * row], *row, output)
            })
        }
        Work::Snap(grid) => {
            let reals = floats_of(inputs, 0)?;
            share(output, 1, length, |part, output| {
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
            share(output, 1, length, |part, output| {
                kernels::arithmetic(*how, sides, part.start, *to, output)
            })
        }
        Work::RealTable(table) => {
            let bytes = bytes_of(inputs, 0)?;
            share(output, 1, length, |part, output| {
                for (output, &byte) in output.iter_mut().zip(&bytes[part]) {
                    *output = table[usize::from(byte)];
                }
                Ok(())
            })
        }
        Work::WideTable(table) => {
            let reals = floats_of(inputs, 0)?;
            share(output, 1, length, |part, output| {
                table.apply(&reals[part], output)
            })
        }
        Work::MaxPoolOfReals(window, [from, to]) => {
            for (values, output) in images(floats_of(inputs, 0)?, output, from.count(), to.count())
            {
                let cost = to.count() * window.kernel[0] * window.kernel[1];
                share(output, to.width * to.channels, cost, |rows, output| {
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
            share(output, *inner, reals.len(), |part, output| {
                let block = middle * inner;
                let reals = &reals[part.start * block..part.end * block];
                kernels::mean(reals, [*middle, *inner], output)?;
                if *sum {
                    output.iter_mut().for_each(|mean| *mean *= *middle as f32);
                }
                Ok(())
            })
        }
        Work::ExtremeOfReals(sizes, least) => {
            extreme_over(floats_of(inputs, 0)?, *sizes, *least, output)
        }
        Work::NormalizeReals(norm) => {
            let (reals, row) = (floats_of(inputs, 0)?, norm.length);
            share(output, row, length * 4, |part, output| {
                let reals = &reals[part.start * row..part.end * row];
                let affine = norm.affine(part.start);
                kernels::layer_norm_reals(reals, row, affine, norm.epsilon, output)
            })
        }
        _ => Err(Error::Zero {
            what: "the float form of an operation on integers",
        }),
    }
}
