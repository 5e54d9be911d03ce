//! A rule: what a file must fulfil, in words and as data.

use octet_onnx::schema::DataType;

/// A rule of a target.
#[derive(Clone, Copy, Debug)]
pub struct TargetRule {
    /// The name in the documents.
    pub name: &'static str,
    /// The rule in words.
    pub text: &'static str,
    /// The document that the rule comes from.
    pub source: &'static str,
    /// The rule as data.
    pub requirement: RuleData,
}

/// The requirement of a rule, as data.
///
/// An activation is a value that the model computes, or a constant that takes part in an elementwise
/// operator. A weight is a constant factor of Conv, ConvTranspose, Gemm or MatMul, or
/// the scale of a normalization.
#[derive(Clone, Copy, Debug)]
pub enum RuleData {
    /// The version of ONNX's own operators is in this range.
    Opset {
        /// The oldest version.
        least: i64,
        /// The newest version.
        most: i64,
    },
    /// The version of the file format is at most this one.
    IrVersion(i64),
    /// All operators are of these domains; `""` is ONNX's own.
    Domains(&'static [&'static str]),
    /// None of these operators occurs; those of other domains have the form `domain::Operator`.
    WithoutOperators(&'static [&'static str]),
    /// Quantized activations have one of these types.
    ActivationTypes(&'static [DataType]),
    /// Quantized weights have one of these types.
    WeightTypes(&'static [DataType]),
    /// Quantized inputs and outputs of a node, except weights and biases, have one type.
    OneType,
    /// Zero points of activations are 0.
    SymmetricActivations,
    /// Zero points of weights are 0, or the middle of an unsigned type.
    SymmetricWeights,
    /// Integers of weights of signed types are never the lowest one.
    NarrowWeights,
    /// An activation has one scale.
    OneScale,
    /// A weight has several scales only in these operators, along this axis.
    ChannelScales(&'static [(&'static str, i64)]),
    /// Blocks with a scale each lie in tensors of two axes or more.
    BlocksOfMatrices,
    /// Biases are floats.
    FloatBiases,
    /// Quantized biases have no zero point.
    BiasesWithoutZeroPoint,
    /// The scale of a quantized bias is that of its input times that of its weight.
    BiasScales,
    /// Scales of activations are at least this range over the number of integers.
    LeastRange(f32),
    /// All computed inputs of such a node are quantized, or none.
    AllInputs(&'static [&'static str]),
    /// Quantized inputs and outputs of these operators share scale and zero point.
    OneScalePerNode(&'static [&'static str]),
    /// The output of this operator has this scale and zero point, if it has this type.
    OutputScale(&'static [FixedScale]),
    /// The weights of these operators are unsigned.
    UnsignedWeights(&'static [&'static str]),
    /// The name of the file ends with one of these, before `.onnx`, or is `model.onnx`.
    FileNames(&'static [&'static str]),
}

/// Scale and zero point that an operator's output must have.
#[derive(Clone, Copy, Debug)]
pub struct FixedScale {
    pub(crate) operator: &'static str,
    pub(crate) element: DataType,
    pub(crate) scale: f32,
    pub(crate) zero_point: i64,
}
