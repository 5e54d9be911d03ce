//! State of the lowering of a region from steps to instructions.
//!
//! Images are channels-last where a spatial step prefers it; other values have ONNX's layout. Steps
//! that work in any layout keep that of their input. A transpose is therefore written only between
//! steps of different preferences.

use std::collections::HashMap;
use std::sync::Arc;

use octet_kernels::int8::{Error, Form, Scale, Target};

use super::instruction::{BufferElement, InputSource, Instruction, Work};
use super::layout::{MemoryLayout, coincide};
use super::layout_preferences::preferences;
use super::weighted_products::WinogradBudget;
use crate::pattern::{Constant, ElementKind, Ir, IrValue, Operand};
use crate::quantization::Int8Quantization;
use crate::region::Region;

/// Locations of a region's values during its compilation.
pub(super) struct Compiler<'a> {
    ir: &'a Ir,
    pub(super) instructions: Vec<Instruction>,
    pub(super) buffers: Vec<(BufferElement, usize)>,
    pub(super) locations: HashMap<(&'a str, MemoryLayout), InputSource>,
    /// High and low bytes of the 16-bit values that products read.
    pub(super) planes: HashMap<(&'a str, MemoryLayout), [InputSource; 2]>,
    pub(super) preferences: HashMap<&'a str, MemoryLayout>,
    step: usize,
    pub(super) form: Form,
    pub(super) winograd_budget: WinogradBudget,
}

pub(super) fn scale(of: Int8Quantization) -> Scale {
    Scale {
        scale: of.scale,
        zero_point: of.zero_point,
    }
}

pub(super) fn target(of: Int8Quantization, [low, high]: [u8; 2]) -> Target {
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
    pub(super) fn new(ir: &'a Ir, region: &'a Region) -> Compiler<'a> {
        let mut compiler = Compiler {
            ir,
            instructions: Vec::new(),
            buffers: Vec::new(),
            locations: HashMap::new(),
            planes: HashMap::new(),
            preferences: preferences(ir, region),
            step: 0,
            form: Form::best(),
            winograd_budget: WinogradBudget::FULL,
        };
        for (at, name) in region.inputs.iter().enumerate() {
            let source = InputSource::Input(at);
            let source = match ir.values.get(name) {
                // Signed bytes are converted to the unsigned representation once.
                Some(IrValue {
                    shape,
                    kind: ElementKind::Byte { signed: true },
                }) => compiler.add(Work::Flip, vec![source], BufferElement::Byte, shape),
                _ => source,
            };
            compiler
                .locations
                .insert((name, MemoryLayout::Plain), source);
        }
        compiler
    }

    /// Lowers all steps.
    pub(super) fn lower_all(&mut self, region: &'a Region) -> Result<(), (usize, Error)> {
        for (at, &index) in region.steps.iter().enumerate() {
            self.step = at;
            let step = &self.ir.steps[index];
            self.lower(step).map_err(|error| (index, error))?;
        }
        Ok(())
    }

    /// An output of the region in ONNX's layout, in a buffer.
    pub(super) fn output(&mut self, name: &'a str) -> Result<usize, Error> {
        let source = self.fetch(name, MemoryLayout::Plain)?;
        match source {
            InputSource::Buffer(buffer) => Ok(buffer),
            source => {
                let shape = self.shape(name)?;
                match self.add(Work::Copy, vec![source], BufferElement::Byte, shape) {
                    InputSource::Buffer(buffer) => Ok(buffer),
                    _ => Err(MISSING),
                }
            }
        }
    }

    pub(super) fn shape(&self, name: &str) -> Result<&'a [usize], Error> {
        let ir: &'a Ir = self.ir;
        Ok(&ir.values.get(name).ok_or(MISSING)?.shape)
    }

    pub(super) fn add(
        &mut self,
        work: Work,
        inputs: Vec<InputSource>,
        element: BufferElement,
        shape: &[usize],
    ) -> InputSource {
        let output = self.buffers.len();
        self.buffers.push((element, shape.iter().product()));
        self.instructions.push(Instruction {
            work,
            inputs,
            output,
            step: self.step,
        });
        InputSource::Buffer(output)
    }

    pub(super) fn bytes(
        &mut self,
        work: Work,
        inputs: Vec<InputSource>,
        shape: &[usize],
    ) -> InputSource {
        self.add(work, inputs, BufferElement::Byte, shape)
    }

    /// A value in a layout, transposed if only the other layout exists.
    pub(super) fn fetch(
        &mut self,
        name: &'a str,
        layout: MemoryLayout,
    ) -> Result<InputSource, Error> {
        if let Some(source) = self.locations.get(&(name, layout)) {
            return Ok(source.clone());
        }
        let other = match layout {
            MemoryLayout::Plain => MemoryLayout::ChannelsLast,
            MemoryLayout::ChannelsLast => MemoryLayout::Plain,
        };
        let source = self.locations.get(&(name, other)).ok_or(MISSING)?.clone();
        let shape = self.shape(name)?;
        let transposed = match coincide(shape) {
            true => source,
            false => {
                let image = [shape[1], shape[2..].iter().product()];
                let kind = self.ir.values.get(name).map(|value| value.kind);
                let (work, element) = match (layout, kind) {
                    (_, Some(ElementKind::Accumulator)) => return Err(MISSING),
                    (MemoryLayout::ChannelsLast, Some(ElementKind::Float)) => {
                        (Work::FloatsToNhwc(image), BufferElement::Float)
                    }
                    (MemoryLayout::Plain, Some(ElementKind::Float)) => {
                        (Work::FloatsToNchw(image), BufferElement::Float)
                    }
                    (MemoryLayout::ChannelsLast, _) => (Work::ToNhwc(image), BufferElement::Byte),
                    (MemoryLayout::Plain, _) => (Work::ToNchw(image), BufferElement::Byte),
                };
                self.add(work, vec![source], element, shape)
            }
        };
        self.locations.insert((name, layout), transposed.clone());
        Ok(transposed)
    }

    /// The existing layout of a value; the preferred one if both exist.
    pub(super) fn current_layout(
        &self,
        operand: &'a Operand,
        preference: MemoryLayout,
    ) -> MemoryLayout {
        let Some(name) = operand.value() else {
            return preference;
        };
        let has = |layout| self.locations.contains_key(&(name, layout));
        match (has(MemoryLayout::Plain), has(MemoryLayout::ChannelsLast)) {
            (true, true) => preference,
            (_, true) => MemoryLayout::ChannelsLast,
            _ if self.shape(name).is_ok_and(coincide) => preference,
            _ => MemoryLayout::Plain,
        }
    }

    pub(super) fn operand(
        &mut self,
        operand: &'a Operand,
        layout: MemoryLayout,
    ) -> Result<InputSource, Error> {
        match operand {
            Operand::Int8(name, _)
            | Operand::Bytes(name)
            | Operand::Floats(name)
            | Operand::Int16(name, _) => self.fetch(name, layout),
            Operand::Constant(constant) => constant_in_layout(constant, layout),
            Operand::Reals(_, values) => Ok(super::int16::constant(values)),
        }
    }

    pub(super) fn shape_of(&self, operand: &'a Operand) -> Result<&'a [usize], Error> {
        match operand {
            Operand::Int8(name, _)
            | Operand::Bytes(name)
            | Operand::Floats(name)
            | Operand::Int16(name, _) => self.shape(name),
            Operand::Constant(constant) => Ok(&constant.shape),
            Operand::Reals(shape, _) => Ok(shape),
        }
    }
}

/// Bytes of a constant in a layout.
pub(super) fn constant_in_layout(
    constant: &Constant,
    layout: MemoryLayout,
) -> Result<InputSource, Error> {
    let order = layout.order(constant.shape.len());
    let mut bytes = vec![0; constant.integers.len()];
    octet_kernels::int8::permute(&constant.integers, &constant.shape, &order, &mut bytes)?;
    Ok(InputSource::Constant(Arc::from(bytes)))
}
