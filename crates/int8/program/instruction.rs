//! Instructions of a program: each reads some buffers and writes one.

use std::sync::Arc;

use octet_kernels::int8::{
    Arithmetic, Average, Between, BlockOrder, ConvWeights, DepthwiseWeights, Form, Grid, Scale,
    Table, Target, TransposedWeights, Way, Weights, WideTable, Window,
};

use crate::pattern::{MatrixBatch, RowNormalization};

/// Location of an instruction's input.
#[derive(Clone, Debug)]
pub(super) enum InputSource {
    Buffer(usize),
    /// An input of the region, in ONNX's layout.
    Input(usize),
    Constant(Arc<[u8]>),
    Reals(Arc<[f32]>),
}

/// Element type of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BufferElement {
    Byte,
    Float,
    Accumulator,
}

impl BufferElement {
    pub(super) const ALL: [BufferElement; 3] = [
        BufferElement::Byte,
        BufferElement::Float,
        BufferElement::Accumulator,
    ];
}

/// One instruction: it writes `output` from `inputs`.
pub(super) struct Instruction {
    pub(super) work: Work,
    pub(super) inputs: Vec<InputSource>,
    pub(super) output: usize,
    /// Index of its step in the program.
    pub(super) step: usize,
}

/// Packed weights of a convolution, by algorithm.
pub(super) enum PackedConvolution {
    Dense(ConvWeights),
    Depthwise(DepthwiseWeights),
    Transposed(TransposedWeights),
}

/// Conversion of accumulators: requantization by a multiplier per column, or dequantization by a
/// scale per column.
#[derive(Default)]
pub(super) struct ProductEpilogue {
    pub(super) factors: Vec<f32>,
    /// Bias of float outputs.
    pub(super) bias: Option<Arc<[f32]>>,
    /// `None` for float outputs.
    pub(super) to: Option<Target>,
    /// Rounds float outputs to this 16-bit grid.
    pub(super) rounding: Option<Grid>,
}

/// A convolution of a batch of images.
pub(super) struct ConvolutionBatch {
    pub(super) kernel: PackedConvolution,
    pub(super) window: Window,
    pub(super) images: usize,
    pub(super) from: ImageSize,
    pub(super) to: ImageSize,
}

/// A product with weights, without its epilogue.
pub(super) enum WeightedProduct {
    /// A number of rows times a matrix.
    Rows(usize, Weights),
    Convolution(Box<ConvolutionBatch>),
}

/// Right factor of an integer product.
pub(super) enum RightFactor {
    Weights(WeightedProduct),
    /// Another value of bytes, with its zero point if constant.
    Bytes(MatrixBatch, Option<u8>),
}

/// An integer product with scales or zero points known only during the run. It reads the bytes of
/// one or both factors, the zero points that are not constant, and the scales.
pub(super) struct DynamicProduct {
    pub(super) by: RightFactor,
    pub(super) zero_point: Option<u8>,
    pub(super) scales: usize,
    /// Per column, without these scales.
    pub(super) factors: Vec<f32>,
    pub(super) bias: Option<Arc<[f32]>>,
}

/// A product of 16-bit integers as two products of their bytes, which are then combined.
pub(super) struct Int16Product {
    pub(super) weighted: WeightedProduct,
    pub(super) bias: Option<Vec<i32>>,
    /// Zero points and factors for the high and the low bytes, in this order.
    pub(super) zero_points: [u8; 2],
    pub(super) epilogues: [ProductEpilogue; 2],
    pub(super) to: CombinedOutput,
}

/// Output of the combined products.
pub(super) enum CombinedOutput {
    Bytes(Target),
    /// Reals, rounded to a grid if there is one.
    Reals(Option<Grid>),
}

/// Size of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ImageSize {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) channels: usize,
}

impl ImageSize {
    pub(super) fn count(&self) -> usize {
        self.height * self.width * self.channels
    }
}

impl WeightedProduct {
    /// ISA of the kernel, and the algorithm if it is not the usual one.
    fn form(&self) -> String {
        let form = match self {
            WeightedProduct::Rows(_, weights) => weights.form(),
            WeightedProduct::Convolution(convolution) => match &convolution.kernel {
                PackedConvolution::Dense(weights) if weights.way() == Way::Winograd => {
                    return format!("{} by Winograd", weights.form());
                }
                PackedConvolution::Dense(weights) => weights.form(),
                PackedConvolution::Depthwise(weights) => weights.form(),
                PackedConvolution::Transposed(weights) => weights.form(),
            },
        };
        form.name().to_owned()
    }
}

