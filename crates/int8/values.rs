//! Values of a model inside a region: element types, operands, and the inputs and outputs of a
//! step.

use crate::error::CompilerBug;
use crate::quantization::{Int8Quantization, Int16Quantization};

/// A value between steps.
#[derive(Clone, Debug, PartialEq)]
pub struct IrValue {
    /// Size of each axis.
    pub shape: Vec<usize>,
    /// Element type.
    pub kind: ElementKind,
}

/// Element type inside a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementKind {
    /// Bytes, unsigned inside a region. `signed` is their type outside.
    Byte {
        /// True for int8, false for uint8.
        signed: bool,
    },
    /// 32-bit floats.
    Float,
    /// 32-bit accumulators.
    Accumulator,
}

impl ElementKind {
    /// Bytes if there is a quantization, else floats.
    pub(crate) fn from_quantization(quantization: Option<Int8Quantization>) -> ElementKind {
        quantization.map_or(ElementKind::Float, |quantization| ElementKind::Byte {
            signed: quantization.signed,
        })
    }
}

/// Inputs and outputs of a step.
#[derive(Clone, Debug)]
pub(crate) struct StepValues {
    pub(crate) inputs: Vec<IrOperand>,
    pub(crate) output: String,
    /// Further outputs.
    pub(crate) more_outputs: Vec<String>,
    /// Quantization of the output's bytes; `None` for reals.
    pub(crate) quantization: Option<Int8Quantization>,
    /// Quantization of an output with 16 bits, which is stored as reals.
    pub(crate) int16: Option<Int16Quantization>,
    /// Bounds of the output's integers: a fused Relu or Clip.
    pub(crate) bounds: [u8; 2],
}

impl StepValues {
    /// A float output until set otherwise.
    pub(crate) fn new(inputs: Vec<IrOperand>, output: &str) -> StepValues {
        StepValues {
            inputs,
            output: output.to_owned(),
            more_outputs: Vec::new(),
            quantization: None,
            int16: None,
            bounds: [0, 255],
        }
    }

    /// All outputs.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.output)
            .chain(&self.more_outputs)
            .map(String::as_str)
    }

    /// Names of the values that the step reads.
    pub(crate) fn read(&self) -> impl Iterator<Item = &str> {
        self.inputs.iter().filter_map(IrOperand::value)
    }

    /// True if an input or the output has 16 bits, so the step computes with reals.
    pub(crate) fn is_on_reals(&self) -> bool {
        self.int16.is_some() || self.inputs.iter().any(IrOperand::is_int16)
    }
}

/// Input of a step.
#[derive(Clone, Debug)]
pub(crate) enum IrOperand {
    /// A value, with the quantization that this step reads it by.
    Int8(String, Int8Quantization),
    /// A constant of integers.
    Constant(Constant),
    /// Bytes whose scale and zero point are known only during the run.
    Bytes(String),
    /// Floats.
    Floats(String),
    /// The reals of a 16-bit value, under the name of its integers.
    Int16(String, Int16Quantization),
    /// A constant of reals: shape and values.
    Reals(Vec<usize>, Vec<f32>),
}

/// Constant integers in the unsigned representation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constant {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) integers: Vec<u8>,
    pub(crate) quantization: Int8Quantization,
}

impl IrOperand {
    /// Name of the value; `None` for a constant.
    pub(crate) fn value(&self) -> Option<&str> {
        match self {
            IrOperand::Int8(name, _)
            | IrOperand::Bytes(name)
            | IrOperand::Floats(name)
            | IrOperand::Int16(name, _) => Some(name),
            IrOperand::Constant(_) | IrOperand::Reals(..) => None,
        }
    }

    pub(crate) fn is_int16(&self) -> bool {
        matches!(self, IrOperand::Int16(..))
    }

    /// Real value of one integer step; 1 for floats.
    pub(crate) fn scale(&self) -> f32 {
        match self {
            IrOperand::Int16(_, int16) => int16.grid.scale,
            _ => self.quantization().map_or(1.0, |q| q.scale),
        }
    }

    /// Quantization of the integers; `None` for floats.
    pub(crate) fn quantization(&self) -> Option<Int8Quantization> {
        match self {
            IrOperand::Int8(_, quantization) => Some(*quantization),
            IrOperand::Constant(constant) => Some(constant.quantization),
            IrOperand::Bytes(_)
            | IrOperand::Floats(_)
            | IrOperand::Int16(..)
            | IrOperand::Reals(..) => None,
        }
    }

    /// Quantization of an operand that lowering requires to have one.
    pub(crate) fn quantized(&self) -> Result<Int8Quantization, CompilerBug> {
        self.quantization().ok_or(CompilerBug::MissingQuantization)
    }
}
