//! Operators by what they mean for the roles of products.

/// Operators of com.microsoft and ONNX that are a whole attention, with queries, keys and values in
/// this order.
pub(super) const ATTENTIONS: [&str; 7] = [
    "com.microsoft::GroupQueryAttention",
    "com.microsoft::MultiHeadAttention",
    "com.microsoft::DecoderMaskedMultiHeadAttention",
    "com.microsoft::PackedMultiHeadAttention",
    "com.microsoft::PagedAttention",
    "com.microsoft::SparseAttention",
    "Attention",
];

/// Operators that move the numbers of their first input.
pub(super) const MOVES: [&str; 14] = [
    "Cast",
    "Reshape",
    "Transpose",
    "Squeeze",
    "Unsqueeze",
    "Flatten",
    "Identity",
    "Dropout",
    "Slice",
    "Split",
    "Gather",
    "GatherElements",
    "Expand",
    "Tile",
];

/// Operators that join or choose among the numbers of all their inputs.
pub(super) const JOINS: [&str; 5] = [
    "Concat",
    "Where",
    "ScatterElements",
    "ScatterND",
    "TensorScatter",
];

/// Arithmetic of two operands.
pub(super) const ARITHMETIC: [&str; 7] = ["Add", "Sub", "Mul", "Div", "Pow", "Min", "Max"];

/// Functions of one number.
pub(super) const FUNCTIONS: [&str; 25] = [
    "Relu",
    "LeakyRelu",
    "PRelu",
    "ThresholdedRelu",
    "Elu",
    "Celu",
    "Selu",
    "Gelu",
    "Swish",
    "HardSwish",
    "HardSigmoid",
    "Sigmoid",
    "Tanh",
    "Softplus",
    "Mish",
    "Erf",
    "Clip",
    "Abs",
    "Neg",
    "Exp",
    "Log",
    "Sqrt",
    "com.microsoft::Gelu",
    "com.microsoft::FastGelu",
    "com.microsoft::QuickGelu",
];

/// Activations with a bias or two halves.
pub(super) const WIDE_FUNCTIONS: [&str; 3] = [
    "com.microsoft::BiasGelu",
    "com.microsoft::BiasSplitGelu",
    "com.microsoft::SwiGLU",
];

/// Normalizations of the first input.
pub(super) const NORMALIZATIONS: [&str; 5] = [
    "LayerNormalization",
    "RMSNormalization",
    "SimplifiedLayerNormalization",
    "com.microsoft::SimplifiedLayerNormalization",
    "com.microsoft::RotaryEmbedding",
];
