//! Instructions of a program: each reads some buffers and writes one.

use std::sync::Arc;

use octet_kernels::int8::{
    Arithmetic, Average, Between, BlockOrder, ConvWeights, DepthwiseWeights, Form, Grid, Scale,
    Table, Target, TransposedWeights, Way, Weights, WideTable, Window,
};

use crate::engine::integer::pattern::{Norm, Stacks};

/// Location of an instruction's input.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Buffer(usize),
    /// An input of the region, in ONNX's layout.
    Input(usize),
    Constant(Arc<[u8]>),
    Reals(Arc<[f32]>),
}

/// Element type of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Byte,
    Float,
    Sum,
}

impl Element {
    pub(super) const ALL: [Element; 3] = [Element::Byte, Element::Float, Element::Sum];
}

/// One instruction: it writes `output` from `inputs`.
pub(super) struct Instruction {
    pub(super) work: Work,
    pub(super) inputs: Vec<Source>,
    pub(super) output: usize,
    /// Index of its step in the program.
    pub(super) step: usize,
}

/// Packed weights of a convolution, by algorithm.
pub(super) enum Kernel {
    Dense(ConvWeights),
    Depthwise(DepthwiseWeights),
    Transposed(TransposedWeights),
}

/// Conversion of accumulators: requantization by a multiplier per column, or dequantization by a
/// scale per column.
#[derive(Default)]
pub(super) struct Epilogue {
    pub(super) factors: Vec<f32>,
    /// Bias of float outputs.
    pub(super) bias: Option<Arc<[f32]>>,
    /// `None` for float outputs.
    pub(super) to: Option<Target>,
    /// Rounds float outputs to this 16-bit grid.
    pub(super) snap: Option<Grid>,
}

/// A convolution of a batch of images.
pub(super) struct Convolution {
    pub(super) kernel: Kernel,
    pub(super) window: Window,
    pub(super) images: usize,
    pub(super) from: Plane,
    pub(super) to: Plane,
}

/// A product with weights, without its epilogue.
pub(super) enum Weighted {
    /// A number of rows times a matrix.
    Rows(usize, Weights),
    Convolution(Box<Convolution>),
}

/// Right factor of an integer product.
pub(super) enum By {
    Weights(Weighted),
    /// Another value of bytes, with its zero point if constant.
    Bytes(Stacks, Option<u8>),
}

/// An integer product with scales or zero points known only during the run. It reads the bytes of
/// one or both factors, the zero points that are not constant, and the scales.
pub(super) struct Measured {
    pub(super) by: By,
    pub(super) zero_point: Option<u8>,
    pub(super) scales: usize,
    /// Per column, without these scales.
    pub(super) factors: Vec<f32>,
    pub(super) bias: Option<Arc<[f32]>>,
}

/// A product of 16-bit integers as two products of their bytes, which are then combined.
pub(super) struct WideProduct {
    pub(super) weighted: Weighted,
    pub(super) bias: Option<Vec<i32>>,
    /// Zero points and factors for the high and the low bytes, in this order.
    pub(super) zero_points: [u8; 2],
    pub(super) epilogues: [Epilogue; 2],
    pub(super) to: Joined,
}

/// Output of the combined products.
pub(super) enum Joined {
    Bytes(Target),
    /// Reals, rounded to a grid if there is one.
    Reals(Option<Grid>),
}

/// Size of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plane {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) channels: usize,
}

impl Plane {
    pub(super) fn count(&self) -> usize {
        self.height * self.width * self.channels
    }
}

impl Weighted {
    /// ISA of the kernel, and the algorithm if it is not the usual one.
    fn form(&self) -> String {
        let form = match self {
            Weighted::Rows(_, weights) => weights.form(),
            Weighted::Convolution(convolution) => match &convolution.kernel {
                Kernel::Dense(weights) if weights.way() == Way::Winograd => {
                    return format!("{} by Winograd", weights.form());
                }
                Kernel::Dense(weights) => weights.form(),
                Kernel::Depthwise(weights) => weights.form(),
                Kernel::Transposed(weights) => weights.form(),
            },
        };
        form.name().to_owned()
    }
}

/// Number of parts in the search for minimum and maximum.
pub(super) const PARTS: usize = 16;

/// Broadcast and zero point of one side of an arithmetic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) each: usize,
    pub(super) zero_point: u8,
}

