//! What matching finds: steps on eight-bit integers, and of every other node why it stays float.

use std::collections::HashMap;
use std::sync::Arc;

use octet_kernels::int8::{Affine, Arithmetic, Between, BlockOrder, WideTable, Window};

use super::super::quantization::{Quantization, Wide};

/// The steps that a model's quantized nodes become, in the order of the graph.
#[derive(Debug, Default)]
pub(in super::super) struct Network {
    pub(in super::super) steps: Vec<Step>,
    /// Type and shape of every value that a step reads or makes.
    pub(in super::super) values: HashMap<String, Value>,
    /// Every node that stays float, with the reason.
    pub(in super::super) floats: Vec<(usize, String)>,
}

/// A value between steps.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Value {
    pub(in super::super) shape: Vec<usize>,
    pub(in super::super) kind: Kind,
}

/// What the elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Kind {
    /// Bytes, unsigned inside a region; `signed` says what they are outside.
    Byte { signed: bool },
    /// 32-bit floats.
    Float,
    /// 32-bit sums of products.
    Sum,
}

impl Kind {
    /// Bytes that mean something, or floats.
    pub(in super::super) fn of(quantization: Option<Quantization>) -> Kind {
        quantization.map_or(Kind::Float, |quantization| Kind::Byte {
            signed: quantization.signed,
        })
    }
}

/// One operation of a region.
#[derive(Clone, Debug)]
pub(in super::super) struct Step {
    /// The name of the node that a person knows it by.
    pub(in super::super) node: String,
    pub(in super::super) operator: String,
    /// The nodes of the graph that it stands for.
    pub(in super::super) nodes: Vec<usize>,
    pub(in super::super) operation: Operation,
    pub(in super::super) inputs: Vec<Operand>,
    pub(in super::super) output: String,
    /// What else it makes.
    pub(in super::super) beside: Vec<String>,
    /// What the output's bytes mean; `None` where the step makes reals.
    pub(in super::super) quantization: Option<Quantization>,
    /// Which reals come out where they stand for integers of 16 bits.
    pub(in super::super) wide: Option<Wide>,
    /// Least and greatest integer that comes out: a fused Relu or Clip.
    pub(in super::super) bounds: [u8; 2],
}

impl Step {
    /// Everything it makes.
    pub(in super::super) fn made(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.output)
            .chain(&self.beside)
            .map(String::as_str)
    }
}

/// What a step reads.
#[derive(Clone, Debug)]
pub(in super::super) enum Operand {
    /// A value, and what its integers mean here.
    Integers(String, Quantization),
    /// Integers that never change.
    Constant(Constant),
    /// Bytes of which only a run tells what they mean.
    Bytes(String),
    /// Floats.
    Floats(String),
    /// The reals of 16-bit integers, by the name of the integers.
    Wide(String, Wide),
    /// Reals that never change: shape and values.
    Reals(Vec<usize>, Vec<f32>),
}

/// Integers from the file, in the unsigned form.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Constant {
    pub(in super::super) name: String,
    pub(in super::super) shape: Vec<usize>,
    pub(in super::super) integers: Vec<u8>,
    pub(in super::super) quantization: Quantization,
}

impl Operand {
    /// The value's name; `None` for a constant.
    pub(in super::super) fn value(&self) -> Option<&str> {
        match self {
            Operand::Integers(name, _)
            | Operand::Bytes(name)
            | Operand::Floats(name)
            | Operand::Wide(name, _) => Some(name),
            Operand::Constant(_) | Operand::Reals(..) => None,
        }
    }

    /// The real value of one step; 1 where there are none.
    pub(in super::super) fn scale(&self) -> f32 {
        match self {
            Operand::Wide(_, wide) => wide.grid.scale,
            _ => self.quantization().map_or(1.0, |q| q.scale),
        }
    }

    /// What the integers mean; `None` for floats.
    pub(in super::super) fn quantization(&self) -> Option<Quantization> {
        match self {
            Operand::Integers(_, quantization) => Some(*quantization),
            Operand::Constant(constant) => Some(constant.quantization),
            Operand::Bytes(_) | Operand::Floats(_) | Operand::Wide(..) | Operand::Reals(..) => None,
        }
    }
}

