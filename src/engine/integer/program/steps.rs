//! Lowering of one step: its layout and its instructions.

use octet_kernels::int8::{Average, Error, Scale, Table};

use super::compile::{Compiler, MISSING, ratio, scale, target};
use super::instruction::{Element, Plane, Source, Work};
use super::layout::{Layout, coincide, is_still};
use crate::engine::integer::pattern::{Operand, Operation, Step, plane};

impl<'a> Compiler<'a> {
    pub(super) fn compile(&mut self, step: &'a Step) -> Result<(), Error> {
        let first = step.inputs.first().ok_or(MISSING)?;
        let shape = self.shape_of(first)?;
        let output = self.shape(&step.output)?;
        let wish = self
            .wishes
            .get(step.output.as_str())
            .copied()
            .unwrap_or(Layout::Plain);
        let image = output.len() >= 3 && !coincide(output);
        let on_reals = step.wide.is_some()
            || step
                .inputs
                .iter()
                .any(|operand| matches!(operand, Operand::Wide(..)));
        match &step.operation {
            Operation::Quantize => {
                let lies = self.lies(first, Layout::Plain);
                let source = self.operand(first, lies)?;
                let to = scale(step.quantization.ok_or(MISSING)?);
                self.quantize(step, Some(to), (lies, vec![source]), wish)?;
            }
            Operation::Measure => self.measure(step, wish)?,
            Operation::Sums(sums) => self.sums(step, sums, output)?,
            Operation::Dequantize => {
                let layout = self.lies(first, Layout::Plain);
                let source = self.operand(first, layout)?;
                let from = scale(first.quantization().ok_or(MISSING)?);
                let work = match layout == Layout::ChannelsLast && image {
                    true => Work::DequantizeToFirst(from, [shape[1], shape[2..].iter().product()]),
                    false => Work::Dequantize(from),
                };
                let made = self.add(work, vec![source], Element::Float, output);
                self.put(step, Layout::Plain, made);
            }
            Operation::Convolution { .. } => self.convolution(step, shape, output)?,
            Operation::Product { .. } => self.product(step, shape, output)?,
            Operation::Pair { .. } => self.pair(step, output)?,
            Operation::Binary(binary) => self.binary(step, *binary, output, wish)?,
            Operation::Reals(how) => self.arithmetic(step, *how, output, wish)?,
            Operation::Choice if on_reals => self.choice_of_reals(step, output, wish)?,
            Operation::Choice => self.choice(step, output, wish)?,
            Operation::RealTable(table) => {
                let work = Work::RealTable(table.clone());
                self.each(step, (work, Element::Float), output, wish)?;
            }
            Operation::WideTable(table) => {
                let work = Work::WideTable(table.clone());
                self.each(step, (work, Element::Float), output, wish)?;
            }
            Operation::WideToBytes(table) => {
                let work = Work::WideToBytes(table.clone());
                self.each(step, (work, Element::Byte), output, wish)?;
            }
            Operation::Snap | Operation::Unsnap => self.on_reals(step, shape, output, wish)?,
            Operation::Concat { axis } => self.concat(step, (*axis, on_reals), output, wish)?,
            Operation::Softmax { axes } => self.softmax(step, axes, shape, on_reals)?,
            _ if on_reals => self.on_reals(step, shape, output, wish)?,
            Operation::Table(table) => {
                let work = Work::Table(Table(**table));
                self.each(step, (work, Element::Byte), output, wish)?;
            }
            Operation::ChannelTables(tables) => {
                let layout = self.lies(first, wish);
                let source = self.operand(first, layout)?;
                let together = match layout {
                    Layout::Plain => shape[2..].iter().product::<usize>().max(1),
                    Layout::ChannelsLast => 1,
                };
                let tables = tables.iter().map(|table| Table(*table)).collect();
                let made = self.bytes(Work::ChannelTables(tables, together), vec![source], output);
                self.put(step, layout, made);
            }
            Operation::MaxPool(window) => {
                let source = self.operand(first, Layout::ChannelsLast)?;
                let planes = [plane_of(shape), plane_of(output)];
                let work = Work::MaxPool(window.clone(), output[0], planes);
                let made = self.bytes(work, vec![source], output);
                self.kept(step, first, Layout::ChannelsLast, made, output)?;
            }
            Operation::AveragePool {
                window,
                counts_padding,
            } => {
                let source = self.operand(first, Layout::ChannelsLast)?;
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
                let made = self.bytes(work, vec![source], output);
                self.put(step, Layout::ChannelsLast, made);
            }
            Operation::Mean { axes, sum } => {
                let (layout, sizes) = around(shape, axes);
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
                let made = self.bytes(work, vec![source], output);
                self.put(step, Layout::Plain, made);
            }
            Operation::Extreme { axes, least } => {
                let (layout, [_, middle, inner]) = around(shape, axes);
                let source = self.operand(first, layout)?;
                let work = Work::ExtremeOver([middle, inner], *least);
                let made = self.bytes(work, vec![source], output);
                self.kept(step, first, Layout::Plain, made, output)?;
            }
            Operation::Resize { rows, columns } => {
                let source = self.operand(first, Layout::ChannelsLast)?;
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
                let made = self.bytes(work, vec![source], output);
                self.put(step, Layout::ChannelsLast, made);
            }
            Operation::Select { positions, fill } => {
                // A Gather may change the rank; its axes then refer to ONNX's layout.
                let layout = match shape.len() == output.len() {
                    true => self.lies(first, wish),
                    false => Layout::Plain,
                };
                let source = self.operand(first, layout)?;
                let work = select(shape, positions, *fill, layout);
                let made = self.bytes(work, vec![source], output);
                self.kept(step, first, layout, made, output)?;
            }
            Operation::Transpose(order) => {
                let from = self.lies(first, wish);
                let source = self.operand(first, from)?;
                let sizes = from.sizes(shape);
                // For each output axis in memory order, its position in the input's memory order.
                let places = |to: Layout| -> Vec<usize> {
                    let axes = to.order(output.len());
                    axes.iter()
                        .map(|&axis| from.place(order[axis], shape.len()))
                        .collect()
                };
                // A layout without data movement is preferred.
                let still = [wish, Layout::Plain, Layout::ChannelsLast]
                    .into_iter()
                    .find(|&to| is_still(&sizes, &places(to)));
                let to = still.unwrap_or(wish);
                let made = match still {
                    Some(_) => source,
                    None => {
                        let order = places(to);
                        self.bytes(Work::Permute { sizes, order }, vec![source], output)
                    }
                };
                self.kept(step, first, to, made, output)?;
            }
            Operation::Reshape => {
                // A reshape of the pixels only keeps the channels last.
                let pixels = shape.len() >= 3
                    && output.len() >= 3
                    && shape[..2] == output[..2]
                    && self.lies(first, wish) == Layout::ChannelsLast;
                let layout = if pixels {
                    Layout::ChannelsLast
                } else {
                    Layout::Plain
                };
                let source = self.operand(first, layout)?;
                self.kept(step, first, layout, source, output)?;
            }
            Operation::Blocks { block, to_space } => {
                let source = self.operand(first, Layout::ChannelsLast)?;
                let work = Work::Blocks {
                    images: output[0],
                    from: plane_of(shape),
                    block: *block,
                    to_space: *to_space,
                };
                let made = self.bytes(work, vec![source], output);
                self.kept(step, first, Layout::ChannelsLast, made, output)?;
            }
            Operation::Normalize(norm) => {
                let source = self.operand(first, Layout::Plain)?;
                let work = Work::Normalize {
                    norm: norm.clone(),
                    from: scale(first.quantization().ok_or(MISSING)?),
                    to: scale(step.quantization.ok_or(MISSING)?),
                };
                let made = self.bytes(work, vec![source], output);
                self.bounded(step, Layout::Plain, made, output);
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
        (work, element): (Work, Element),
        output: &[usize],
        wish: Layout,
    ) -> Result<(), Error> {
        let first = step.inputs.first().ok_or(MISSING)?;
        let layout = self.lies(first, wish);
        let source = self.operand(first, layout)?;
        let made = self.add(work, vec![source], element, output);
        self.put(step, layout, made);
        Ok(())
    }

    /// Quantizes floats, and transposes them in the same pass if preferred. `None` if the scale is
    /// an input.
    pub(super) fn quantize(
        &mut self,
        step: &'a Step,
        to: Option<Scale>,
        (lies, sources): (Layout, Vec<Source>),
        wish: Layout,
    ) -> Result<(), Error> {
        let output = self.shape(&step.output)?;
        let turns = wish == Layout::ChannelsLast && lies == Layout::Plain && !coincide(output);
        let (work, layout) = match turns {
            true => {
                let size = [output[1], output[2..].iter().product()];
                (Work::QuantizeToLast(to, size), Layout::ChannelsLast)
            }
            false => (Work::Quantize(to), lies),
        };
        let made = self.bytes(work, sources, output);
        self.bounded(step, layout, made, output);
        Ok(())
    }
}

/// Selected positions of each axis, in a layout.
pub(super) fn select(
    shape: &[usize],
    positions: &[Vec<Option<usize>>],
    fill: u8,
    layout: Layout,
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
pub(super) fn around(shape: &[usize], axes: &std::ops::Range<usize>) -> (Layout, [usize; 3]) {
    let count = |range: std::ops::Range<usize>| shape[range].iter().product::<usize>();
    if *axes == (2..shape.len()) && shape.len() >= 3 {
        let sizes = [shape[0], count(2..shape.len()), shape[1]];
        return (Layout::ChannelsLast, sizes);
    }
    let behind = count(axes.end..shape.len());
    (
        Layout::Plain,
        [count(0..axes.start), count(axes.clone()), behind],
    )
}

pub(super) fn plane_of(shape: &[usize]) -> Plane {
    let [height, width] = plane(shape);
    Plane {
        height,
        width,
        channels: shape.get(1).copied().unwrap_or(1),
    }
}
