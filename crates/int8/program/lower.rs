//! Lowering of one step: its layout and its instructions.

use octet_kernels::int8::{Average, Error, Scale, Table};

use super::compiler::{Compiler, MISSING, ratio, scale, target};
use super::instruction::{BufferElement, ImageSize, InputSource, Work};
use super::layout::{MemoryLayout, coincide, is_still};
use crate::pattern::{Operand, Operation, Step, plane};

impl<'a> Compiler<'a> {
    pub(super) fn lower(&mut self, step: &'a Step) -> Result<(), Error> {
        let first = step.inputs.first().ok_or(MISSING)?;
        let shape = self.shape_of(first)?;
        let output = self.shape(&step.output)?;
        let preference = self
            .preferences
            .get(step.output.as_str())
            .copied()
            .unwrap_or(MemoryLayout::Plain);
        let image = output.len() >= 3 && !coincide(output);
        let on_reals = step.int16.is_some()
            || step
                .inputs
                .iter()
                .any(|operand| matches!(operand, Operand::Int16(..)));
        match &step.operation {
            Operation::Quantize => {
                let current_layout = self.current_layout(first, MemoryLayout::Plain);
                let source = self.operand(first, current_layout)?;
                let to = scale(step.quantization.ok_or(MISSING)?);
                self.quantize(step, Some(to), (current_layout, vec![source]), preference)?;
            }
            Operation::DynamicQuantize => self.dynamic_quantize(step, preference)?,
            Operation::IntegerProduct(sums) => self.integer_product(step, sums, output)?,
            Operation::Dequantize => {
                let layout = self.current_layout(first, MemoryLayout::Plain);
                let source = self.operand(first, layout)?;
                let from = scale(first.quantization().ok_or(MISSING)?);
                let work = match layout == MemoryLayout::ChannelsLast && image {
                    true => Work::DequantizeToNchw(from, [shape[1], shape[2..].iter().product()]),
                    false => Work::Dequantize(from),
                };
                let result = self.add(work, vec![source], BufferElement::Float, output);
                self.put(step, MemoryLayout::Plain, result);
            }
            Operation::Convolution { .. } => self.convolution(step, shape, output)?,
            Operation::Product { .. } => self.product(step, shape, output)?,
            Operation::BatchedProduct { .. } => self.batched_product(step, output)?,
            Operation::Binary(binary) => self.binary(step, *binary, output, preference)?,
            Operation::Reals(how) => self.arithmetic(step, *how, output, preference)?,
            Operation::Where if on_reals => self.lower_where_of_reals(step, output, preference)?,
            Operation::Where => self.lower_where(step, output, preference)?,
            Operation::RealTable(table) => {
                let work = Work::RealTable(table.clone());
                self.each(step, (work, BufferElement::Float), output, preference)?;
            }
            Operation::WideTable(table) => {
                let work = Work::WideTable(table.clone());
                self.each(step, (work, BufferElement::Float), output, preference)?;
            }
            Operation::WideToBytes(table) => {
                let work = Work::WideToBytes(table.clone());
                self.each(step, (work, BufferElement::Byte), output, preference)?;
            }
            Operation::RoundToInt16 | Operation::Int16ToFloats => {
                self.on_reals(step, shape, output, preference)?
            }
            Operation::Concat { axis } => {
                self.concat(step, (*axis, on_reals), output, preference)?
            }
            Operation::Softmax { axes } => self.softmax(step, axes, shape, on_reals)?,
            _ if on_reals => self.on_reals(step, shape, output, preference)?,
            Operation::Table(table) => {
                let work = Work::Table(Table(**table));
                self.each(step, (work, BufferElement::Byte), output, preference)?;
            }
            Operation::ChannelTables(tables) => {
                let layout = self.current_layout(first, preference);
                let source = self.operand(first, layout)?;
                let together = match layout {
                    MemoryLayout::Plain => shape[2..].iter().product::<usize>().max(1),
                    MemoryLayout::ChannelsLast => 1,
                };
                let tables = tables.iter().map(|table| Table(*table)).collect();
                let result =
                    self.bytes(Work::ChannelTables(tables, together), vec![source], output);
                self.put(step, layout, result);
            }
            Operation::MaxPool(window) => {
                let source = self.operand(first, MemoryLayout::ChannelsLast)?;
                let planes = [plane_of(shape), plane_of(output)];
                let work = Work::MaxPool(window.clone(), output[0], planes);
                let result = self.bytes(work, vec![source], output);
                self.finish_movement(step, first, MemoryLayout::ChannelsLast, result, output)?;
            }
            Operation::AveragePool {
                window,
                counts_padding,
            } => {
                let source = self.operand(first, MemoryLayout::ChannelsLast)?;
                let from = first.quantization().ok_or(MISSING)?;
                let to = step.quantization.ok_or(MISSING)?;
                let how = Average {
                    multiplier: ratio(&[from.scale], to.scale),
                    to: target(to, step.bounds),
                    count_pads: *counts_padding,
                };
                let planes = [plane_of(shape), plane_of(output)];
                let work =
                    Work::AveragePool(window.clone(), output[0], planes, how, from.zero_point);
                let result = self.bytes(work, vec![source], output);
                self.put(step, MemoryLayout::ChannelsLast, result);
            }
            Operation::Mean { axes, sum } => {
                let (layout, sizes) = mean_layout(shape, axes);
                let times = if *sum { sizes[1] as f32 } else { 1.0 };
                let source = self.operand(first, layout)?;
                let from = first.quantization().ok_or(MISSING)?;
                let to = step.quantization.ok_or(MISSING)?;
                let work = Work::Mean {
                    sizes,
                    zero_point: from.zero_point,
                    factor: ratio(&[from.scale], to.scale) * times,
                    to: target(to, step.bounds),
                };
                let result = self.bytes(work, vec![source], output);
                self.put(step, MemoryLayout::Plain, result);
            }
            Operation::MinMax { axes, least } => {
                let (layout, [_, middle, inner]) = mean_layout(shape, axes);
                let source = self.operand(first, layout)?;
                let work = Work::ReduceMinMax([middle, inner], *least);
                let result = self.bytes(work, vec![source], output);
                self.finish_movement(step, first, MemoryLayout::Plain, result, output)?;
            }
            Operation::Resize { rows, columns } => {
                let source = self.operand(first, MemoryLayout::ChannelsLast)?;
                let from = first.quantization().ok_or(MISSING)?;
                let to = step.quantization.ok_or(MISSING)?;
                let work = Work::Resize {
                    images: output[0],
                    from: plane_of(shape),
                    rows: rows.clone(),
                    columns: columns.clone(),
                    zero_point: from.zero_point,
                    factor: ratio(&[from.scale], to.scale),
                    to: target(to, step.bounds),
                };
                let result = self.bytes(work, vec![source], output);
                self.put(step, MemoryLayout::ChannelsLast, result);
            }
            Operation::Select { positions, fill } => {
                // A Gather may change the rank; its axes then refer to ONNX's layout.
                let layout = match shape.len() == output.len() {
                    true => self.current_layout(first, preference),
                    false => MemoryLayout::Plain,
                };
                let source = self.operand(first, layout)?;
                let work = select(shape, positions, *fill, layout);
                let result = self.bytes(work, vec![source], output);
                self.finish_movement(step, first, layout, result, output)?;
            }
            Operation::Transpose(order) => {
                let from = self.current_layout(first, preference);
                let source = self.operand(first, from)?;
                let sizes = from.sizes(shape);
                // For each output axis in memory order, its position in the input's memory order.
                let places = |to: MemoryLayout| -> Vec<usize> {
                    let axes = to.order(output.len());
                    axes.iter()
                        .map(|&axis| from.place(order[axis], shape.len()))
                        .collect()
                };
                // A layout without data movement is preferred.
                let still = [preference, MemoryLayout::Plain, MemoryLayout::ChannelsLast]
                    .into_iter()
                    .find(|&to| is_still(&sizes, &places(to)));
                let to = still.unwrap_or(preference);
                let result = match still {
                    Some(_) => source,
                    None => {
                        let order = places(to);
                        self.bytes(Work::Permute { sizes, order }, vec![source], output)
                    }
                };
                self.finish_movement(step, first, to, result, output)?;
            }
            Operation::Reshape => {
                // A reshape of the pixels only keeps the channels last.
                let pixels = shape.len() >= 3
                    && output.len() >= 3
                    && shape[..2] == output[..2]
                    && self.current_layout(first, preference) == MemoryLayout::ChannelsLast;
                let layout = if pixels {
                    MemoryLayout::ChannelsLast
                } else {
                    MemoryLayout::Plain
                };
                let source = self.operand(first, layout)?;
                self.finish_movement(step, first, layout, source, output)?;
            }
            Operation::DepthSpace { block, to_space } => {
                let source = self.operand(first, MemoryLayout::ChannelsLast)?;
                let work = Work::Blocks {
                    images: output[0],
                    from: plane_of(shape),
                    block: *block,
                    to_space: *to_space,
                };
                let result = self.bytes(work, vec![source], output);
                self.finish_movement(step, first, MemoryLayout::ChannelsLast, result, output)?;
            }
            Operation::Normalize(norm) => {
                let source = self.operand(first, MemoryLayout::Plain)?;
                let work = Work::Normalize {
                    norm: norm.clone(),
                    from: scale(first.quantization().ok_or(MISSING)?),
                    to: scale(step.quantization.ok_or(MISSING)?),
                };
                let result = self.bytes(work, vec![source], output);
                self.finish_clamped(step, MemoryLayout::Plain, result, output);
            }
        }
        Ok(())
    }
}