/// Weights, signed, with what they mean for each output channel.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Weights {
    pub(in super::super) shape: Vec<usize>,
    pub(in super::super) integers: Vec<i8>,
    /// One, or one a channel.
    pub(in super::super) scales: Vec<f32>,
    /// Empty where all are 0; else one a channel.
    pub(in super::super) zero_points: Vec<i8>,
}

/// Which matrices of two values are multiplied.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Stacks {
    /// Of each product, the places of its matrices in both values.
    pub(in super::super) places: Vec<[usize; 2]>,
    /// [rows, depth] times [depth, columns].
    pub(in super::super) sizes: [usize; 3],
}

/// What bytes are multiplied by. The scales are among the factors of what comes out.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum Multiplier {
    /// A constant, [depth, columns].
    Matrix(Weights),
    /// A convolution's weights, its window and its groups.
    Image(Weights, Window, usize),
    /// Other bytes, with their zero point where that is known.
    Bytes(Stacks, Option<u8>),
}

/// A product of bytes with weights or other bytes. Its inputs are the bytes of one factor or of both, the zero points that are not
/// known, and the scales that are multiplied.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Sums {
    pub(in super::super) by: Multiplier,
    pub(in super::super) zero_point: Option<u8>,
    /// What makes reals of the sums; sums come out where nothing does.
    pub(in super::super) reals: Option<Scaled>,
}

/// How sums become reals: times factors, plus a bias, between bounds.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Scaled {
    /// One a column.
    pub(in super::super) factors: Vec<f32>,
    /// One a column, or none at all.
    pub(in super::super) bias: Vec<f32>,
    /// Scales that multiply the factors and only a run tells: none, one, or those of two values.
    pub(in super::super) scales: Vec<String>,
    /// Those of a Relu or Clip.
    pub(in super::super) bounds: Option<[f32; 2]>,
}

/// A normalization of rows.
#[derive(Clone, Debug)]
pub(in super::super) struct Norm {
    /// Values of a row.
    pub(in super::super) length: usize,
    /// How many neighbours a scale is for.
    pub(in super::super) each: usize,
    pub(in super::super) epsilon: f32,
    pub(in super::super) scale: Vec<f32>,
    pub(in super::super) shift: Option<Vec<f32>>,
}

impl Norm {
    /// What is multiplied and added from this row on.
    pub(in super::super) fn affine(&self, row: usize) -> Affine<'_> {
        Affine {
            scale: &self.scale,
            bias: self.shift.as_deref(),
            each: self.each,
            first: row * self.length,
        }
    }
}

