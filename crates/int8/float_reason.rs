//! Reasons why a node runs in float, with their words. A report shows them beside the node.

use octet_graph::GraphError;
use octet_onnx::tensor::TensorError;

use crate::error::ProgramError;
use crate::resize_geometry::ResizeError;

/// Reason why a node runs in float. In most texts, “it” is the node.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(test, derive(PartialEq))]
pub(crate) enum FloatReason {
    // The node as a whole.
    #[error("it is not a standard ONNX operator")]
    OtherDomain,
    #[error("it has no integer implementation")]
    NotImplemented,
    #[error("{0} has no integer implementation")]
    OperatorNotImplemented(String),
    #[error("the model runs in float by request")]
    ByRequest,
    #[error("it multiplies floats by a block-wise quantized matrix")]
    BlockWiseProduct,
    #[error("a {0} with 16 bits has no integer implementation")]
    NotOn16Bits(&'static str),
    #[error(transparent)]
    Lowering(#[from] ProgramError),
    #[error(transparent)]
    Tensor(#[from] TensorError),
    #[error(transparent)]
    Kernel(#[from] octet_kernels::int8::Error),

    // Its inputs and output.
    #[error("it has no input {0}")]
    NoInput(usize),
    #[error("it has no output")]
    NoOutput,
    #[error("it has {0} inputs")]
    InputCount(usize),
    #[error("the shape of {0} is not known before the run")]
    UnknownShape(String),
    #[error("the type of {0} is not known")]
    UnknownType(String),
    #[error("the type of {0} is not float32 or not known")]
    NotFloat32(String),
    #[error("its input {0} is not quantized")]
    NotQuantized(String),
    #[error("its input is float")]
    FloatInput,
    #[error("its input is empty")]
    EmptyInput,
    #[error("its input is constant or empty")]
    ConstantOrEmptyInput,
    #[error("its input has no channels")]
    NoChannels,
    #[error("its input has the shape {0:?}")]
    InputShape(Vec<usize>),
    #[error("its input {0} of shape {1:?} does not broadcast to {2:?}")]
    Broadcast(String, Vec<usize>, Vec<usize>),
    #[error("it depends on constants only")]
    ConstantsOnly,
    #[error("its output has 16 bits")]
    OutputOf16Bits,
    #[error("its output shape {0:?} does not follow from its input shape {1:?}")]
    OutputShape(Vec<usize>, Vec<usize>),
    #[error("its output has the shape {0:?}, not {1:?}")]
    OtherOutputShape(Vec<usize>, Vec<usize>),

    // The readers of its result.
    #[error("its result is a float output of the model")]
    FloatOutput,
    #[error("its result is read as float by {0}")]
    ReadAsFloat(String),
    #[error("its result is read as float, or by several nodes")]
    ReadBySeveral,
    #[error("its result is not quantized to eight bits: {0}")]
    NotEightBits(Box<FloatReason>),
    #[error("its result is quantized in an unsupported way")]
    UnsupportedQuantization,

    // Quantization parameters.
    #[error("{0} has integers of type {1}")]
    IntegerType(String, &'static str),
    #[error("{0} has one scale per channel")]
    ScalePerChannel(String),
    #[error("the scale of {0} is {1}, not a positive number")]
    ScaleNotPositive(String, f32),
    #[error("the scale of {0} is not a float constant")]
    ScaleNotConstant(String),
    #[error("{0} has {1} zero points for one scale")]
    SeveralZeroPoints(String, usize),
    #[error("the zero point of {0} is not constant")]
    ZeroPointNotConstant(String),
    #[error("its 16-bit integers {0} are inputs of the graph")]
    InputsOf16Bits(String),
    #[error("its 16-bit integers {0} come from {1}")]
    Source16Bits(String, String),
    #[error("its 16-bit integers {0} failed to compile in a region")]
    Refused16Bits(String),
    #[error("its 16-bit integers {0} are not quantized from float32")]
    NotFromFloat32(String),
    #[error("its 16-bit integers {0} are watched or an output of the graph")]
    Observed16Bits(String),
    #[error("its 16-bit integers {0} are read by {1}")]
    Reader16Bits(String, String),

    // Weights and biases.
    #[error("its weight {0} is not quantized")]
    WeightNotQuantized(String),
    #[error("its weight {0} is computed during the run")]
    ComputedWeight(String),
    #[error("its weight {0} has block-wise scales")]
    BlockWiseWeight(String),
    #[error("its weight {0} has the type {1}")]
    WeightType(String, &'static str),
    #[error("its weight {0} has the shape {1:?}")]
    WeightShape(String, Vec<usize>),
    #[error("a scale of {0} is not a positive number")]
    WeightScale(String),
    #[error("{0} has {1} zero points for {2} scales")]
    WeightZeroPoints(String, usize, usize),
    #[error("its weight has scales along axis {0}, not along its output channels")]
    WeightScaleAxis(i64),
    #[error("its weight has {0} scales for {1} output channels")]
    WeightScaleCount(usize, usize),
    #[error("the zero point of its weight is not constant")]
    WeightZeroPointNotConstant,
    #[error("its weight has {0} zero points for {1} output channels")]
    WeightZeroPointCount(usize, usize),
    #[error("its bias {0} is not constant")]
    BiasNotConstant(String),
    #[error("its bias has the shape {0:?} for {1} channels")]
    BiasShape(Vec<usize>, usize),
    #[error("its bias does not fit into 32 bits")]
    BiasTooLarge,
    #[error("its accumulators can exceed 32 bits")]
    Overflow,

    // Products.
    #[error("its factors {0:?} and {1:?} do not fit together")]
    Factors(Vec<usize>, Vec<usize>),
    #[error("its factors {0:?} and {1:?} are not matrices that fit together")]
    Matrices(Vec<usize>, Vec<usize>),
    #[error("its factors or its output are empty")]
    EmptyFactors,
    #[error("its factor {0} is not a matrix")]
    NotMatrix(String),
    #[error("its alpha {0} is not supported")]
    Alpha(f32),
    #[error("a product of two 16-bit values is faster in float")]
    FactorsOf16Bits,
    #[error("its input {0} is a constant")]
    ConstantInput(String),
    #[error("the type of its input {0} is not int8 or uint8, or not known")]
    InputType(String),
    #[error("its constant {0} is not int8 or uint8")]
    ConstantType(String),
    #[error("its input has several zero points ({0})")]
    InputZeroPoints(String),
    #[error("its zero point is empty")]
    EmptyZeroPoint,
    #[error("the zero point {0} has another type than the integers")]
    ZeroPointType(String),
    #[error("one of its three outputs has no name")]
    UnnamedOutput,

    // Windows.
    #[error("its number of groups is not positive")]
    Groups,
    #[error("its image has {0} axes and its weight {1}; only 3 or 4 are supported")]
    ImageAxes(usize, usize),
    #[error("its weight {0:?} with {1} groups does not fit its image {2:?}")]
    WeightForImage(Vec<usize>, usize, Vec<usize>),
    #[error("its output shape {0:?} does not follow from its window")]
    WindowOutput(Vec<usize>),
    #[error("its weight has a kernel of {0:?}, but its attribute kernel_shape is {1:?}")]
    KernelShape(Vec<usize>, Vec<i64>),
    #[error("its window has {0} spatial axes for the image {1:?}; only 1 or 2 are supported")]
    WindowAxes(usize, Vec<usize>),
    #[error("its kernel, strides, dilations or pads are not valid")]
    InvalidWindow,
    #[error("its pads {0:?} are not supported")]
    WindowPads(Vec<usize>),
    #[error("its output_padding {0} is not supported")]
    OutputPadding(i64),
    #[error("its output has {0} values along axis {1}, but its window gives {2}")]
    WindowSize(usize, usize, i64),
    #[error("its window does not map {0:?} to {1:?}")]
    PoolingOutput(Vec<usize>, Vec<usize>),
    #[error("its second output, the indices, is used")]
    IndicesUsed,

    // Axes and positions.
    #[error("its axis {0} is out of range for rank {1}")]
    AxisOutOfRange(i64, usize),
    #[error("an axis of {0:?} is too long")]
    AxisTooLong(Vec<usize>),
    #[error("its axes are not constant")]
    AxesNotConstant,
    #[error("it reduces no axis")]
    ReducesNothing,
    #[error("it has no axes")]
    NoAxes,
    #[error("its axes {0:?} are not adjacent")]
    AxesNotAdjacent(Vec<usize>),
    #[error("its perm {0:?} is not a permutation of {1} axes")]
    Permutation(Vec<i64>, usize),
    #[error("blocks of size {0} do not fit the shape {1:?}")]
    Blocks(usize, Vec<usize>),
    #[error("its attribute axis is missing")]
    AxisMissing,
    #[error("the shape {0:?} of its input {1} does not fit the output shape {2:?}")]
    ConcatShape(Vec<usize>, String, Vec<usize>),
    #[error("its inputs do not add up to the output shape {0:?}")]
    ConcatSum(Vec<usize>),
    #[error("all its inputs are constant")]
    AllConstant,
    #[error("its pads are not constant")]
    PadsNotConstant,
    #[error("its pads {0:?} do not fit {1} axes")]
    PadCount(Vec<i64>, usize),
    #[error("its mode {0} is not supported")]
    Mode(String),
    #[error("its fill value is not constant")]
    FillNotConstant,
    #[error("its fill value {0} is not representable in the input's quantization")]
    FillValue(f32),
    #[error("its {0} are not constant")]
    SliceNotConstant(&'static str),
    #[error("it has no starts")]
    NoStarts,
    #[error("it has no ends")]
    NoEnds,
    #[error("its starts, ends, axes and steps differ in length")]
    SliceLengths,
    #[error("one of its steps is 0")]
    StepOfZero,
    #[error("one of its steps is too large")]
    StepTooLarge,
    #[error("its indices {0} are not constant")]
    IndicesNotConstant(String),
    #[error("its output has the shape {0:?}, but the model declares {1:?}")]
    DeclaredShape(Vec<usize>, Vec<usize>),
    #[error("its index {0} is out of range for size {1}")]
    IndexOutOfRange(i64, usize),
    #[error("its output {0} of shape {1:?} does not fit the input shape {2:?}")]
    SplitShape(String, Vec<usize>, Vec<usize>),
    #[error("it uses antialiasing or changes the number of axes")]
    Antialiasing,
    #[error("its scales are not constant")]
    ScalesNotConstant,
    #[error("its mode {0} has no integer implementation")]
    ResizeMode(String),
    #[error(transparent)]
    Resize(#[from] ResizeError),

    // Functions of one value, and choices.
    #[error("it depends on two different quantized values")]
    TwoOperands,
    #[error("its input is float, from {0} ({1})")]
    FloatFrom(String, String),
    #[error("{0} is also read as float by another node")]
    AlsoReadAsFloat(String),
    #[error("the chain has more than {0} float operators")]
    ChainTooLong(usize),
    #[error("it is not a function of one quantized value of its own shape")]
    OtherShape,
    #[error("its table has the wrong size")]
    TableSize,
    #[error(transparent)]
    TableGraph(#[from] GraphError),
    /// The [`FloatEvaluator`](crate::FloatEvaluator) failed with this text.
    #[error("{0}")]
    TableEvaluation(String),
    #[error("its result is not float32")]
    ResultNotFloat32,
    #[error("it has no integer implementation for two values")]
    NotForTwoValues,
    #[error("it does not have one slope per channel")]
    Slopes,
    #[error("the type of its condition {0} is not Boolean or not known")]
    ConditionType(String),
    #[error("its constant {0} has infinite or NaN values")]
    NotFinite(String),
    #[error("both of its values are constant")]
    BothConstant,

    // Normalizations.
    #[error("{0} is not a constant of {1} values")]
    ConstantOf(String, usize),
    #[error("it is in training mode")]
    Training,
    #[error("its output for the mean or deviation is used")]
    StatisticsUsed,
    #[error("its groups don't divide {0} channels")]
    GroupsOfChannels(usize),
    #[error("its {0} is not constant")]
    AffineNotConstant(&'static str),
    #[error("its {0} has the shape {1:?}, which does not fit")]
    AffineShape(&'static str, Vec<usize>),
}