/// Number of parts in the search for minimum and maximum.
pub(super) const PARTS: usize = 16;

/// Broadcast and zero point of one side of an arithmetic.
#[derive(Clone, Copy, Debug)]
pub(super) struct BroadcastSide {
    pub(super) each: usize,
    pub(super) zero_point: u8,
}

/// Operation of an instruction.
pub(super) enum Work {
    /// `None` if scale and zero point are inputs after the floats.
    Quantize(Option<Scale>),
    Dequantize(Scale),
    /// Conversion with a transposition, image by image: [channels, pixels].
    QuantizeToNhwc(Option<Scale>, [usize; 2]),
    DequantizeToNchw(Scale, [usize; 2]),
    /// Minimum and maximum of each of [`PARTS`] parts of floats, and the scale and zero point that
    /// follow.
    Ends,
    ScaleOfEnds,
    ZeroOfEnds,
    /// Transpositions with [channels, pixels] of each image.
    ToNhwc([usize; 2]),
    ToNchw([usize; 2]),
    FloatsToNchw([usize; 2]),
    FloatsToNhwc([usize; 2]),
    AccumulatorsToNchw([usize; 2]),
    /// Rounds reals to a 16-bit grid.
    RoundToGrid(Grid),
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
    MaxPoolOfReals(Window, [ImageSize; 2]),
    /// Mean or sum over the middle axis of [.., middle, inner].
    MeanOfReals([usize; 2], bool),
    /// Maximum or minimum over the middle axis of [.., middle, inner].
    ReduceMinMaxOfReals([usize; 2], bool),
    /// Sum of accumulators, each times its factor.
    CombineAccumulators(Vec<f64>),
    /// Softmax of rows of this length.
    SoftmaxOfReals(usize),
    NormalizeReals(RowNormalization),
    /// Clamps floats.
    Clamp([f32; 2]),
    /// Converts signed bytes from outside to the unsigned representation.
    Flip,
    /// Copies bytes.
    Copy,
    Product {
        weighted: WeightedProduct,
        bias: Option<Vec<i32>>,
        zero_point: u8,
        epilogue: ProductEpilogue,
    },
    /// A product of 16-bit integers, from their high and low bytes.
    Int16Product(Box<Int16Product>),
    DynamicProduct(Box<DynamicProduct>),
    /// A batched matrix product of two values.
    BatchedProduct {
        batch: MatrixBatch,
        bias: Option<Vec<i32>>,
        zero_points: [u8; 2],
        epilogue: ProductEpilogue,
    },
    Add {
        sides: [BroadcastSide; 2],
        factors: [f32; 2],
        to: Target,
    },
    Multiply {
        sides: [BroadcastSide; 2],
        factor: f32,
        to: Target,
    },
    /// Maximum or minimum of bytes with equal parameters.
    MinMax {
        sides: [BroadcastSide; 2],
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
    MaxPool(Window, usize, [ImageSize; 2]),
    AveragePool(Window, usize, [ImageSize; 2], Average, u8),
    /// Maximum or minimum over the middle axis of [.., middle, inner].
    ReduceMinMax([usize; 2], bool),
    /// Mean over the middle axis of [outer, middle, inner].
    Mean {
        sizes: [usize; 3],
        zero_point: u8,
        factor: f32,
        to: Target,
    },
    Resize {
        images: usize,
        from: ImageSize,
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
        from: ImageSize,
        block: usize,
        to_space: Option<BlockOrder>,
    },
    Softmax {
        length: usize,
        from: f32,
        to: Scale,
    },
    Normalize {
        norm: RowNormalization,
        from: Scale,
        to: Scale,
    },
}

impl Work {
    /// ISA and algorithm of the kernel, for kernels with variants.
    pub(super) fn form(&self) -> Option<String> {
        Some(match self {
            Work::Product { weighted, .. } => weighted.form(),
            Work::Int16Product(product) => product.weighted.form(),
            Work::DynamicProduct(measured) => match &measured.by {
                RightFactor::Weights(weighted) => weighted.form(),
                RightFactor::Bytes(..) => Form::best().name().to_owned(),
            },
            Work::BatchedProduct { .. } => Form::best().name().to_owned(),
            _ => return None,
        })
    }
}
