//! What a program's instructions are: each reads some buffers and writes one.

use std::sync::Arc;

use octet_kernels::int8::{
    Arithmetic, Average, Between, BlockOrder, ConvWeights, DepthwiseWeights, Form, Grid, Scale,
    Table, Target, TransposedWeights, Way, Weights, WideTable, Window,
};

use crate::engine::integer::pattern::{Norm, Stacks};

/// Where an instruction reads from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Buffer(usize),
    /// What the region is given, in ONNX's layout.
    Input(usize),
    Constant(Arc<[u8]>),
    Reals(Arc<[f32]>),
}

/// What a buffer holds.
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
    /// The place in the program's steps of what it belongs to.
    pub(super) step: usize,
}

/// The weights of a convolution, by its kind.
pub(super) enum Kernel {
    Dense(ConvWeights),
    Depthwise(DepthwiseWeights),
    Transposed(TransposedWeights),
}

/// What becomes of sums: integers by a multiplier for each column, or floats by a scale for each.
#[derive(Default)]
pub(super) struct Epilogue {
    pub(super) factors: Vec<f32>,
    /// What is added to floats.
    pub(super) bias: Option<Arc<[f32]>>,
    /// `None` where floats come out.
    pub(super) to: Option<Target>,
    /// The reals of 16 bits that these floats are brought to.
    pub(super) snap: Option<Grid>,
}

/// A convolution of several images of one size.
pub(super) struct Convolution {
    pub(super) kernel: Kernel,
    pub(super) window: Window,
    pub(super) images: usize,
    pub(super) from: Plane,
    pub(super) to: Plane,
}

/// A product with weights, but for what becomes of its sums.
pub(super) enum Weighted {
    /// So many rows times a matrix.
    Rows(usize, Weights),
    Convolution(Box<Convolution>),
}

/// What bytes are multiplied by.
pub(super) enum By {
    Weights(Weighted),
    /// Other bytes, with their zero point where that is known.
    Bytes(Stacks, Option<u8>),
}

/// A product of bytes of which only a run tells what they mean. It reads the bytes of one factor or of both, the zero points that
/// are not known, and so many scales.
pub(super) struct Measured {
    pub(super) by: By,
    pub(super) zero_point: Option<u8>,
    pub(super) scales: usize,
    /// Of each column, without these scales.
    pub(super) factors: Vec<f32>,
    pub(super) bias: Option<Arc<[f32]>>,
}

/// A product of integers of 16 bits, whose two bytes it reads: two products, brought together.
pub(super) struct WideProduct {
    pub(super) weighted: Weighted,
    pub(super) bias: Option<Vec<i32>>,
    /// Zero points and factors of both bytes, the high one first.
    pub(super) zero_points: [u8; 2],
    pub(super) epilogues: [Epilogue; 2],
    pub(super) to: Joined,
}

/// What becomes of the two products' sum.
pub(super) enum Joined {
    Bytes(Target),
    /// Brought to a grid if there is one.
    Reals(Option<Grid>),
}

/// An image's sizes.
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
    /// The form that runs, and the way where it isn't the usual one.
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

/// In so many parts the ends of floats are looked for.
pub(super) const PARTS: usize = 16;

/// One side of an arithmetic: how it is repeated over the output, and what its integers mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) each: usize,
    pub(super) zero_point: u8,
}

/// What an instruction does.
pub(super) enum Work {
    /// `None` where scale and zero point are what comes beside the floats.
    Quantize(Option<Scale>),
    Dequantize(Scale),
    /// The same from floats with channels first, image by image: [channels, pixels].
    QuantizeToLast(Option<Scale>, [usize; 2]),
    DequantizeToFirst(Scale, [usize; 2]),
    /// The least and the greatest of each of [`PARTS`] parts of floats; then what scale and zero point these ends make.
    Ends,
    ScaleOfEnds,
    ZeroOfEnds,
    /// [channels, pixels] of each image.
    ToLast([usize; 2]),
    ToFirst([usize; 2]),
    FloatsToFirst([usize; 2]),
    FloatsToLast([usize; 2]),
    SumsToFirst([usize; 2]),
    /// Reals to the nearest of 16-bit integers.
    Snap(Grid),
    /// One byte of the 16-bit integers of reals.
    Plane(Grid, octet_kernels::int8::Plane),
    /// Arithmetic of reals, each side repeated so often.
    Arithmetic {
        how: Arithmetic,
        each: [usize; 2],
        to: Option<Grid>,
    },
    RealTable(Box<[f32; 256]>),
    WideTable(Arc<WideTable<f32>>),
    WideToBytes(Arc<WideTable<u8>>),
    MaxPoolOfReals(Window, [Plane; 2]),
    /// The mean over the middle of [middle, inner], or the sum.
    MeanOfReals([usize; 2], bool),
    /// The greatest over the middle of [middle, inner], or the least.
    ExtremeOfReals([usize; 2], bool),
    /// Sums times a factor each, added up.
    JoinSums(Vec<f64>),
    /// Of rows of this length.
    SoftmaxOfReals(usize),
    NormalizeReals(Norm),
    /// Floats between two bounds.
    Clamp([f32; 2]),
    /// Signed bytes from outside to unsigned.
    Flip,
    /// Bytes as they are.
    Copy,
    Product {
        weighted: Weighted,
        bias: Option<Vec<i32>>,
        zero_point: u8,
        epilogue: Epilogue,
    },
    /// The same of 16-bit integers, from both their bytes.
    WideProduct(Box<WideProduct>),
    Measured(Box<Measured>),
    /// Products of the matrices of two values.
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
    /// The greatest or the least of bytes that mean the same.
    Extreme {
        sides: [Side; 2],
        least: bool,
    },
    Table(Table),
    /// A table for each channel, and how many elements of a channel lie together.
    ChannelTables(Vec<Table>, usize),
    /// Rows of these widths joined, each through its table.
    Concat {
        rows: usize,
        parts: Vec<(usize, Option<Table>)>,
    },
    MaxPool(Window, usize, [Plane; 2]),
    AveragePool(Window, usize, [Plane; 2], Average, u8),
    /// The greatest over the middle of [middle, inner], or the least.
    ExtremeOver([usize; 2], bool),
    /// The mean over the middle of [outer, middle, inner].
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
    /// The form of the kernel that runs, where it has several.
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
