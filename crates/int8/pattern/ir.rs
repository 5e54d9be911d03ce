//! Intermediate representation (IR): integer steps, and the fallback reason of every other node.

use std::collections::HashMap;
use std::sync::Arc;

use octet_kernels::int8::{Affine, Arithmetic, Between, BlockOrder, WideTable, Window};

use super::super::quantization::{Int8Quantization, Int16Quantization};

/// The integer steps of a model, in graph order.
#[derive(Debug, Default)]
pub struct Ir {
    pub steps: Vec<Step>,
    /// Type and shape of every value that a step reads or writes.
    pub values: HashMap<String, IrValue>,
    /// Every node that stays float, with the reason.
    pub floats: Vec<(usize, String)>,
}

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
    pub fn from_quantization(quantization: Option<Int8Quantization>) -> ElementKind {
        quantization.map_or(ElementKind::Float, |quantization| ElementKind::Byte {
            signed: quantization.signed,
        })
    }
}

/// One operation of a region.
#[derive(Clone, Debug)]
pub struct Step {
    /// Display name of the node.
    pub node: String,
    pub operator: String,
    /// Nodes of the graph that the step replaces.
    pub nodes: Vec<usize>,
    pub operation: Operation,
    pub inputs: Vec<Operand>,
    pub output: String,
    /// Further outputs.
    pub more_outputs: Vec<String>,
    /// Quantization of the output's bytes; `None` for reals.
    pub quantization: Option<Int8Quantization>,
    /// Quantization of an output with 16 bits, which is stored as reals.
    pub int16: Option<Int16Quantization>,
    /// Bounds of the output's integers: a fused Relu or Clip.
    pub bounds: [u8; 2],
}

impl Step {
    /// All outputs.
    pub fn outputs(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.output)
            .chain(&self.more_outputs)
            .map(String::as_str)
    }
}

/// Input of a step.
#[derive(Clone, Debug)]
pub enum Operand {
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
pub struct Constant {
    pub name: String,
    pub shape: Vec<usize>,
    pub integers: Vec<u8>,
    pub quantization: Int8Quantization,
}

impl Operand {
    /// Name of the value; `None` for a constant.
    pub fn value(&self) -> Option<&str> {
        match self {
            Operand::Int8(name, _)
            | Operand::Bytes(name)
            | Operand::Floats(name)
            | Operand::Int16(name, _) => Some(name),
            Operand::Constant(_) | Operand::Reals(..) => None,
        }
    }

    /// Real value of one integer step; 1 for floats.
    pub fn scale(&self) -> f32 {
        match self {
            Operand::Int16(_, int16) => int16.grid.scale,
            _ => self.quantization().map_or(1.0, |q| q.scale),
        }
    }

    /// Quantization of the integers; `None` for floats.
    pub fn quantization(&self) -> Option<Int8Quantization> {
        match self {
            Operand::Int8(_, quantization) => Some(*quantization),
            Operand::Constant(constant) => Some(constant.quantization),
            Operand::Bytes(_) | Operand::Floats(_) | Operand::Int16(..) | Operand::Reals(..) => {
                None
            }
        }
    }
}

/// Signed weights with their parameters per output channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    pub shape: Vec<usize>,
    pub integers: Vec<i8>,
    /// One, or one per channel.
    pub scales: Vec<f32>,
    /// Empty if all are 0, else one per channel.
    pub zero_points: Vec<i8>,
}

/// Pairs of matrices in a batched product of two values.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixBatch {
    /// For each product, the batch index of its matrix in both values.
    pub places: Vec<[usize; 2]>,
    /// [rows, depth] times [depth, columns].
    pub sizes: [usize; 3],
}

/// Right factor of an integer product. Its scales are part of the factors of the output.
#[derive(Clone, Debug, PartialEq)]
pub enum Multiplier {
    /// A constant, [depth, columns].
    Matrix(Weights),
    /// Weights, window and groups of a convolution.
    Image(Weights, Window, usize),
    /// Another value of bytes, with its zero point if constant.
    Bytes(MatrixBatch, Option<u8>),
}

/// A product of bytes with weights or other bytes. Its inputs are the bytes of one or both factors,
/// the zero points that are not constant, and the scales.
#[derive(Clone, Debug, PartialEq)]
pub struct IntegerProduct {
    pub by: Multiplier,
    pub zero_point: Option<u8>,
    /// Dequantization of the accumulators; `None` if the accumulators are the output.
    pub reals: Option<Dequantization>,
}

/// Dequantization of accumulators: factors, bias and bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Dequantization {
    /// One per column.
    pub factors: Vec<f32>,
    /// One per column, or empty.
    pub bias: Vec<f32>,
    /// Names of scales known only during the run: up to two. They multiply the factors.
    pub scales: Vec<String>,
    /// Bounds of a fused Relu or Clip.
    pub bounds: Option<[f32; 2]>,
}

/// A normalization of rows.
#[derive(Clone, Debug)]
pub struct RowNormalization {
    /// Values per row.
    pub length: usize,
    /// Number of adjacent values that share one scale.
    pub each: usize,
    pub epsilon: f32,
    pub scale: Vec<f32>,
    pub shift: Option<Vec<f32>>,
}

impl RowNormalization {
    /// Scale and shift from this row on.
    pub fn affine(&self, row: usize) -> Affine<'_> {
        Affine {
            scale: &self.scale,
            bias: self.shift.as_deref(),
            each: self.each,
            first: row * self.length,
        }
    }
}

