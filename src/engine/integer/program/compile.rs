//! From the steps of a region to instructions: layouts chosen, weights packed.
//!
//! Images lie with their channels last where a step that looks at pixels wants them, everything else as ONNX
//! has it. What works in any order of the axes takes its input as it lies, so that a transpose is written only
//! between two steps that want different things.

use std::collections::HashMap;
use std::sync::Arc;

use octet_kernels::int8::{Average, Error, Form, Scale, Table, Target};

use super::instruction::{Element, Instruction, Plane, Source, Work};
use super::layout::{Layout, coincide, is_still};
use crate::engine::integer::pattern::{
    Constant, Kind, Network, Operand, Operation, Step, Value, plane,
};
use crate::engine::integer::quantization::Quantization;
use crate::engine::integer::region::Region;

/// Where the values of a region are while it is compiled.
pub(super) struct Compiler<'a> {
    network: &'a Network,
    pub(super) instructions: Vec<Instruction>,
    pub(super) buffers: Vec<(Element, usize)>,
    places: HashMap<(&'a str, Layout), Source>,
    wishes: HashMap<&'a str, Layout>,
    step: usize,
    pub(super) form: Form,
}

pub(super) fn scale(of: Quantization) -> Scale {
    Scale {
        scale: of.scale,
        zero_point: of.zero_point,
    }
}

pub(super) fn target(of: Quantization, [low, high]: [u8; 2]) -> Target {
    Target {
        zero_point: of.zero_point,
        low,
        high,
    }
}

/// One scale over others, rounded once.
pub(super) fn ratio(above: &[f32], below: f32) -> f32 {
    (above.iter().map(|&s| f64::from(s)).product::<f64>() / f64::from(below)) as f32
}

pub(super) const MISSING: Error = Error::Zero {
    what: "the values of a step",
};

