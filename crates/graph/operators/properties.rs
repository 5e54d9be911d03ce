//! Properties of operators that passes ask for instead of names.

/// A property that an operator has or lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Every output element is an element of an input, so the operator adds no error of its own.
    MovesData,
    /// The output holds only values of the first input, and zeros.
    KeepsRange,
    /// The output holds the elements of the first input in their order.
    Reshapes,
    /// Only the shape, the order or the element type changes.
    ChangesForm,
    /// Values stay and only the element type may change.
    ChangesType,
    /// The output differs from run to run.
    Random,
    /// The number of output elements depends on the values of the inputs.
    DataDependentShape,
    /// The output depends on the shape of the input only.
    OfShapes,
    /// Attributes hold graphs that the operator runs.
    HoldsGraphs,
    /// Works on sequences or optional values.
    OfSequences,
    /// Its work is a matrix product.
    MatrixProduct,
    /// ONNX Runtime multiplies its integers in pairs, which saturate on processors without VNNI.
    SaturatesPairs,
    /// Occurs only in quantized models.
    OnlyQuantized,
    /// `prepare` decomposes it into ONNX's basic operators.
    Fused,
    /// The output lies between 0 and 1, as scores do.
    Squashes,
    /// Produces gates: the other operand of a multiplication carries the values.
    Gates,
    /// Selects the best of many boxes.
    SelectsBoxes,
    /// Linear, or may follow a linear operator at the end of a classifier.
    EndsClassifier,
    /// Integers of the first input stay or move towards zero, so indices stay valid.
    KeepsIndices,
    /// An infinite number in an input reaches the output.
    PassesInfinity,
    /// With a single input, the output is that input.
    IdleWithOneInput,
    /// Slices, gathers along an axis, or repeats elements of the first input.
    SelectsElements,
    /// The output holds elements of several inputs.
    MergesInputs,
    /// Arithmetic of two operands, or the larger or smaller of them.
    Arithmetic,
    /// An activation function of the first input, or a function that activations consist of.
    Activation,
    /// An activation function of the first input with a bias, or of its two halves.
    WideActivation,
    /// Normalizes or rotates the vectors of the first input.
    ChangesVectors,
    /// A whole attention; its first inputs are queries, keys and values.
    Attention,
    /// Applies to 8-bit integers and keeps their scale and zero point.
    CarriesIntegers,
    /// Resizes images as the attribute `mode` says.
    ResizesImages,
}

/// A set of properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Properties(u32);

impl Properties {
    pub(super) const NONE: Properties = Properties(0);

    pub(super) const fn with(self, more: &[Property]) -> Properties {
        let (mut bits, mut at) = (self.0, 0);
        while at < more.len() {
            bits |= 1 << more[at] as u32;
            at += 1;
        }
        Properties(bits)
    }

    pub(super) const fn contains(self, property: Property) -> bool {
        self.0 >> property as u32 & 1 == 1
    }
}

/// The rule that counts multiply-accumulate operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacRule {
    /// Without matrix products.
    Zero,
    /// Each output element is a sum over the weight's channels and window. The number is the
    /// weight's input slot.
    Conv(usize),
    /// Each input element contributes to a whole weight window.
    ConvTranspose,
    /// Each output element is a sum over the last axis of the first input.
    Product,
    /// Like `Product`, along the other axis if the attribute transA is set.
    Gemm,
    /// Each step multiplies the input and the state with a weight.
    Recurrent,
}

/// The treatment of an operator in a float16 model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Float16 {
    /// It computes in float16.
    Converts,
    /// It stays float32, for this reason.
    Stays(&'static str),
    /// It stays float32, for this reason, if an output beyond the first is used.
    StaysWithMoreOutputs(&'static str),
}

/// The source of an operator's output type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputType {
    /// Its inputs, or the operator itself.
    Implied,
    /// An attribute, which is required.
    Attribute(&'static str),
    /// An attribute, or the inputs if it is absent.
    OptionalAttribute(&'static str),
    /// The tensor of the attribute `value`.
    Value,
}

/// The role of an operator in equalization: the way channel factors pass through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelRole {
    /// No factor passes.
    Blocks,
    /// A layer: its weight absorbs the factors of input and output.
    Layer(ChannelPosition),
    /// A normalization: its scale absorbs the factors of the output.
    Norm(ChannelPosition),
    /// Commutes with a positive factor on a channel and keeps channels in place.
    Commutes,
    /// Adds its operands or takes the largest or smallest of them.
    Adds,
    /// Multiplies two operands.
    Multiplies,
    /// Divides its first operand by the second.
    Divides,
    /// Joins its operands along an axis.
    Joins,
    /// Drops or adds axes of size 1.
    Reshapes,
}

/// The channel axis of a layer's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelPosition {
    /// Axis 1, behind the batch.
    Second,
    /// The last axis.
    Last,
}