/// Operation of an instruction.
pub(super) enum Work {
    /// `None` if scale and zero point are inputs after the floats.
    Quantize(Option<Scale>),
    Dequantize(Scale),
    /// Conversion with a transposition, image by image: [channels, pixels].
    QuantizeToLast(Option<Scale>, [usize; 2]),
    DequantizeToFirst(Scale, [usize; 2]),
    /// Minimum and maximum of each of [`PARTS`] parts of floats, and the scale and zero point that
    /// follow.
    Ends,
    ScaleOfEnds,
    ZeroOfEnds,
    /// Transpositions with [channels, pixels] of each image.
    ToLast([usize; 2]),
    ToFirst([usize; 2]),
    FloatsToFirst([usize; 2]),
    FloatsToLast([usize; 2]),
    SumsToFirst([usize; 2]),
    /// Rounds reals to a 16-bit grid.
    Snap(Grid),
    /// High or low bytes of the 16-bit integers of reals.
    Plane(Grid, octet_kernels::int8::Plane),
    /// Arithmetic of reals, with the number of repetitions of each side's values.
    Arithmetic {
        how: Arithmetic,
        each: [usize; 2],
        to: Option<Grid>,
    },
    RealTable(Box<[f32; 256]>),
    WideTable(Arc<WideTable<f32>>),
    WideToBytes(Arc<WideTable<u8>>),
    MaxPoolOfReals(Window, [Plane; 2]),
    /// Mean or sum over the middle axis of [.., middle, inner].
    MeanOfReals([usize; 2], bool),
    /// Maximum or minimum over the middle axis of [.., middle, inner].
    ExtremeOfReals([usize; 2], bool),
    /// Sum of accumulators, each times its factor.
    JoinSums(Vec<f64>),
    /// Softmax of rows of this length.
    SoftmaxOfReals(usize),
    NormalizeReals(Norm),
    /// Clamps floats.
    Clamp([f32; 2]),
    /// Converts signed bytes from outside to the unsigned representation.
    Flip,
    /// Copies bytes.
    Copy,
    Product {
        weighted: Weighted,
        bias: Option<Vec<i32>>,
        zero_point: u8,
        epilogue: Epilogue,
    },
    /// A product of 16-bit integers, from their high and low bytes.
    WideProduct(Box<WideProduct>),
    Measured(Box<Measured>),
    /// A batched matrix product of two values.
    Pair {
        stacks: Stacks,
        bias: Option<Vec<i32>>,
        zero_points: [u8; 2],
        epilogue: Epilogue,
    },
    Add {
        sides: [Side; 2],
        factors: [f32; 2],
        to: Target,
    },
    Multiply {
        sides: [Side; 2],
        factor: f32,
        to: Target,
    },
    /// Maximum or minimum of bytes with equal parameters.
    Extreme {
        sides: [Side; 2],
        least: bool,
    },
    Table(Table),
    /// A table per channel, and the number of adjacent elements of one channel.
    ChannelTables(Vec<Table>, usize),
    /// Concatenates rows of these widths, each through its table.
    Concat {
        rows: usize,
        parts: Vec<(usize, Option<Table>)>,
    },
    MaxPool(Window, usize, [Plane; 2]),
    AveragePool(Window, usize, [Plane; 2], Average, u8),
    /// Maximum or minimum over the middle axis of [.., middle, inner].
    ExtremeOver([usize; 2], bool),
    /// Mean over the middle axis of [outer, middle, inner].
    Mean {
        sizes: [usize; 3],
        zero_point: u8,
        factor: f32,
        to: Target,
    },
    Resize {
        images: usize,
        from: Plane,
        rows: Vec<Between>,
        columns: Vec<Between>,
        zero_point: u8,
        factor: f32,
        to: Target,
    },
    Select {
        sizes: Vec<usize>,
        positions: Vec<Vec<Option<usize>>>,
        fill: u8,
    },
    Permute {
        sizes: Vec<usize>,
        order: Vec<usize>,
    },
    Blocks {
        images: usize,
        from: Plane,
        block: usize,
        to_space: Option<BlockOrder>,
    },
    Softmax {
        length: usize,
        from: f32,
        to: Scale,
    },
    Normalize {
        norm: Norm,
        from: Scale,
        to: Scale,
    },
}

impl Work {
    /// ISA and algorithm of the kernel, for kernels with variants.
    pub(super) fn form(&self) -> Option<String> {
        Some(match self {
            Work::Product { weighted, .. } => weighted.form(),
            Work::WideProduct(product) => product.weighted.form(),
            Work::Measured(measured) => match &measured.by {
                By::Weights(weighted) => weighted.form(),
                By::Bytes(..) => Form::best().name().to_owned(),
            },
            Work::Pair { .. } => Form::best().name().to_owned(),
            _ => return None,
        })
    }
}
