//! Which operators can be quantized, and the treatment each gets.

use super::embedding;
use crate::graph::Model;
use crate::onnx::schema::NodeProto;

/// How the inputs and outputs of an operator are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    /// Input and output activations, a weight in slot 1, a bias in slot 2.
    Weighted(WeightAxis),
    /// Constants are weights, everything else activations.
    MatMul,
    /// Every float input and output is an activation; constants take the activations' type.
    Elementwise,
    /// Folded into the range of what comes before it where that is possible.
    Clamp,
    /// The output shares the input's scale, if the input is quantized.
    Share,
    /// Padding with a value the input can hold shares its scale.
    Pad,
    /// The input is quantized, all outputs share its scale.
    Split,
    /// Shares the scale of the data it picks from: a constant, or a value that is quantized.
    Gather,
    /// Quantized where both branches are.
    Where,
    /// The input an activation, the scale a weight, the bias in 32 bits.
    Normalize,
}

/// The axis of a weight's output channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WeightAxis {
    /// Always this one.
    Fixed(usize),
    /// 0 if the attribute transB is set, else 1.
    OfGemm,
}

impl WeightAxis {
    /// The axis at this node.
    pub(super) fn of(self, node: &NodeProto) -> usize {
        match self {
            WeightAxis::Fixed(axis) => axis,
            WeightAxis::OfGemm => usize::from(node.int("transB").unwrap_or(0) == 0),
        }
    }
}

/// The axis of the channels that a factor of a MatMul makes: the columns of the second, the rows of the first.
pub(super) fn factor_channels(slot: usize, rank: usize) -> Option<usize> {
    rank.checked_sub(2).map(|rows| rows + slot.min(1))
}

/// An operator of ONNX Runtime's own that its `quantize_static` takes, too.
pub(super) const EMBEDDING: &str = "com.microsoft::EmbedLayerNormalization";

/// The treatment of an operator; `None` where it stays float.
pub(super) fn treatment(operator: &str) -> Option<Treatment> {
    Some(match operator {
        "Conv" => Treatment::Weighted(WeightAxis::Fixed(0)),
        "ConvTranspose" => Treatment::Weighted(WeightAxis::Fixed(1)),
        "Gemm" => Treatment::Weighted(WeightAxis::OfGemm),
        "MatMul" => Treatment::MatMul,
        "Add" | "Mul" | "Concat" | "Sigmoid" | "Softmax" | "LeakyRelu" | "GlobalAveragePool"
        | "ArgMax" | "CumSum" | EMBEDDING => Treatment::Elementwise,
        // ONNX Runtime leaves these float.
        "Sub" | "Div" | "HardSwish" | "HardSigmoid" | "Gelu" | "Erf" | "Tanh" | "Elu" | "PRelu"
        | "ReduceMean" | "ReduceSum" | "Max" | "Min" => Treatment::Elementwise,
        "Relu" | "Clip" => Treatment::Clamp,
        "Reshape" | "Transpose" | "Squeeze" | "Unsqueeze" | "Flatten" | "Slice" | "AveragePool"
        | "MaxPool" | "TopK" | "Resize" => Treatment::Share,
        "DepthToSpace" | "SpaceToDepth" | "GlobalMaxPool" | "ReduceMax" | "ReduceMin" => {
            Treatment::Share
        }
        "Pad" => Treatment::Pad,
        "Split" => Treatment::Split,
        "Gather" | "GatherElements" => Treatment::Gather,
        "Where" => Treatment::Where,
        "InstanceNormalization"
        | "LayerNormalization"
        | "BatchNormalization"
        | "GroupNormalization" => Treatment::Normalize,
        _ => return None,
    })
}

/// Whether ONNX Runtime's `quantize_static` takes an operator by default.
pub(super) fn is_onnx_runtimes(operator: &str) -> bool {
    const OURS_ONLY: [&str; 19] = [
        "Sub",
        "Div",
        "HardSwish",
        "HardSigmoid",
        "Gelu",
        "Erf",
        "Tanh",
        "Elu",
        "PRelu",
        "ReduceMean",
        "ReduceSum",
        "Max",
        "Min",
        "DepthToSpace",
        "SpaceToDepth",
        "GlobalMaxPool",
        "ReduceMax",
        "ReduceMin",
        "GroupNormalization",
    ];
    treatment(operator).is_some() && !OURS_ONLY.contains(&operator)
}

/// Why nodes of an operator stay float; `None` where they can be int8.
pub fn float_reason(operator: &str) -> Option<&'static str> {
    if treatment(operator).is_some() {
        return None;
    }
    Some(match operator {
        "If" | "Loop" | "Scan" => "its subgraphs are left as they are",
        "LSTM" | "GRU" | "RNN" => "recurrent layers lose too much with fixed scales",
        "Shape" | "Size" | "Cast" | "Range" | "NonZero" | "ConstantOfShape" | "Constant"
        | "Equal" | "Less" | "Greater" | "Not" | "And" | "Or" | "OneHot" => {
            "it computes shapes, indices or conditions"
        }
        "Identity" | "Dropout" => "it changes nothing and is taken out",
        name if name.contains("::") => "it is not an operator of ONNX itself",
        _ => "it has no int8 form here yet",
    })
}

/// Whether a model holds quantized operators.
pub fn is_quantized(model: &Model) -> bool {
    model
        .graph
        .nodes
        .iter()
        .any(|node| is_quantized_operator(node.op_type.as_deref().unwrap_or_default()))
}

/// Operators that only quantized models have.
pub(super) fn is_quantized_operator(operator: &str) -> bool {
    matches!(
        operator,
        "QuantizeLinear"
            | "DequantizeLinear"
            | "DynamicQuantizeLinear"
            | "ConvInteger"
            | "MatMulInteger"
            | "MatMulIntegerToFloat"
            | "DynamicQuantizeMatMul"
            | "DynamicQuantizeLSTM"
            | "MatMulNBits"
            | "QGemm"
            | "QAttention"
            | embedding::OPERATOR
    ) || operator.starts_with("QLinear")
}