impl<'a> Compiler<'a> {
    /// Lowers an elementwise step in the layout of its input.
    fn each(
        &mut self,
        step: &'a Step,
        (work, element): (Work, BufferElement),
        output: &[usize],
        preference: MemoryLayout,
    ) -> Result<(), Error> {
        let first = step.inputs.first().ok_or(MISSING)?;
        let layout = self.current_layout(first, preference);
        let source = self.operand(first, layout)?;
        let result = self.add(work, vec![source], element, output);
        self.put(step, layout, result);
        Ok(())
    }

    /// Quantizes floats, and transposes them in the same pass if preferred. `None` if the scale is
    /// an input.
    pub(super) fn quantize(
        &mut self,
        step: &'a Step,
        to: Option<Scale>,
        (current_layout, sources): (MemoryLayout, Vec<InputSource>),
        preference: MemoryLayout,
    ) -> Result<(), Error> {
        let output = self.shape(&step.output)?;
        let turns = preference == MemoryLayout::ChannelsLast
            && current_layout == MemoryLayout::Plain
            && !coincide(output);
        let (work, layout) = match turns {
            true => {
                let size = [output[1], output[2..].iter().product()];
                (Work::QuantizeToNhwc(to, size), MemoryLayout::ChannelsLast)
            }
            false => (Work::Quantize(to), current_layout),
        };
        let result = self.bytes(work, sources, output);
        self.finish_clamped(step, layout, result, output);
        Ok(())
    }
}