/// Operation of a step, with all parameters that do not depend on memory layout.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Floats to integers.
    Quantize,
    /// Integers to floats.
    Dequantize,
    /// Floats to the nearest reals of a 16-bit quantization.
    RoundToInt16,
    /// Reals of a 16-bit quantization as floats.
    Int16ToFloats,
    Convolution {
        weights: Weights,
        /// In units of input scale times weight scale; may be empty.
        bias: Vec<i32>,
        window: Window,
        groups: usize,
        transposed: bool,
    },
    /// Rows times a constant matrix.
    Product {
        weights: Weights,
        /// True if the left factor is transposed (Gemm's transA).
        transposed: bool,
        /// True if the weights are stored column by column (Gemm's transB).
        columns_first: bool,
        bias: Vec<i32>,
        /// Gemm's alpha.
        factor: f32,
    },
    /// A batched matrix product of two values.
    BatchedProduct {
        batch: MatrixBatch,
        /// True for each factor that is transposed.
        transposed: [bool; 2],
        /// In units of the product of both scales; may be empty.
        bias: Vec<i32>,
        /// Gemm's alpha.
        factor: f32,
    },
    /// DynamicQuantizeLinear: the outputs are integers, scale and zero point.
    DynamicQuantize,
    /// An integer product with scales or zero points known only during the run.
    IntegerProduct(Box<IntegerProduct>),
    Binary(Binary),
    /// Arithmetic with a real operand or result.
    Reals(Arithmetic),
    /// The Where operator: the second value if the condition is not zero, else the third.
    Where,
    /// Lookup table from bytes to reals.
    RealTable(Box<[f32; 256]>),
    /// Lookup table from 16-bit integers to reals.
    WideTable(Arc<WideTable<f32>>),
    /// Lookup table from 16-bit integers to bytes.
    WideToBytes(Arc<WideTable<u8>>),
    /// Lookup table from bytes to bytes.
    Table(Box<[u8; 256]>),
    /// A byte lookup table per channel.
    ChannelTables(Vec<[u8; 256]>),
    Concat {
        axis: usize,
    },
    MaxPool(Window),
    AveragePool {
        window: Window,
        counts_padding: bool,
    },
    /// Mean or sum over adjacent axes.
    Mean {
        axes: std::ops::Range<usize>,
        sum: bool,
    },
    /// Maximum or minimum over adjacent axes.
    MinMax {
        axes: std::ops::Range<usize>,
        least: bool,
    },
    /// Linear resize of an image: source pixels and weights of each row and each column.
    Resize {
        rows: Vec<Between>,
        columns: Vec<Between>,
    },
    /// Positions selected along each axis, `None` for the fill value: Slice, Pad, nearest Resize.
    Select {
        positions: Vec<Vec<Option<usize>>>,
        fill: u8,
    },
    Transpose(Vec<usize>),
    Reshape,
    /// DepthToSpace and SpaceToDepth.
    DepthSpace {
        block: usize,
        /// Channel order of DepthToSpace; `None` for SpaceToDepth.
        to_space: Option<BlockOrder>,
    },
    /// Over one axis, or over several trailing axes as one.
    Softmax {
        axes: std::ops::Range<usize>,
    },
    /// LayerNormalization, InstanceNormalization and GroupNormalization.
    Normalize(RowNormalization),
}

/// Binary arithmetic; maximum and minimum also take more operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Greatest,
    Least,
}

impl Binary {
    /// The corresponding operation on reals.
    pub fn arithmetic(self) -> Arithmetic {
        match self {
            Binary::Add => Arithmetic::Add,
            Binary::Subtract => Arithmetic::Subtract,
            Binary::Multiply => Arithmetic::Multiply,
            Binary::Greatest => Arithmetic::Greatest,
            Binary::Least => Arithmetic::Least,
        }
    }
}

impl Operation {
    /// Display name.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Quantize => "quantize",
            Operation::Dequantize => "dequantize",
            Operation::RoundToInt16 => "quantize to 16 bits",
            Operation::Int16ToFloats => "dequantize from 16 bits",
            Operation::Convolution { transposed, .. } if *transposed => "transposed convolution",
            Operation::Convolution { groups, .. } if *groups > 1 => "grouped convolution",
            Operation::Convolution { .. } => "convolution",
            Operation::Product { .. } => "product with weights",
            Operation::BatchedProduct { .. } => "product of two values",
            Operation::DynamicQuantize => "dynamic quantization",
            Operation::IntegerProduct(sums) if matches!(sums.by, Multiplier::Image(..)) => {
                "dynamically quantized convolution"
            }
            Operation::IntegerProduct(_) => "dynamically quantized product",
            Operation::Binary(_) => "arithmetic of two values",
            Operation::Reals(_) => "arithmetic on 16 bits",
            Operation::Where => "where",
            Operation::Table(_) => "table",
            Operation::RealTable(_) => "table to 16 bits",
            Operation::WideTable(_) => "table of 16 bits",
            Operation::WideToBytes(_) => "table from 16 bits",
            Operation::ChannelTables(_) => "per-channel table",
            Operation::Concat { .. } => "concat",
            Operation::MaxPool(_) => "maximum pooling",
            Operation::AveragePool { .. } => "average pooling",
            Operation::Mean { sum: false, .. } => "mean",
            Operation::Mean { sum: true, .. } => "sum",
            Operation::MinMax { least: false, .. } => "maximum",
            Operation::MinMax { least: true, .. } => "minimum",
            Operation::Resize { .. } => "linear resize",
            Operation::Select { .. } => "selection",
            Operation::Transpose(_) => "transpose",
            Operation::Reshape => "reshape",
            Operation::DepthSpace { .. } => "depth/space",
            Operation::Softmax { .. } => "softmax",
            Operation::Normalize(_) => "normalization",
        }
    }
}
