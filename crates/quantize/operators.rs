//! The quantization treatment of each operator.

use super::embedding;
use octet_graph::Model;
use octet_onnx::schema::NodeProto;

/// The treatment of an operator's inputs and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    /// Activations in and out, a weight in slot 1, a bias in slot 2.
    Weighted(WeightAxis),
    /// Constants are weights, everything else activations.
    MatMul,
    /// Every float input and output is an activation; constants take the activations' type.
    Elementwise,
    /// Folded into the node before it where that is exact.
    Clamp,
    /// The output shares the input's scale; quantized only if the input is.
    Share,
    /// The output shares the input's scale if the padding value is representable in it.
    Pad,
    /// The input is quantized; all outputs share its scale.
    Split,
    /// The output shares the scale of the data, which is a constant or a quantized value.
    Gather,
    /// Quantized if both branches are.
    Where,
    /// The input is an activation, the scale a weight, the bias int32.
    Normalize,
}

/// The axis of a weight's output channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WeightAxis {
    /// A fixed axis.
    Fixed(usize),
    /// Axis 0 if the attribute transB is set, else 1.
    OfGemm,
}

impl WeightAxis {
    /// The axis for a given node.
    pub(super) fn at(self, node: &NodeProto) -> usize {
        match self {
            WeightAxis::Fixed(axis) => axis,
            WeightAxis::OfGemm => usize::from(node.int("transB").unwrap_or(0) == 0),
        }
    }
}

/// The output channel axis of a MatMul operand: columns of the right one, rows of the left one.
pub(super) fn operand_channel_axis(slot: usize, rank: usize) -> Option<usize> {
    rank.checked_sub(2).map(|rows| rows + slot.min(1))
}

/// A com.microsoft operator that `quantize_static` quantizes.
pub(super) const EMBEDDING: &str = "com.microsoft::EmbedLayerNormalization";

/// The treatment of an operator; `None` if it always stays float.
pub(super) fn treatment(operator: &str) -> Option<Treatment> {
    Some(match operator {
        "Conv" => Treatment::Weighted(WeightAxis::Fixed(0)),
        "ConvTranspose" => Treatment::Weighted(WeightAxis::Fixed(1)),
        "Gemm" => Treatment::Weighted(WeightAxis::OfGemm),
        "MatMul" => Treatment::MatMul,
        "Add" | "Mul" | "Concat" | "Sigmoid" | "Softmax" | "LeakyRelu" | "GlobalAveragePool"
        | "ArgMax" | "CumSum" | EMBEDDING => Treatment::Elementwise,
        // `quantize_static` leaves these float.
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

/// True for the operators that ONNX Runtime's `quantize_static` quantizes by default.
pub(super) fn is_onnx_runtime_default(operator: &str) -> bool {
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

/// The reason why an operator stays float; `None` if it can be quantized.
pub fn float_reason(operator: &str) -> Option<&'static str> {
    if treatment(operator).is_some() {
        return None;
    }
    Some(match operator {
        "If" | "Loop" | "Scan" => "its subgraphs are left as they are",
        "LSTM" | "GRU" | "RNN" => "recurrent layers lose too much accuracy with fixed scales",
        "Shape" | "Size" | "Cast" | "Range" | "NonZero" | "ConstantOfShape" | "Constant"
        | "Equal" | "Less" | "Greater" | "Not" | "And" | "Or" | "OneHot" => {
            "it computes shapes, indices or conditions"
        }
        "Identity" | "Dropout" => "it changes nothing and is removed",
        name if name.contains("::") => "it is not an operator of ONNX itself",
        _ => "Octet has no integer form of it yet",
    })
}

/// True if a model contains quantized operators.
pub fn is_quantized(model: &Model) -> bool {
    model
        .graph
        .nodes
        .iter()
        .any(|node| is_quantized_operator(node.op_type.as_deref().unwrap_or_default()))
}

/// True for operators that occur only in quantized models.
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
