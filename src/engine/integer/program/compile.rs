//! State of the lowering of a region from steps to instructions.
//!
//! Images are channels-last where a spatial step prefers it; other values have ONNX's layout. Steps
//! that work in any layout keep that of their input. A transpose is therefore written only between
//! steps of different preferences.

use std::collections::HashMap;
use std::sync::Arc;

use octet_kernels::int8::{Error, Form, Scale, Target};

use super::instruction::{Element, Instruction, Source, Work};
use super::layout::{Layout, coincide};
use super::weighted::Room;
use super::wishes::wishes;
use crate::engine::integer::pattern::{Constant, Kind, Network, Operand, Value};
use crate::engine::integer::quantization::Quantization;
use crate::engine::integer::region::Region;

/// Locations of a region's values during its compilation.
pub(super) struct Compiler<'a> {
    network: &'a Network,
    pub(super) instructions: Vec<Instruction>,
    pub(super) buffers: Vec<(Element, usize)>,
    pub(super) places: HashMap<(&'a str, Layout), Source>,
    /// High and low bytes of the 16-bit values that products read.
    pub(super) planes: HashMap<(&'a str, Layout), [Source; 2]>,
    pub(super) wishes: HashMap<&'a str, Layout>,
    step: usize,
    pub(super) form: Form,
    pub(super) room: Room,
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

/// Product of scales over another scale, rounded once.
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
            room: Room::FULL,
        };
        for (at, name) in region.inputs.iter().enumerate() {
            let source = Source::Input(at);
            let source = match network.values.get(name) {
                // Signed bytes are converted to the unsigned representation once.
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

    /// Lowers all steps.
    pub(super) fn steps(&mut self, region: &'a Region) -> Result<(), (usize, Error)> {
        for (at, &index) in region.steps.iter().enumerate() {
            self.step = at;
            let step = &self.network.steps[index];
            self.compile(step).map_err(|error| (index, error))?;
        }
        Ok(())
    }

    /// An output of the region in ONNX's layout, in a buffer.
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

    /// A value in a layout, transposed if only the other layout exists.
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
                    (_, Some(Kind::Sum)) => return Err(MISSING),
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

    /// The existing layout of a value; the preferred one if both exist.
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
            Operand::Integers(name, _)
            | Operand::Bytes(name)
            | Operand::Floats(name)
            | Operand::Wide(name, _) => self.fetch(name, layout),
            Operand::Constant(constant) => laid(constant, layout),
            Operand::Reals(_, values) => Ok(super::wide::constant(values)),
        }
    }

    pub(super) fn shape_of(&self, operand: &'a Operand) -> Result<&'a [usize], Error> {
        match operand {
            Operand::Integers(name, _)
            | Operand::Bytes(name)
            | Operand::Floats(name)
            | Operand::Wide(name, _) => self.shape(name),
            Operand::Constant(constant) => Ok(&constant.shape),
            Operand::Reals(shape, _) => Ok(shape),
        }
    }
}

/// Bytes of a constant in a layout.
pub(super) fn laid(constant: &Constant, layout: Layout) -> Result<Source, Error> {
    let order = layout.order(constant.shape.len());
    let mut bytes = vec![0; constant.integers.len()];
    octet_kernels::int8::permute(&constant.integers, &constant.shape, &order, &mut bytes)?;
    Ok(Source::Constant(Arc::from(bytes)))
}