/// Selected positions of each axis, in a layout.
pub(super) fn select(
    shape: &[usize],
    positions: &[Vec<Option<usize>>],
    fill: u8,
    layout: MemoryLayout,
) -> Work {
    let order = layout.order(shape.len()).into_iter();
    Work::Select {
        sizes: layout.sizes(shape),
        positions: order.map(|axis| positions[axis].clone()).collect(),
        fill,
    }
}

/// The layout of a mean over these axes, and the products of the sizes before, along and behind
/// them.
pub(super) fn mean_layout(
    shape: &[usize],
    axes: &std::ops::Range<usize>,
) -> (MemoryLayout, [usize; 3]) {
    let count = |range: std::ops::Range<usize>| shape[range].iter().product::<usize>();
    if *axes == (2..shape.len()) && shape.len() >= 3 {
        let sizes = [shape[0], count(2..shape.len()), shape[1]];
        return (MemoryLayout::ChannelsLast, sizes);
    }
    let behind = count(axes.end..shape.len());
    (
        MemoryLayout::Plain,
        [count(0..axes.start), count(axes.clone()), behind],
    )
}

pub(super) fn plane_of(shape: &[usize]) -> ImageSize {
    let [height, width] = plane(shape);
    ImageSize {
        height,
        width,
        channels: shape.get(1).copied().unwrap_or(1),
    }
}
