//! Reasons why a node stays float, with their words.

use std::fmt;

use serde::{Serialize, Serializer};

/// Reason why a node stays float. In the texts, “it” is the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaysFloat {
    /// The operator's descriptor has the reason.
    OfOperator(&'static str),

    // The settings.
    /// A node that the settings name.
    BySettings,
    /// An operator that the settings don't list.
    OperatorBySettings,
    /// A node whose output stays float by the settings.
    OutputBySettings,
    /// A product of two activations, with the setting `constant_only`.
    OnlyConstantWeights,

    // The values of the node.
    /// A node without float32 values.
    NotFloat32,
    /// A node behind a value that stays float.
    FloatInput,
    /// A node whose input is an initializer.
    ConstantInput,
    /// A node that would share one of several scales.
    PerChannelInput,
    /// A node with an infinite constant, in the static scheme.
    NotFinite,
    /// A value whose type inference failed.
    UnknownType,

    // The weight of the node.
    /// An operator without a weight.
    NoWeight,
    /// A weight that is an activation.
    VariableWeight,
    /// A weight of another type.
    WeightNotFloat32,
    /// A weight without elements.
    EmptyWeight,
    /// A weight with an infinity or NaN, in a scheme without samples.
    WeightNotFinite,
    /// A weight with a range beyond float32.
    WeightTooLarge,
    /// A weight with another number of axes than two.
    NotAMatrix,
    /// A convolution's weight with less than three axes.
    NoSpatialAxis,
    /// A recurrent layer's weight without its three axes.
    NotThreeAxes,
    /// A table that is smaller than the nodes for its integers.
    SmallTable,
    /// A table with a reader that needs floats.
    SharedTable,

    // The scheme.
    /// An operator whose bodies are quantized node by node.
    RunsBodies,
    /// An operator without a static form.
    NoStaticForm,
    /// A 4-bit MaxPool, which ONNX Runtime refuses.
    FourBitMaxPool,
    /// An operator without an integer operator in ONNX.
    NoIntegerOperator,
    /// An operator without a dynamic form.
    NotDynamic,
    /// An operator whose weights are never blocks.
    NotInBlocks,
    /// A constant with a number beyond float16.
    TooLargeForFloat16,
    /// An activation beyond float16 on the samples.
    FarActivation,
    /// A matrix with columns much shorter than a block.
    ShortColumns,
    /// A form or method of blocks that needs the whole weight, in a model of any size.
    WholeWeightNeeded,
    /// A Gather whose table is computed.
    VariableTable,
    /// A Gather along another axis than the first.
    GathersNoRows,
    /// A Gather from a table of integers.
    TableNotFloat,
    /// A Gather with the method HQQ.
    FractionalZeroPoints,
    /// A Gather from rows that end inside a block.
    UnevenRows,
    /// A Gemm with alpha or beta.
    ScaledProduct,
    /// A Gemm with transA.
    TransposedInput,
    /// An LSTM with another layout.
    LstmLayout,
    /// An EmbedLayerNormalization with its third output.
    EmbeddingSum,
    /// An EmbedLayerNormalization with position ids.
    PositionIds,

    // Operator patterns.
    /// An inner node of a layer normalization.
    InLayerNormalization,
    /// An inner node of an RMS normalization.
    InRmsNormalization,
    /// An inner node of a GELU.
    InGelu,
    /// An inner node of a Swish, HardSwish or Mish.
    InGate,
}

impl StaysFloat {
    /// The words of the reason.
    pub const fn words(self) -> &'static str {
        match self {
            StaysFloat::OfOperator(words) => words,
            StaysFloat::BySettings => "the settings keep it float",
            StaysFloat::OperatorBySettings => "the settings leave its operator float",
            StaysFloat::OutputBySettings => "the settings keep its output float",
            StaysFloat::OnlyConstantWeights => {
                "its weight is no constant, and the settings take only those"
            }
            StaysFloat::NotFloat32 => "it does not work on float32 values",
            StaysFloat::FloatInput => "its input is not quantized",
            StaysFloat::ConstantInput => "its input is a constant",
            StaysFloat::PerChannelInput => "its input is a weight with a scale a channel",
            StaysFloat::NotFinite => {
                "a constant of it is infinite or not a number, which has no integer"
            }
            StaysFloat::UnknownType => "the type of one of its values is not known",
            StaysFloat::NoWeight => "it has no weight",
            StaysFloat::VariableWeight => "its weight is not a constant",
            StaysFloat::WeightNotFloat32 => "its weight is not float32",
            StaysFloat::EmptyWeight => "its weight is empty",
            StaysFloat::WeightNotFinite => {
                "one of its constants is infinite or NaN, which no integer represents"
            }
            StaysFloat::WeightTooLarge => {
                "the range of its weight is too large for a float32 scale"
            }
            StaysFloat::NotAMatrix => "its weight is not a matrix",
            StaysFloat::NoSpatialAxis => "its weight has no spatial axis",
            StaysFloat::NotThreeAxes => "its weights don't have three axes",
            StaysFloat::SmallTable => "its table is too small to gain from integers",
            StaysFloat::SharedTable => "another node needs its table as float32",
            StaysFloat::RunsBodies => "it runs its graphs, whose nodes are listed for themselves",
            StaysFloat::NoStaticForm => "it has no int8 form here yet",
            StaysFloat::FourBitMaxPool => "ONNX Runtime's MaxPool supports no 4-bit integers",
            StaysFloat::NoIntegerOperator => "ONNX has no integer operator for it",
            StaysFloat::NotDynamic => "only products with a weight are quantized dynamically",
            StaysFloat::NotInBlocks => {
                "only the weights of MatMul and Gemm are quantized in blocks"
            }
            StaysFloat::TooLargeForFloat16 => {
                "one of its constants has a number that is too large for float16"
            }
            StaysFloat::FarActivation => {
                "one of its values was too large for float16 on the samples"
            }
            StaysFloat::ShortColumns => {
                "its columns are so short that blocks would need more bytes than float32"
            }
            StaysFloat::WholeWeightNeeded => {
                "this form or method of blocks needs the whole weight in memory"
            }
            StaysFloat::VariableTable => "its table is not a constant",
            StaysFloat::GathersNoRows => "it reads no rows of its table",
            StaysFloat::TableNotFloat => "its table is not of floats",
            StaysFloat::FractionalZeroPoints => {
                "GatherBlockQuantized has no fractional zero points"
            }
            StaysFloat::UnevenRows => "the length of its rows is no multiple of a block",
            StaysFloat::ScaledProduct => "it scales its product or its bias",
            StaysFloat::TransposedInput => "it transposes its first input",
            StaysFloat::LstmLayout => "its integer operator supports only layout 0, time first",
            StaysFloat::EmbeddingSum => "its integer operator has no output for the sum",
            StaysFloat::PositionIds => "its integer operator has no input for position ids",
            StaysFloat::InLayerNormalization => {
                "it is inside a layer normalization, which is quantized as one operator"
            }
            StaysFloat::InRmsNormalization => {
                "it is inside an RMS normalization, which is quantized as one operator"
            }
            StaysFloat::InGelu => "it is inside a GELU, which is quantized as one operator",
            StaysFloat::InGate => {
                "it is inside a Swish, HardSwish or Mish, which is quantized as one operator"
            }
        }
    }
}

impl fmt::Display for StaysFloat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// A report shows the words.
impl Serialize for StaysFloat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.words())
    }
}
