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
use super::wishes::wishes;
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
    pub(super) places: HashMap<(&'a str, Layout), Source>,
    /// Both bytes of the 16-bit values that products read.
    pub(super) planes: HashMap<(&'a str, Layout), [Source; 2]>,
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
            planes: HashMap::new(),
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
                let kind = self.network.values.get(name).map(|value| value.kind);
                let (work, element) = match (layout, kind) {
                    (Layout::ChannelsLast, Some(Kind::Float)) => {
                        (Work::FloatsToLast(image), Element::Float)
                    }
                    (Layout::Plain, Some(Kind::Float)) => {
                        (Work::FloatsToFirst(image), Element::Float)
                    }
                    (Layout::ChannelsLast, _) => (Work::ToLast(image), Element::Byte),
                    (Layout::Plain, _) => (Work::ToFirst(image), Element::Byte),
                };
                self.add(work, vec![source], element, shape)
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
            Operand::Integers(name, _) | Operand::Floats(name) | Operand::Wide(name, _) => {
                self.fetch(name, layout)
            }
            Operand::Constant(constant) => laid(constant, layout),
            Operand::Reals(_, values) => Ok(super::wide::constant(values)),
        }
    }

    pub(super) fn shape_of(&self, operand: &'a Operand) -> Result<&'a [usize], Error> {
        match operand {
            Operand::Integers(name, _) | Operand::Floats(name) | Operand::Wide(name, _) => {
                self.shape(name)
            }
            Operand::Constant(constant) => Ok(&constant.shape),
            Operand::Reals(shape, _) => Ok(shape),
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
        let on_reals = step.wide.is_some() || matches!(first, Operand::Wide(..));
        match &step.operation {
            Operation::Quantize => {
                let lies = self.lies(first, Layout::Plain);
                let source = self.operand(first, lies)?;
                let to = scale(step.quantization.ok_or(MISSING)?);
                let turns = wish == Layout::ChannelsLast && lies == Layout::Plain && image;
                let (work, layout) = match turns {
                    true => {
                        let size = [shape[1], shape[2..].iter().product()];
                        (Work::QuantizeToLast(to, size), Layout::ChannelsLast)
                    }
                    false => (Work::Quantize(to), lies),
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
            Operation::Reals(how) => self.arithmetic(step, *how, output, wish)?,
            Operation::RealTable(table) => {
                let layout = self.lies(first, wish);
                let source = self.operand(first, layout)?;
                let work = Work::RealTable(table.clone());
                let made = self.add(work, vec![source], Element::Float, output);
                self.put(step, layout, made);
            }
            Operation::Snap | Operation::Unsnap => self.on_reals(step, shape, output, wish)?,
            _ if on_reals => self.on_reals(step, shape, output, wish)?,
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
                let (layout, sizes) = around(shape, axes);
                let source = self.operand(first, layout)?;
                let from = first.quantization().ok_or(MISSING)?;
                let to = step.quantization.ok_or(MISSING)?;
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
}

/// The layout in which a mean over these axes is taken, and the sizes before, along and behind them there.
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

/// A constant's bytes in a layout.
pub(super) fn laid(constant: &Constant, layout: Layout) -> Result<Source, Error> {
    let order = layout.order(constant.shape.len());
    let mut bytes = vec![0; constant.integers.len()];
    octet_kernels::int8::permute(&constant.integers, &constant.shape, &order, &mut bytes)?;
    Ok(Source::Constant(Arc::from(bytes)))
}
