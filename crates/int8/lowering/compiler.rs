//! State of the lowering of a region from steps to instructions.
//!
//! Images are channels-last where a spatial step prefers it; other values have ONNX's layout. Steps
//! that work in any layout keep that of their input. A transpose is therefore written only between
//! steps of different preferences.

use std::collections::HashMap;
use std::sync::Arc;

use octet_kernels::int8::{Error, Form, Scale, Target};

use super::moves::{CopyBytes, FlipSigns, ToNchw, ToNhwc};
use super::packed_matrices::PackedMatrices;
use super::weight_budget::WinogradBudget;
use crate::error::{CompilerBug, ProgramError};
use crate::layout::{MemoryLayout, coincide};
use crate::pattern::weights::SignedWeights;
use crate::processor::Processor;
use crate::program::instruction::{BufferElement, InputSource, Instruction, InstructionKernel};
use crate::quantization::Int8Quantization;
use crate::values::{Constant, ElementKind, IrOperand, IrValue};

/// Locations of a region's values during its compilation.
pub(crate) struct Compiler<'a> {
    values: &'a HashMap<String, IrValue>,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) buffers: Vec<(BufferElement, usize)>,
    pub(crate) locations: HashMap<(&'a str, MemoryLayout), InputSource>,
    /// High and low bytes of the 16-bit values that products read.
    pub(crate) planes: HashMap<(&'a str, MemoryLayout), [InputSource; 2]>,
    /// Index of the current step in the program.
    pub(crate) step: usize,
    pub(crate) form: Form,
    processor: Processor,
    pub(crate) winograd_budget: WinogradBudget,
    /// Packed weights of matrix products.
    pub(crate) matrices: PackedMatrices,
}

pub(crate) fn scale(of: Int8Quantization) -> Scale {
    Scale {
        scale: of.scale,
        zero_point: of.zero_point,
    }
}

pub(crate) fn target(of: Int8Quantization, [low, high]: [u8; 2]) -> Target {
    Target {
        zero_point: of.zero_point,
        low,
        high,
    }
}

/// Product of scales over another scale, rounded once.
pub(crate) fn ratio(above: &[f32], below: f32) -> f32 {
    (above.iter().map(|&s| f64::from(s)).product::<f64>() / f64::from(below)) as f32
}

impl<'a> Compiler<'a> {
    /// Prepares the lowering of a region with these values and inputs.
    pub(crate) fn new(
        values: &'a HashMap<String, IrValue>,
        inputs: &'a [String],
        processor: Processor,
    ) -> Compiler<'a> {
        let mut compiler = Compiler {
            values,
            instructions: Vec::new(),
            buffers: Vec::new(),
            locations: HashMap::new(),
            planes: HashMap::new(),
            step: 0,
            form: Form::best(),
            processor,
            winograd_budget: WinogradBudget::FULL,
            matrices: PackedMatrices::default(),
        };
        for (at, name) in inputs.iter().enumerate() {
            let source = InputSource::Input(at);
            let source = match values.get(name) {
                // Signed bytes are converted to the unsigned representation once.
                Some(IrValue {
                    shape,
                    kind: ElementKind::Byte { signed: true },
                }) => compiler.bytes(Box::new(FlipSigns), vec![source], shape),
                _ => source,
            };
            compiler
                .locations
                .insert((name, MemoryLayout::Plain), source);
        }
        compiler
    }

    /// The form of a product of a value with weights: the fastest, or that of the emulated processor
    /// where its sums may differ. ONNX Runtime makes u8 of i8 values between pairs, as regions do. It
    /// multiplies u8 by u8, and i8 by i8 of MatMulInteger, exactly.
    pub(crate) fn form_of(&self, operand: &IrOperand, weights: &SignedWeights) -> Form {
        let unsigned = match operand {
            IrOperand::Int8(..) | IrOperand::Constant(_) => true,
            IrOperand::Bytes(name) => {
                let kind = self.values.get(name).map(|value| value.kind);
                kind == Some(ElementKind::Byte { signed: false })
            }
            _ => false,
        };
        let cut = self.processor == Processor::X86WithoutVnni && unsigned;
        match cut && weights.may_exceed_pairs() {
            true => Form::CutPairs,
            false => self.form,
        }
    }

    /// An output of the region in ONNX's layout, in a buffer.
    pub(crate) fn output(&mut self, name: &'a str) -> Result<usize, ProgramError> {
        let source = self.fetch(name, MemoryLayout::Plain)?;
        match source {
            InputSource::Buffer(buffer) => Ok(buffer),
            source => {
                let shape = self.shape(name)?;
                match self.bytes(Box::new(CopyBytes), vec![source], shape) {
                    InputSource::Buffer(buffer) => Ok(buffer),
                    _ => Err(CompilerBug::MissingBuffer.into()),
                }
            }
        }
    }

    pub(crate) fn shape(&self, name: &str) -> Result<&'a [usize], CompilerBug> {
        let value = self.values.get(name).ok_or(CompilerBug::MissingShape)?;
        Ok(&value.shape)
    }

    pub(crate) fn add(
        &mut self,
        kernel: Box<dyn InstructionKernel>,
        inputs: Vec<InputSource>,
        element: BufferElement,
        shape: &[usize],
    ) -> InputSource {
        let output = self.buffers.len();
        self.buffers.push((element, shape.iter().product()));
        self.instructions.push(Instruction {
            kernel,
            inputs,
            output,
            step: self.step,
        });
        InputSource::Buffer(output)
    }

    pub(crate) fn bytes(
        &mut self,
        kernel: Box<dyn InstructionKernel>,
        inputs: Vec<InputSource>,
        shape: &[usize],
    ) -> InputSource {
        self.add(kernel, inputs, BufferElement::Byte, shape)
    }

    /// A value in a layout, transposed if only the other layout exists.
    pub(crate) fn fetch(
        &mut self,
        name: &'a str,
        layout: MemoryLayout,
    ) -> Result<InputSource, CompilerBug> {
        if let Some(source) = self.locations.get(&(name, layout)) {
            return Ok(source.clone());
        }
        let other = match layout {
            MemoryLayout::Plain => MemoryLayout::ChannelsLast,
            MemoryLayout::ChannelsLast => MemoryLayout::Plain,
        };
        let source = self.locations.get(&(name, other));
        let source = source.ok_or(CompilerBug::MissingValue)?.clone();
        let shape = self.shape(name)?;
        let transposed = match coincide(shape) {
            true => source,
            false => {
                let image = [shape[1], shape[2..].iter().product()];
                let kind = self.values.get(name).map(|value| value.kind);
                let element = match kind {
                    Some(ElementKind::Accumulator) => return Err(CompilerBug::AccumulatorLayout),
                    Some(ElementKind::Float) => BufferElement::Float,
                    _ => BufferElement::Byte,
                };
                let kernel: Box<dyn InstructionKernel> = match layout {
                    MemoryLayout::ChannelsLast => Box::new(ToNhwc(image)),
                    MemoryLayout::Plain => Box::new(ToNchw(image)),
                };
                self.add(kernel, vec![source], element, shape)
            }
        };
        self.locations.insert((name, layout), transposed.clone());
        Ok(transposed)
    }

    /// Transposes a channels-last result to ONNX's layout.
    #[expect(
        clippy::wrong_self_convention,
        reason = "NCHW is the target layout of the value, not a conversion of self"
    )]
    pub(crate) fn to_nchw(
        &mut self,
        result: InputSource,
        element: BufferElement,
        output: &[usize],
    ) -> InputSource {
        if coincide(output) {
            return result;
        }
        let size = [output[1], output[2..].iter().product()];
        self.add(Box::new(ToNchw(size)), vec![result], element, output)
    }

    /// The existing layout of a value; the preferred one if both exist.
    pub(crate) fn current_layout(
        &self,
        operand: &'a IrOperand,
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

    pub(crate) fn operand(
        &mut self,
        operand: &'a IrOperand,
        layout: MemoryLayout,
    ) -> Result<InputSource, ProgramError> {
        match operand {
            IrOperand::Int8(name, _)
            | IrOperand::Bytes(name)
            | IrOperand::Floats(name)
            | IrOperand::Int16(name, _) => Ok(self.fetch(name, layout)?),
            IrOperand::Constant(constant) => Ok(constant_in_layout(constant, layout)?),
            IrOperand::Reals(_, values) => Ok(InputSource::Reals(Arc::from(&values[..]))),
        }
    }

    pub(crate) fn shape_of(&self, operand: &'a IrOperand) -> Result<&'a [usize], CompilerBug> {
        match operand {
            IrOperand::Int8(name, _)
            | IrOperand::Bytes(name)
            | IrOperand::Floats(name)
            | IrOperand::Int16(name, _) => self.shape(name),
            IrOperand::Constant(constant) => Ok(&constant.shape),
            IrOperand::Reals(shape, _) => Ok(shape),
        }
    }
}

/// Bytes of a constant in a layout.
pub(crate) fn constant_in_layout(
    constant: &Constant,
    layout: MemoryLayout,
) -> Result<InputSource, Error> {
    let order = layout.order(constant.shape.len());
    let mut bytes = vec![0; constant.integers.len()];
    octet_kernels::int8::permute(&constant.integers, &constant.shape, &order, &mut bytes)?;
    Ok(InputSource::Constant(Arc::from(bytes)))
}

/// Reals of a constant in a layout.
pub(crate) fn reals_in_layout(
    values: &[f32],
    shape: &[usize],
    layout: MemoryLayout,
) -> Result<InputSource, Error> {
    let mut transposed = vec![0.0; values.len()];
    let order = layout.order(shape.len());
    octet_kernels::int8::permute(values, shape, &order, &mut transposed)?;
    Ok(InputSource::Reals(Arc::from(transposed)))
}