/// What a step computes, with everything of it that doesn't depend on where its values lie.
#[derive(Clone, Debug)]
pub(in super::super) enum Operation {
    /// Floats to integers.
    Quantize,
    /// Integers to floats.
    Dequantize,
    /// Floats to the nearest reals of 16-bit integers.
    Snap,
    /// Reals of 16-bit integers as floats.
    Unsnap,
    Convolution {
        weights: Weights,
        /// In steps of the input's scale times the weight's; may be empty.
        bias: Vec<i32>,
        window: Window,
        groups: usize,
        transposed: bool,
    },
    /// Rows times a constant matrix.
    Product {
        weights: Weights,
        /// Whether the rows are columns in memory.
        turned: bool,
        /// Whether the weights lie column after column.
        columns_first: bool,
        bias: Vec<i32>,
        /// Gemm's alpha.
        factor: f32,
    },
    /// A product of two values, matrix by matrix.
    Pair {
        stacks: Stacks,
        /// Which of them are matrices turned over.
        turned: [bool; 2],
        /// In steps of both scales; may be empty.
        bias: Vec<i32>,
        /// Gemm's alpha.
        factor: f32,
    },
    /// Floats to integers over the range they have in this run: the integers, and beside them their scale and zero point.
    Measure,
    /// A product of bytes of which only a run tells what they mean.
    Sums(Box<Sums>),
    Binary(Binary),
    /// Arithmetic with reals on a side or behind.
    Reals(Arithmetic),
    /// The second value where the first is not zero, elsewhere the third.
    Choice,
    /// A function of one integer that makes reals.
    RealTable(Box<[f32; 256]>),
    /// A function of one integer of 16 bits that makes reals.
    WideTable(Arc<WideTable<f32>>),
    /// The same that makes bytes.
    WideToBytes(Arc<WideTable<u8>>),
    /// A function of one integer, with the shape kept.
    Table(Box<[u8; 256]>),
    /// The same for each channel of its own.
    ChannelTables(Vec<[u8; 256]>),
    Concat {
        axis: usize,
    },
    MaxPool(Window),
    AveragePool {
        window: Window,
        counts_padding: bool,
    },
    /// The mean over neighbouring axes, or the sum.
    Mean {
        axes: std::ops::Range<usize>,
        sum: bool,
    },
    /// The greatest over neighbouring axes, or the least.
    Extreme {
        axes: std::ops::Range<usize>,
        least: bool,
    },
    /// A linear resize of an image: the neighbours of each row and each column.
    Resize {
        rows: Vec<Between>,
        columns: Vec<Between>,
    },
    /// Positions picked along each axis, or the filling: slices, padding, nearest resizes.
    Select {
        positions: Vec<Vec<Option<usize>>>,
        fill: u8,
    },
    Transpose(Vec<usize>),
    Reshape,
    /// DepthToSpace and SpaceToDepth.
    Blocks {
        block: usize,
        /// The order of the channels; `None` for SpaceToDepth.
        to_space: Option<BlockOrder>,
    },
    /// Over one axis, or over the last ones taken as one.
    Softmax {
        axes: std::ops::Range<usize>,
    },
    /// LayerNormalization and its kin.
    Normalize(Norm),
}

/// Arithmetic of two values; of the last two also of more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Greatest,
    Least,
}

impl Binary {
    /// The same of reals.
    pub(in super::super) fn arithmetic(self) -> Arithmetic {
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
    /// A word for it, for a person.
    pub(in super::super) fn name(&self) -> &'static str {
        match self {
            Operation::Quantize => "quantize",
            Operation::Dequantize => "dequantize",
            Operation::Snap => "quantize to 16 bits",
            Operation::Unsnap => "dequantize from 16 bits",
            Operation::Convolution { transposed, .. } if *transposed => "transposed convolution",
            Operation::Convolution { groups, .. } if *groups > 1 => "grouped convolution",
            Operation::Convolution { .. } => "convolution",
            Operation::Product { .. } => "product with weights",
            Operation::Pair { .. } => "product of two values",
            Operation::Measure => "quantize by its own range",
            Operation::Sums(sums) if matches!(sums.by, Multiplier::Image(..)) => {
                "convolution by a measured range"
            }
            Operation::Sums(_) => "product by a measured range",
            Operation::Binary(_) => "arithmetic of two values",
            Operation::Reals(_) => "arithmetic on 16 bits",
            Operation::Choice => "choice",
            Operation::Table(_) => "table",
            Operation::RealTable(_) => "table to 16 bits",
            Operation::WideTable(_) => "table of 16 bits",
            Operation::WideToBytes(_) => "table from 16 bits",
            Operation::ChannelTables(_) => "table for each channel",
            Operation::Concat { .. } => "join",
            Operation::MaxPool(_) => "maximum pooling",
            Operation::AveragePool { .. } => "average pooling",
            Operation::Mean { sum: false, .. } => "mean",
            Operation::Mean { sum: true, .. } => "sum",
            Operation::Extreme { least: false, .. } => "greatest",
            Operation::Extreme { least: true, .. } => "least",
            Operation::Resize { .. } => "linear resize",
            Operation::Select { .. } => "selection",
            Operation::Transpose(_) => "transpose",
            Operation::Reshape => "reshape",
            Operation::Blocks { .. } => "regrouping",
            Operation::Softmax { .. } => "softmax",
            Operation::Normalize(_) => "normalization",
        }
    }
}