impl<'a> Compiler<'a> {
    pub(super) fn new(network: &'a Network, region: &'a Region) -> Compiler<'a> {
        let mut compiler = Compiler {
            network,
            instructions: Vec::new(),
            buffers: Vec::new(),
            places: HashMap::new(),
            wishes: wishes(network, region),
            step: 0,
            form: Form::best(),
        };
        for (at, name) in region.inputs.iter().enumerate() {
            let source = Source::Input(at);
            let source = match network.values.get(name) {
                // Signed bytes are brought to the unsigned form once.
                Some(Value {
                    shape,
                    kind: Kind::Byte { signed: true },
                }) => compiler.add(Work::Flip, vec![source], Element::Byte, shape),
                _ => source,
            };
            compiler.places.insert((name, Layout::Plain), source);
        }
        compiler
    }

    /// Compiles all steps.
    pub(super) fn steps(&mut self, region: &'a Region) -> Result<(), (usize, Error)> {
        for (at, &index) in region.steps.iter().enumerate() {
            self.step = at;
            let step = &self.network.steps[index];
            self.compile(step).map_err(|error| (index, error))?;
        }
        Ok(())
    }

    /// A value as the outside sees it, in a buffer.
    pub(super) fn output(&mut self, name: &'a str) -> Result<usize, Error> {
        let source = self.fetch(name, Layout::Plain)?;
        match source {
            Source::Buffer(buffer) => Ok(buffer),
            source => {
                let shape = self.shape(name)?;
                match self.add(Work::Copy, vec![source], Element::Byte, shape) {
                    Source::Buffer(buffer) => Ok(buffer),
                    _ => Err(MISSING),
                }
            }
        }
    }

    pub(super) fn shape(&self, name: &str) -> Result<&'a [usize], Error> {
        let network: &'a Network = self.network;
        Ok(&network.values.get(name).ok_or(MISSING)?.shape)
    }

    pub(super) fn add(
        &mut self,
        work: Work,
        inputs: Vec<Source>,
        element: Element,
        shape: &[usize],
    ) -> Source {
        let output = self.buffers.len();
        self.buffers.push((element, shape.iter().product()));
        self.instructions.push(Instruction {
            work,
            inputs,
            output,
            step: self.step,
        });
        Source::Buffer(output)
    }

    pub(super) fn bytes(&mut self, work: Work, inputs: Vec<Source>, shape: &[usize]) -> Source {
        self.add(work, inputs, Element::Byte, shape)
    }

    /// A value in a layout, turned if it lies in the other.
    pub(super) fn fetch(&mut self, name: &'a str, layout: Layout) -> Result<Source, Error> {
        if let Some(source) = self.places.get(&(name, layout)) {
            return Ok(source.clone());
        }
        let other = match layout {
            Layout::Plain => Layout::ChannelsLast,
            Layout::ChannelsLast => Layout::Plain,
        };
        let source = self.places.get(&(name, other)).ok_or(MISSING)?.clone();
        let shape = self.shape(name)?;
        let turned = match coincide(shape) {
            true => source,
            false => {
                let image = [shape[1], shape[2..].iter().product()];
                let work = match layout {
                    Layout::ChannelsLast => Work::ToLast(image),
                    Layout::Plain => Work::ToFirst(image),
                };
                self.bytes(work, vec![source], shape)
            }
        };
        self.places.insert((name, layout), turned.clone());
        Ok(turned)
    }

    /// The layout a value lies in already: the one that is wished where there are both.
    pub(super) fn lies(&self, operand: &'a Operand, wish: Layout) -> Layout {
        let Some(name) = operand.value() else {
            return wish;
        };
        let has = |layout| self.places.contains_key(&(name, layout));
        match (has(Layout::Plain), has(Layout::ChannelsLast)) {
            (true, true) => wish,
            (_, true) => Layout::ChannelsLast,
            _ if self.shape(name).is_ok_and(coincide) => wish,
            _ => Layout::Plain,
        }
    }

    pub(super) fn operand(
        &mut self,
        operand: &'a Operand,
        layout: Layout,
    ) -> Result<Source, Error> {
        match operand {
            Operand::Integers(name, _) | Operand::Floats(name) => self.fetch(name, layout),
            Operand::Constant(constant) => laid(constant, layout),
        }
    }

    pub(super) fn shape_of(&self, operand: &'a Operand) -> Result<&'a [usize], Error> {
        match operand {
            Operand::Integers(name, _) | Operand::Floats(name) => self.shape(name),
            Operand::Constant(constant) => Ok(&constant.shape),
        }
    }

    fn compile(&mut self, step: &'a Step) -> Result<(), Error> {
        let first = step.inputs.first().ok_or(MISSING)?;
        let shape = self.shape_of(first)?;
        let output = self.shape(&step.output)?;
        let wish = self
            .wishes
            .get(step.output.as_str())
            .copied()
            .unwrap_or(Layout::Plain);
        let image = output.len() >= 3 && !coincide(output);
        match &step.operation {
            Operation::Quantize => {
                let source = self.operand(first, Layout::Plain)?;
                let to = scale(step.quantization.ok_or(MISSING)?);
                let (work, layout) = match wish == Layout::ChannelsLast && image {
                    true => {
                        let size = [shape[1], shape[2..].iter().product()];
                        (Work::QuantizeToLast(to, size), Layout::ChannelsLast)
                    }
                    false => (Work::Quantize(to), Layout::Plain),
                };
                let made = self.bytes(work, vec![source], output);
                self.put(step, layout, made);
            }
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
            Operation::Pair => self.pair(step, output)?,
            Operation::Binary(binary) => self.binary(step, *binary, output, wish)?,
            Operation::Table(table) => {
                let layout = self.lies(first, wish);
                let source = self.operand(first, layout)?;
                let made = self.bytes(Work::Table(Table(**table)), vec![source], output);
                self.put(step, layout, made);
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
            Operation::Concat { axis } => self.concat(step, *axis, output, wish)?,
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
            Operation::Mean { axes } => {
                let spatial = *axes == (2..shape.len()) && shape.len() >= 3;
                let layout = if spatial {
                    Layout::ChannelsLast
                } else {
                    Layout::Plain
                };
                let source = self.operand(first, layout)?;
                let from = first.quantization().ok_or(MISSING)?;
                let to = step.quantization.ok_or(MISSING)?;
                let count = |range: std::ops::Range<usize>| shape[range].iter().product::<usize>();
                let sizes = match spatial {
                    true => [shape[0], count(2..shape.len()), shape[1]],
                    false => [
                        count(0..axes.start),
                        count(axes.clone()),
                        count(axes.end..shape.len()),
                    ],
                };
                let work = Work::Mean {
                    sizes,
                    zero_point: from.zero_point,
                    factor: ratio(&[from.scale], to.scale),
                    to: target(to, step.bounds),
                };
                let made = self.bytes(work, vec![source], output);
                self.put(step, Layout::Plain, made);
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
                let layout = self.lies(first, wish);
                let source = self.operand(first, layout)?;
                let order = layout.order(shape.len());
                let work = Work::Select {
                    sizes: layout.sizes(shape),
                    positions: order.iter().map(|&axis| positions[axis].clone()).collect(),
                    fill: *fill,
                };
                let made = self.bytes(work, vec![source], output);
                self.kept(step, first, layout, made, output)?;
            }
            Operation::Transpose(order) => {
                let from = self.lies(first, wish);
                let source = self.operand(first, from)?;
                let sizes = from.sizes(shape);
                // Axis by axis of the output as it will lie: where that axis lies in the input.
                let places = |to: Layout| -> Vec<usize> {
                    let axes = to.order(output.len());
                    axes.iter()
                        .map(|&axis| from.place(order[axis], shape.len()))
                        .collect()
                };
                // Where the bytes need not move for one layout, that is the one.
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
                // Pixels in a row are pixels in rows.
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
            Operation::Softmax { axis } => self.softmax(step, *axis, shape)?,
            Operation::Normalize {
                axis,
                epsilon,
                scale: factors,
                shift,
            } => {
                let source = self.operand(first, Layout::Plain)?;
                let work = Work::Normalize {
                    length: shape[*axis..].iter().product(),
                    from: scale(first.quantization().ok_or(MISSING)?),
                    scale: factors.clone(),
                    shift: (!shift.is_empty()).then(|| shift.clone()),
                    epsilon: *epsilon,
                    to: scale(step.quantization.ok_or(MISSING)?),
                };
                let made = self.bytes(work, vec![source], output);
                self.bounded(step, Layout::Plain, made, output);
            }
        }
        Ok(())
    }

    pub(super) fn put(&mut self, step: &'a Step, layout: Layout, source: Source) {
        self.places.insert((&step.output, layout), source);
    }

    /// What moved integers without changing them: to the output's scale and bounds, if these are others.
    pub(super) fn kept(
        &mut self,
        step: &'a Step,
        input: &'a Operand,
        layout: Layout,
        source: Source,
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

    /// What has the output's scale already: to its bounds.
    pub(super) fn bounded(
        &mut self,
        step: &'a Step,
        layout: Layout,
        source: Source,
        shape: &[usize],
    ) {
        let source = match clamp(step.bounds) {
            Some(table) => self.bytes(Work::Table(table), vec![source], shape),
            None => source,
        };
        self.put(step, layout, source);
    }

    fn softmax(&mut self, step: &'a Step, axis: usize, shape: &'a [usize]) -> Result<(), Error> {
        let first = step.inputs.first().ok_or(MISSING)?;
        let rank = shape.len();
        let layout = match axis == 1 && rank >= 3 {
            true => Layout::ChannelsLast,
            false => Layout::Plain,
        };
        let mut source = self.operand(first, layout)?;
        let sizes = layout.sizes(shape);
        let place = layout.place(axis, rank);
        // The axis goes behind the others and back.
        let mut order: Vec<usize> = (0..rank).filter(|&a| a != place).collect();
        order.push(place);
        let moves = !is_still(&sizes, &order);
        if moves {
            let work = Work::Permute {
                sizes: sizes.clone(),
                order: order.clone(),
            };
            source = self.bytes(work, vec![source], shape);
        }
        let work = Work::Softmax {
            length: shape[axis],
            from: first.quantization().ok_or(MISSING)?.scale,
            to: scale(step.quantization.ok_or(MISSING)?),
        };
        let mut made = self.bytes(work, vec![source], shape);
        if moves {
            let mut back: Vec<usize> = (0..rank).collect();
            back.sort_by_key(|&a| order[a]);
            let sizes = order.iter().map(|&a| sizes[a]).collect();
            made = self.bytes(Work::Permute { sizes, order: back }, vec![made], shape);
        }
        self.bounded(step, layout, made, shape);
        Ok(())
    }
}

/// The layout in which the readers of each value would like it, asked from the last step on.
fn wishes<'a>(network: &'a Network, region: &Region) -> HashMap<&'a str, Layout> {
    let mut wishes: HashMap<&str, Layout> = HashMap::new();
    for &index in region.steps.iter().rev() {
        let step = &network.steps[index];
        let own = wishes
            .get(step.output.as_str())
            .copied()
            .unwrap_or(Layout::Plain);
        let wish = match &step.operation {
            Operation::Convolution { .. }
            | Operation::MaxPool(_)
            | Operation::AveragePool { .. }
            | Operation::Resize { .. }
            | Operation::Blocks { .. } => Layout::ChannelsLast,
            Operation::Mean { axes } if axes.start == 2 => Layout::ChannelsLast,
            Operation::Softmax { axis: 1 } => Layout::ChannelsLast,
            Operation::Table(_)
            | Operation::ChannelTables(_)
            | Operation::Binary(_)
            | Operation::Concat { .. }
            | Operation::Select { .. } => own,
            _ => Layout::Plain,
        };
        for name in step.inputs.iter().filter_map(Operand::value) {
            // The first reader's wish counts, which is looked at last.
            wishes.insert(name, wish);
        }
    }
    wishes
}

pub(super) fn plane_of(shape: &[usize]) -> Plane {
    let [height, width] = plane(shape);
    Plane {
        height,
        width,
        channels: shape.get(1).copied().unwrap_or(1),
    }
}

/// A table that keeps integers between two bounds; none where they always are.
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

/// A constant's bytes in a layout.
pub(super) fn laid(constant: &Constant, layout: Layout) -> Result<Source, Error> {
    let order = layout.order(constant.shape.len());
    let mut bytes = vec![0; constant.integers.len()];
    octet_kernels::int8::permute(&constant.integers, &constant.shape, &order, &mut bytes)?;
    Ok(Source::Constant(Arc::from(bytes)))
}
